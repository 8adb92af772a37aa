"""Goals as data: goals.csv says what a row of a table should reach; here they meet the results."""

import csv
import functools

import common
import tables


@functools.cache
def all_goals():
    """{(area, row, measure): (relation, goal)}; row * stands for every row without its own."""
    with open(common.BENCH / "goals.csv", newline="") as stream:
        return {(line["area"], line["row"], line["measure"]):
                (line["relation"], float(line["goal"])) for line in csv.DictReader(stream)}


def goal_of(area, row, measure):
    known = all_goals()
    return known.get((area, row, measure)) or known.get((area, "*", measure))


def verdict(area, row, measure, reached):
    """(goal, met or missed) as two cells; dashes without a goal or without a result.

    What is compared is what the table shows: the result rounded to two digits after the point.
    """
    goal = goal_of(area, row, measure)
    if goal is None:
        return [tables.DASH, ""]
    relation, bound = goal
    shown = f"{'≥' if relation == '>=' else '≤'} {bound:g}"
    if reached is None:
        return [shown, "not measured"]
    value = round(reached, 2)
    return [shown, "met" if (value >= bound if relation == ">=" else value <= bound) else "missed"]

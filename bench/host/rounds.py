"""Rounds in which workers take turns on one core, and what is made of their times."""

import contextlib
import dataclasses
import math
import statistics

import workers

DISTURBED = 1.02  # wall clock over processor time above which another program had the core


@dataclasses.dataclass
class Side:
    """One competitor: how to start it, where its results are, why it is absent if it is."""
    name: str
    command: list | None = None
    outputs: object = None  # file it writes its results into
    absent: str | None = None
    build_seconds: float | None = None
    threads: int = 1


@dataclasses.dataclass
class Plan:
    """How long everything may take; in seconds unless it says otherwise."""
    core: int
    rounds: int          # a number
    batch: float         # of calls that one turn takes
    slow_side: float     # the whole time of a side whose single call outlasts a batch
    start_limit: float   # for a worker to compile its model and be ready
    answer_limit: float = 120


def quantiles(values):
    values = sorted(values)

    def at(fraction):
        position = fraction * (len(values) - 1)
        low = math.floor(position)
        high = min(low + 1, len(values) - 1)
        return values[low] + (values[high] - values[low]) * (position - low)
    return {"p10": at(0.1), "median": statistics.median(values), "p90": at(0.9)}


def ratios(numerator, denominator):
    """Quantiles of the ratio of two sides' times, round by round; None without common rounds."""
    common = [a / b for a, b in zip(numerator, denominator) if a is not None and b is not None]
    return quantiles(common) if common else None


def start(sides, plan, folder, notes):
    """The workers that could be started, by name. The caller closes them."""
    running = {}
    for side in sides:
        if side.command is None:
            continue
        try:
            running[side.name] = workers.Worker(
                side.command, plan.core, plan.start_limit, plan.answer_limit,
                folder / f"{side.name.replace(' ', '-')}.log", side.threads)
        except (RuntimeError, OSError) as error:
            side.absent = str(error)
            notes.append(f"{side.name}: {error}")
    return running


def every_nth(worker, plan):
    """A side takes part in every n-th round, so that a slow one does not take all the time."""
    cost = worker.seconds_per_turn * plan.rounds
    if worker.batch > 1 or cost <= plan.slow_side:
        return 1
    return max(1, min(math.ceil(cost / plan.slow_side), plan.rounds // 3))


def calibrate(running, plan, lose):
    for name in list(running):
        try:
            running[name].calibrate(plan.batch)
        except RuntimeError as error:
            lose(name, error)


def compete(running, plan, lose):
    """{side: [wall seconds per call or None, a value per round]}, rounds that were disturbed.

    A disturbed round is repeated, at most as many as were asked for; after that processor time
    stands in for wall clock. A side that fails is taken out through `lose(name, error)`, which
    removes it from `running`.
    """
    calibrate(running, plan, lose)
    turns = {name: every_nth(worker, plan) for name, worker in running.items()}
    times, disturbed, kept = {name: [] for name in running}, 0, 0
    order = list(running)
    while kept < plan.rounds and running:
        row, clean = {}, True
        for name in order:
            if name not in running or kept % turns[name]:
                continue
            try:
                wall, processor = running[name].time()
            except RuntimeError as error:
                lose(name, error)
                continue
            alone = wall <= processor * DISTURBED + 1e-9
            row[name] = wall if alone else processor
            clean = clean and alone
        order.reverse()
        if not clean and disturbed < plan.rounds:
            disturbed += 1
            continue
        kept += 1
        for name in times:
            times[name].append(row.get(name))
    return {name: values for name, values in times.items() if name in running}, disturbed


def run(sides, plan, folder):
    """Starts, competes, ends. {"times", "facts", "disturbed", "notes"}; see `compete`."""
    notes = []
    with contextlib.ExitStack() as stack:
        running = start(sides, plan, folder, notes)
        for worker in running.values():
            stack.callback(worker.close)

        def lose(name, error):
            notes.append(f"{name}: {error}")
            running.pop(name)
        facts = {name: worker.facts for name, worker in running.items()}
        times, disturbed = compete(running, plan, lose)
    return {"times": times, "facts": facts, "disturbed": disturbed, "notes": notes}

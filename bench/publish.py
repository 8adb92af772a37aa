"""Results as text: an area's section, and the part of bench/results.md that is made of them."""

import sys

import common
import store

BEGIN, END = "<!-- results: written by bench/run --publish -->", "<!-- end of results -->"


def conditions(area, content):
    """Where and when a section was measured."""
    machine = content["machine"]
    return (f"{content['date']}, {machine['cpu']}, {machine['cores']} cores, load "
            f"{machine['load']:.1f} at the start; took {content['seconds']:.0f} s.")


def section(area, content):
    """The Markdown of an area's results."""
    if content is None:
        return f"## Results: {area.TITLE}\n\nNot measured.\n"
    parts = [f"## Results: {area.TITLE}", conditions(area, content)]
    parts += [table.markdown() for table in area.tables(content)]
    parts += [f"- {row} was not measured: {reason}" for row, reason in content["notes"].items()]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def write_results(areas):
    """Replaces what lies between the two marks by the sections of all areas that have results."""
    path = common.BENCH / "results.md"
    text = path.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{path}: the marks of the results are missing")
    before, _, rest = text.partition(BEGIN)
    sections = [section(area, store.read(area.NAME)) for area in areas.values()
                if store.read(area.NAME) is not None]
    path.write_text(f"{before}{BEGIN}\n\n" + "\n".join(sections) + f"\n{END}" +
                    rest.partition(END)[2])
    print(f"{path}: results replaced", file=sys.stderr)

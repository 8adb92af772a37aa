"""Results as text: an area's section, and the part of bench/results.md that is made of them."""

import sys

import common
import store

HEAD = "## Results: "
BEGIN, END = "<!-- results: written by bench/run --publish -->", "<!-- end of results -->"


def conditions(area, content):
    """Where and when a section was measured."""
    machine = content["machine"]
    return (f"{content['date']}, {machine['cpu']}, {machine['cores']} cores, load "
            f"{machine['load']:.1f} at the start; took {content['seconds']:.0f} s.")


def section(area, content):
    """The Markdown of an area's results."""
    if content is None:
        return f"{HEAD}{area.TITLE}\n\nNot measured.\n"
    parts = [f"{HEAD}{area.TITLE}", conditions(area, content)]
    parts += [table.markdown() for table in area.tables(content)]
    parts += [f"- {row} was not measured: {reason}" for row, reason in content["notes"].items()]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def write_results(areas, measured):
    """Replaces the sections of the areas named by `measured` between the two marks, in the order of
    `areas`; other areas keep what they have."""
    path = common.BENCH / "results.md"
    text = path.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{path}: the marks of the results are missing")
    before, _, rest = text.partition(BEGIN)
    between, _, after = rest.partition(END)
    kept = {part.partition("\n")[0]: HEAD + part for part in between.split(HEAD)[1:]}
    sections = []
    for name, area in areas.items():
        content = store.read(area.NAME) if name in measured else None
        part = section(area, content) if content else kept.get(area.TITLE)
        if part:
            sections.append(part.rstrip() + "\n")
    path.write_text(f"{before}{BEGIN}\n\n" + "\n".join(sections) + f"\n{END}{after}")
    print(f"{path}: results of {', '.join(measured)} replaced", file=sys.stderr)

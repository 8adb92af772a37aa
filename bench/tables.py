"""Tables in Markdown, and how their cells are written."""

import dataclasses

DASH = "–"


@dataclasses.dataclass
class Table:
    """A heading, a header and rows of text; `notes` are lines below."""
    title: str
    header: list
    rows: list
    notes: list = dataclasses.field(default_factory=list)

    def markdown(self):
        lines = [f"### {self.title}", "", row(self.header), "|---" * len(self.header) + "|"]
        lines += [row(cells) for cells in self.rows]
        lines += ["", *self.notes] if self.notes else []
        return "\n".join(lines) + "\n"


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def number(value, digits=None):
    """Three significant digits, or so many after the point; a dash for None."""
    if value is None:
        return DASH
    if digits is None:
        digits = max(0, 2 - len(str(int(abs(value)))) + 1) if abs(value) >= 1 else 2
        digits = min(digits, 2)
    return f"{value:,.{digits}f}"


def median(quantiles, digits=None):
    return number(quantiles["median"] if quantiles else None, digits)


def spread(quantiles):
    """Median and p10–p90 of a ratio."""
    if not quantiles:
        return DASH
    return f"{quantiles['median']:.2f} ({quantiles['p10']:.2f}–{quantiles['p90']:.2f})"


def percent(value):
    return DASH if value is None else f"{100 * value:.0f} %"


def explain(absences):
    """Lines that say why a dash is a dash: one per (what, reason), with the rows it concerns."""
    grouped = {}
    for line, who, why in absences:
        grouped.setdefault((who, why), []).append(line)
    return [f"- {who}: {why} ({', '.join(dict.fromkeys(lines))})"
            for (who, why), lines in grouped.items()]

"""A comparison of baselines as a table: one line per way of scheduling, and what each of them is."""

from __future__ import annotations

from twillgpu.baselines.record import Comparison, Found, Outcome, Row
from twillgpu.view.claim import verdict
from twillgpu.view.text import WIDTH, number, plural, section, table, wrap

HEADER = (
    "schedule",
    "I",
    "proved",
    "x best",
    "stages",
    "groups",
    "warps",
    "registers",
    "needed",
    "barriers",
    "hand-off",
    "busiest unit",
)
WORDS: dict[Outcome, str] = {
    "found": "",
    "infeasible": "infeasible",
    "unsuited": "does not apply",
    "limit": "none found before a limit",
}


def comparison_text(heading: str, comparison: Comparison) -> str:
    """Return the comparison as plain text that ends in a newline.

    Args:
        heading: what was scheduled, on what.
        comparison: the rows; the first is the optimum.
    """
    shown = [row for row in comparison.rows if row.found.outcome != "unsuited"]
    lines = [
        *wrap(heading, indent=""),
        *section("Optimum", wrap(verdict(comparison.optimum))),
        *_table(comparison),
        *_forced(comparison),
        *_lifted(comparison),
        *_without(comparison),
        *section("Schedules", [line for row in shown for line in _description(row.found)]),
    ]
    return "\n".join(lines) + "\n"


def _table(comparison: Comparison) -> list[str]:
    rows = [_cells(row) for row in comparison.rows if row.figures is not None]
    title = f"All schedules of at most {plural(comparison.max_stages, 'stage')}, under the same rules and costs"
    notes = wrap(
        "I and hand-off in cycles per iteration; proved: = is the smallest for what the line decides, >= a lower "
        "bound for it, nothing for heuristics; registers: of the register file, by quotas; needed: per thread, of "
        "the group that needs most; barriers per iteration.",
        width=WIDTH,
    )
    return section(title, [*table(HEADER, rows, right=range(1, 11)), *notes] if rows else [])


def _cells(row: Row) -> tuple[str, ...]:
    figures = row.figures
    if figures is None:
        return ()
    return (
        row.found.way.name + ("*" if row.found.lifted else ""),
        number(figures.ii_cycles),
        _proved(row.found),
        f"{figures.ratio:.3f}",
        str(figures.stages),
        str(figures.groups),
        str(figures.warps),
        number(figures.registers),
        number(figures.registers_needed),
        number(figures.barriers),
        number(figures.handoff_cycles),
        f"{figures.unit} {figures.utilisation:.0%}" if figures.unit else "none",
    )


def _proved(found: Found) -> str:
    if found.proved:
        return "="
    return f">= {number(found.lower_cycles)}" if found.lower_cycles else ""


def _forced(comparison: Comparison) -> list[str]:
    """What keeps each plan above the best schedule known, where its own bound is above that one."""
    best = comparison.rows[0].found.schedule
    slower = [
        row.found
        for row in comparison.rows[1:]
        if best is not None and row.found.forced and row.found.lower_cycles > best.ii_cycles
    ]
    lines = [
        line
        for found in slower
        for line in wrap(f"{found.way.name}: {number(found.lower_cycles)} by {found.forced}", hang="  ")
    ]
    return section("What forces more than the best", lines)


def _lifted(comparison: Comparison) -> list[str]:
    """The plans that a rule refuses, shown without it, with what it says."""
    found = [row.found for row in comparison.rows if row.found.lifted]
    lines = [line for one in found for line in wrap(f"{one.way.name}: breaks {one.reason}", hang="  ")]
    return section("* Not under all rules", lines)


def _without(comparison: Comparison) -> list[str]:
    """The ways that gave no schedule, with the rule that stands against them; those that do not apply by reason."""
    found = [row.found for row in comparison.rows if row.figures is None and row.found.outcome != "unsuited"]
    lines = section("No schedule", [line for one in found for line in wrap(_why(one), hang="  ")])
    unsuited: dict[str, list[str]] = {}
    for row in comparison.rows:
        if row.found.outcome == "unsuited":
            unsuited.setdefault(row.found.reason, []).append(row.found.way.name)
    texts = [f"{'; '.join(names)}: {reason}" for reason, names in unsuited.items()]
    return lines + section("Do not apply", [line for text in texts for line in wrap(text, hang="  ")])


def _why(found: Found) -> str:
    rule = f" [rule: {found.rule}]" if found.rule else ""
    return f"{found.way.name}: {WORDS[found.outcome]}: {found.reason}{rule}"


def _description(found: Found) -> list[str]:
    note = f"; {found.reason}" if found.outcome == "found" and found.reason and not found.lifted else ""
    return wrap(f"{found.way.name}: {found.way.says} ({found.way.source}){note}", hang="  ")

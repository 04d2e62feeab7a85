"""Why the interval of a search is what it is, and what would have to change."""

from __future__ import annotations

import time
from dataclasses import replace

from twillgpu.costs.record import Problem
from twillgpu.explain.asking import Questions
from twillgpu.explain.critical import critical_circuit, critical_unit
from twillgpu.explain.families import amount_of, families_of, raised
from twillgpu.explain.forced import forced_by_bounds, forced_by_rules
from twillgpu.explain.record import PERCENT, Change, ExplainOptions, Explanation, Family, Kind, Relaxed, Row
from twillgpu.explain.variant import Variant
from twillgpu.explain.ways import ways
from twillgpu.schedule.ask import Progress
from twillgpu.schedule.record import SearchResult
from twillgpu.schedule.resolution import EXACT_SLOTS

FORCED, HELPING = 0.4, 0.8
"""Shares of the time after which no more is asked about what forces, and what helps."""

CAPACITIES: tuple[Kind, ...] = ("unit", "memory", "registers", "register_file", "groups", "warps", "stages")
"""Kinds that have a row in the table."""


def explain(
    problem: Problem,
    result: SearchResult,
    options: ExplainOptions | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """Return why ``result``, a search of ``problem``, has no smaller interval, and what would help.

    Every schedule that is found on the way for a changed problem passes the verifier. What the time budget leaves
    open is marked as such; given enough, the answers are the same on every machine.

    Raises:
        TwillError: a schedule that a search returned does not pass the verifier, which is a defect.
    """
    started = time.process_time()
    options = options or ExplainOptions()
    base = Variant(problem=problem, stages=result.max_stages)
    questions = Questions(base, result, options, progress or (lambda _: None))
    questions.allow(FORCED)
    forced = forced_by_bounds(base, result.bounds.binding.cycles) + forced_by_rules(base, result, questions)
    questions.settle(forced)
    questions.allow(HELPING)
    helping = ways(base, result, forced, questions)
    questions.allow(1.0)
    rows = _rows(base, questions) if options.table else ()
    return Explanation(
        result=result,
        forced=forced,
        ways=helping,
        rows=rows,
        unit=critical_unit(problem),
        circuit=critical_circuit(problem),
        options=options,
        complete=not questions.open,
        questions=questions.count,
        seconds=time.process_time() - started,
    )


def _rows(base: Variant, questions: Questions) -> tuple[Row, ...]:
    families = [family for family in families_of(base) if family.kind in CAPACITIES]
    return tuple(
        Row(
            family=family,
            amount=amount_of(base, family),
            cells=_cells(base, family, questions),
        )
        for family in families
    )


def _cells(base: Variant, family: Family, questions: Questions) -> tuple[Relaxed | None, ...]:
    """Return the cells of a row, each at least as good as what was found with less of the capacity elsewhere."""
    asked = _asked(base, family, questions)
    return _monotone(tuple(cell and replace(cell, upper_cycles=questions.reached(cell)) for cell in asked))


def _asked(base: Variant, family: Family, questions: Questions) -> tuple[Relaxed | None, ...]:
    """Return the answers for a row. The last amount is asked about first, since where it gains nothing, the others do
    not either; where the first one gains as much, those in between do, too.
    """
    before = amount_of(base, family)
    changes = [Change(family=family, before=before, after=raised(base, family, percent)) for percent in PERCENT]
    last = questions.relaxed((changes[-1],))
    exact = last is not None and (last.upper_cycles or 0) <= EXACT_SLOTS
    if last is None or not last.solved or (family.kind == "unit" and exact):
        return *(questions.relaxed((change,)) for change in changes[:-1]), last
    if not questions.better(last):
        return *(questions.implied((change,), last) for change in changes[:-1]), last
    first = questions.relaxed((changes[0],))
    same = first is not None and first.upper_cycles == last.upper_cycles and not exact
    between = (questions.implied((one,), last) if same else questions.relaxed((one,)) for one in changes[1:-1])
    return first, *between, last


def _monotone(cells: tuple[Relaxed | None, ...]) -> tuple[Relaxed | None, ...]:
    """Use that more of a capacity never hurts: what less of it reaches is reached, what more excludes is excluded.

    A faster unit may be used at a slower pace: what was refuted at its own pace does not exclude that.
    """
    found: list[Relaxed | None] = []
    for index, cell in enumerate(cells):
        if cell is None:
            found.append(None)
            continue
        uppers = [one.upper_cycles for one in cells[: index + 1] if one is not None and one.upper_cycles is not None]
        lowers = [one.lower_cycles for one in cells[index:] if one is not None]
        upper = min(uppers, default=None)
        lower = cell.lower_cycles if cell.changes[0].family.kind == "unit" else max(lowers)
        if upper is not None and upper < lower:
            lower = min(cell.bound_cycles, upper)
        found.append(replace(cell, lower_cycles=lower, upper_cycles=upper))
    return tuple(found)

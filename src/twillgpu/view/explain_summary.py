"""What limits a kernel, and the cheapest change that helps, in two or three sentences."""

from __future__ import annotations

from twillgpu.explain.record import Explanation, Forced, Relaxed
from twillgpu.view.explain_words import answer_words, changes_words, set_words, unit_words
from twillgpu.view.record import Run
from twillgpu.view.records import bound_reason
from twillgpu.view.text import number, plural


def summary(run: Run, explanation: Explanation) -> str:
    """Return the summary: what limits the loop, then the cheapest change that helps."""
    return f"{_limit(run, explanation)}. {_help(run, explanation)}."


def _limit(run: Run, explanation: Explanation) -> str:
    result = explanation.result
    if result.status == "infeasible":
        none = f"No schedule of at most {plural(result.max_stages, 'stage')} exists at any interval"
        return f"{none}{_impossible(run, explanation)}"
    if result.schedule is None:
        return "No schedule was found before a limit was reached"
    interval = result.schedule.ii_cycles
    if result.lower_bound_cycles < interval:
        return (
            f"I = {number(interval)} was found, {number(result.lower_bound_cycles)} or more is proved; the largest "
            f"bound is {_bound(explanation)}"
        )
    if interval == result.bounds.binding.cycles:
        return f"I = {number(interval)} because of {_bound(explanation)}; {_nothing_else(explanation)}"
    return f"I = {number(interval)} {_rules(run, explanation)}"


def _impossible(run: Run, explanation: Explanation) -> str:
    result = explanation.result
    if result.bounds.impossible:
        return f": {'; '.join(result.bounds.impossible)}"
    last = explanation.forced[-1] if explanation.forced else None
    if last is None or not last.sets or last.bounds:
        return ""
    return f" because of {' or '.join(set_words(one, run.problem, result.max_stages) for one in last.sets[:2])}"


def _bound(explanation: Explanation) -> str:
    binding = explanation.result.bounds.binding
    unit = explanation.unit
    if unit is not None and unit.unit == binding.name:
        shares = f" ({unit.capacity} shares)" if unit.capacity > 1 else ""
        found = explanation.result.schedule
        busy = "never idle" if found is not None and found.ii_cycles == binding.cycles else "busy"
        return f"unit {unit.unit}{shares} which is {busy}: {unit_words(unit)}"
    return f"{binding.name}: {bound_reason(binding)}"


def _nothing_else(explanation: Explanation) -> str:
    tied = [
        bound.name
        for bound in explanation.result.bounds.bounds
        if bound.cycles == explanation.result.bounds.binding.cycles
    ]
    if len(tied) > 1:
        return f"{' and '.join(tied)} bind equally"
    return "nothing else limits it"


def _rules(run: Run, explanation: Explanation) -> str:
    last: Forced | None = explanation.forced[-1] if explanation.forced else None
    bound = explanation.result.bounds.binding
    lower = f"the largest bound is {number(bound.cycles)} ({bound.name})"
    if last is None or not last.sets or last.bounds:
        return f"is proved smallest by the search; {lower}"
    sets = " or ".join(set_words(one, run.problem, explanation.result.max_stages) for one in last.sets[:2])
    return f"is forced by {sets}; {lower}"


def _help(run: Run, explanation: Explanation) -> str:
    best = next((way.least for way in explanation.ways if way.least is not None), None) or _of_rows(explanation)
    if best is not None:
        return f"The easiest change that helps: {changes_words(best, run.problem)} gives {answer_words(best)}"
    if not explanation.complete:
        return "What would help was not found in the time allowed"
    return "No change that was tried gives a smaller interval"


def _of_rows(explanation: Explanation) -> Relaxed | None:
    """Return the smallest raise of a capacity that gives less than today's interval, if any."""
    schedule = explanation.result.schedule
    cells = (cell for column in zip(*(row.cells for row in explanation.rows), strict=True) for cell in column)
    found = (cell for cell in cells if cell is not None and cell.upper_cycles is not None)
    return next((cell for cell in found if schedule is None or (cell.upper_cycles or 0) < schedule.ii_cycles), None)

"""What it would cost to keep tensor core operands in the TMEM columns of the products that they are made from."""

from __future__ import annotations

from twillgpu.costs.columns import FixedColumns, Shared, fixed_columns, fixed_in
from twillgpu.costs.record import Problem
from twillgpu.schedule.record import SearchResult
from twillgpu.view.records import bound_reason
from twillgpu.view.text import number, plural, section, wrap


def columns_section(problem: Problem, result: SearchResult) -> list[str]:
    """The lower bound under fixed columns beside what was found, where there is an operand to fix."""
    found = fixed_columns(problem)
    if found is None:
        return []
    text = f"with {_pairs(found.shared)} (--columns fixed), {_consequence(found, result)}"
    return section("Fixed columns (P over S)", wrap(text))


def _consequence(found: FixedColumns, result: SearchResult) -> str:
    if found.bounds.impossible:
        return f"there would be no schedule: {'; '.join(found.bounds.impossible)}"
    bound = found.bounds.binding
    if result.bounds.bounds and bound.cycles <= result.bounds.binding.cycles:
        return f"the bounds would stay: I would be at least {plural(bound.cycles, 'cycle')}"
    instead = ""
    if result.schedule is not None and bound.cycles > result.schedule.ii_cycles:
        instead = f" instead of {number(result.schedule.ii_cycles)}"
    return f"I would be at least {plural(bound.cycles, 'cycle')}{instead} ({bound.name}: {bound_reason(bound)})"


def _pairs(shared: tuple[Shared, ...]) -> str:
    return " and ".join(f"{pair.value} in the columns of {pair.product}" for pair in shared)


def columns_remark(problem: Problem) -> str:
    """Return what ``--columns fixed`` has fixed in ``problem``, as a remark."""
    fixed = fixed_in(problem)
    if not fixed:
        return "--columns fixed changes nothing: no tensor core operand is stored over a product of its iteration"
    return f"{_pairs(fixed)} (--columns fixed)"

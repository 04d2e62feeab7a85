"""All rules of ``docs/formulation.md``, by name: a rule is a function from a problem and a schedule to violations.

Every rule expands iterations and looks at what happens, cycle by cycle, in a period of the steady state; none
uses what a search does to find a schedule. All but ``uniqueness`` and ``consistency`` need a schedule that
passes ``consistency``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule
from twillgpu.verify.groups import concurrency, cross_warp_spill, legality, variable_latency, warp_uniqueness
from twillgpu.verify.memory import memory_capacity
from twillgpu.verify.record import PASSED, Verified, Violation
from twillgpu.verify.registers import register_limit
from twillgpu.verify.times import capacity, completion, consistency, dependence, uniqueness

Rule = Callable[[Problem, Schedule], Iterable[Violation]]

RULES: tuple[Rule, ...] = (
    uniqueness,
    consistency,
    completion,
    dependence,
    capacity,
    memory_capacity,
    warp_uniqueness,
    variable_latency,
    register_limit,
    cross_warp_spill,
    concurrency,
    legality,
)


def check(problem: Problem, schedule: Schedule, *, max_stages: int | None = None) -> Verified | tuple[Violation, ...]:
    """Return the schedule as ``Verified``, or every violation of every rule in the order of ``RULES``.

    ``max_stages`` is a claim from outside on the number of stages, checked by ``completion``. An interval below
    1 or a negative start leave nothing to expand: then only these are reported. Raises ``InputError`` for a
    value or use that lasts longer than 10,000 iterations.
    """
    violations = tuple(_violations(problem, schedule, max_stages))
    if violations:
        return violations
    return Verified(problem=problem, schedule=schedule, seal=PASSED)


def _violations(problem: Problem, schedule: Schedule, max_stages: int | None) -> Iterator[Violation]:
    broken_form = tuple(consistency(problem, schedule))
    if broken_form:
        yield from uniqueness(problem, schedule)
        yield from broken_form
        return
    for rule in RULES:
        if rule is completion:
            yield from completion(problem, schedule, max_stages=max_stages)
        else:
            yield from rule(problem, schedule)

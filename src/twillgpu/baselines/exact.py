"""The smallest interval of a plan, in cycles: with groups given and orders nearly so, little is left to decide.

Starts, the interval and the quotas of registers are integers; what may come before or after what on a unit, around a
wait, or in the registers of a group is a choice of *turns*: how many periods lie between two instances. CP-SAT
minimises the interval. The memories and pauses are left out, units and registers are looked at two ops or values at a
time, so that the bound holds, while the starts may still break a rule: they are a draft to finish and to verify.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from ortools.sat.python import cp_model

from twillgpu.baselines.paths import crossing
from twillgpu.costs.record import Problem
from twillgpu.machine.record import Registers
from twillgpu.schedule.lifetimes import Lifetime, Moment, register_lifetimes
from twillgpu.schedule.partition import widths
from twillgpu.schedule.polish import Draft, wait_window
from twillgpu.schedule.solved import Effort


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From the earliest of ``begins`` to the latest of ``ends``."""

    begins: tuple[Moment, ...]
    ends: tuple[Moment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tightest:
    """What is known of the smallest interval.

    Attributes:
        draft: the best starts found, ``None`` without any.
        lower_cycles: no schedule of the plan has a smaller interval.
        infeasible: there is none up to the largest interval asked about.
        work: deterministic work units spent.
    """

    draft: Draft | None
    lower_cycles: int
    infeasible: bool
    work: float


def tightest(
    problem: Problem,
    groups: Mapping[str, int],
    *,
    between: tuple[int, int],
    stages: int,
    effort: Effort,
) -> Tightest:
    """Return the smallest interval of ``problem`` in ``groups``, without the memories.

    That ops do not meet themselves is left to the smallest interval given: that of the units' bounds, at least.

    Args:
        problem: the problem with the plan's further dependences.
        groups: the group of every op.
        between: smallest and largest interval, in cycles, that are looked at.
        stages: stages allowed.
        effort: limits; deterministic work first.
    """
    return _Program(problem, groups, between=between, stages=stages).solve(effort)


class _Program:
    """The integer program."""

    def __init__(self, problem: Problem, groups: Mapping[str, int], *, between: tuple[int, int], stages: int) -> None:
        self.problem = problem
        self.groups = groups
        self.model = cp_model.CpModel()
        self.lower, self.upper = between
        self.interval = self.model.new_int_var(self.lower, self.upper, "I")
        self.stages = stages
        self.starts = {op.name: self.model.new_int_var(0, stages * self.upper, op.name) for op in problem.ops}
        for op in problem.ops:
            self.model.add(self.starts[op.name] + max(1, op.latency_cycles) <= stages * self.interval)
        for edge in crossing(problem, groups).edges:
            ready = self.starts[edge.tail] + edge.latency_cycles
            self.model.add(ready <= self.starts[edge.head] + edge.distance * self.interval)
        self._capacity()
        self._waits()
        if problem.registers is not None:
            self._registers(problem.registers)
        self.model.minimize(self.interval)

    def solve(self, effort: Effort) -> Tightest:
        """Return what the solver finds and proves."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = effort.seed
        solver.parameters.max_deterministic_time = effort.work
        solver.parameters.max_time_in_seconds = effort.seconds
        solver.parameters.catch_sigint_signal = False
        status = solver.solve(self.model)
        found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        starts = {name: solver.value(start) for name, start in self.starts.items()} if found else {}
        return Tightest(
            draft=Draft(ii_cycles=solver.value(self.interval), starts=starts, groups=dict(self.groups))
            if found
            else None,
            lower_cycles=max(self.lower, round(solver.best_objective_bound)) if found else self.lower,
            infeasible=status == cp_model.INFEASIBLE,
            work=solver.response_proto.deterministic_time,
        )

    def _capacity(self) -> None:
        """Keep uses of a unit apart that it cannot serve at once."""
        for unit in self.problem.units:
            runs = [(op.name, use) for op in self.problem.ops for use in op.uses if use.unit == unit.name]
            for (name, use), (other, more) in combinations(runs, 2):
                if use.cycles and more.cycles and use.amount + more.amount > unit.capacity:
                    one = _span(name, use.offset, use.offset + use.cycles)
                    self._apart(one, _span(other, more.offset, more.offset + more.cycles))

    def _waits(self) -> None:
        """Keep waits out of the time for which the ops of their group issue."""
        for waiter in sorted(_waiting(self.problem, self.groups)):
            for op in self.problem.ops:
                window = wait_window(self.problem, op)
                if op.name != waiter and window and self.groups[op.name] == self.groups[waiter]:
                    self._apart(_span(op.name, 0, window), _span(waiter, 0, 1))

    def _registers(self, limits: Registers) -> None:
        """Give every group a quota for each two of its values that are ever live together."""
        warps = widths(self.problem, self.groups)
        steps = [
            self.model.new_int_var(
                limits.smallest // limits.quota_step, limits.largest // limits.quota_step, f"quota {g}"
            )
            for g in range(len(warps))
        ]
        padding = -sum(warps) % 4
        pool = limits.pool(sum(warps) + padding) // 32 - padding * limits.quota_min
        self.model.add(
            sum(limits.quota_step * width * step for width, step in zip(warps, steps, strict=True)) <= pool
        )
        lifetimes = register_lifetimes(self.problem, self.groups)
        for group, step in enumerate(steps):
            mine = [life for life in lifetimes if life.holder == str(group) and life.weight]
            held = limits.overhead_per_thread + sum(life.weight for life in mine if life.pinned)
            quota = limits.quota_step * step
            for life in mine:
                self.model.add(quota >= held + (0 if life.pinned else life.weight))
            for one, other in combinations([life for life in mine if not life.pinned], 2):
                needs = held + one.weight + other.weight
                if needs > limits.smallest:
                    together = self.model.new_bool_var("")
                    self.model.add(quota >= needs).only_enforce_if(together)
                    self._apart(_whole(one), _whole(other), unless=together)

    def _apart(self, one: Span, other: Span, unless: cp_model.IntVar | None = None) -> None:
        """Keep all instances of two spans apart: some number of turns of ``other`` lie between two of ``one``."""
        choices = [] if unless is None else [unless]
        for turns in range(-self.stages - 1, self.stages + 2):
            chosen = self.model.new_bool_var("")
            choices.append(chosen)
            for last in one.ends:
                for first in other.begins:
                    self._before(last, first, turns, chosen)
            for last in other.ends:
                for first in one.begins:
                    self._before(last, first, 1 - turns, chosen)
        self.model.add_exactly_one(choices) if unless is None else self.model.add_bool_or(choices)

    def _before(self, last: Moment, first: Moment, turns: int, chosen: cp_model.IntVar) -> None:
        later = self._at(first) + turns * self.interval
        self.model.add(self._at(last) <= later).only_enforce_if(chosen)

    def _at(self, moment: Moment) -> cp_model.LinearExpr:
        return cp_model.LinearExpr.sum([self.starts[moment.op], moment.turns * self.interval]) + moment.cycles


def _waiting(problem: Problem, groups: Mapping[str, int]) -> set[str]:
    return {
        edge.head
        for edge in problem.edges
        if edge.blocking or (edge.tail != edge.head and groups[edge.tail] != groups[edge.head])
    }


def _span(name: str, begin: int, end: int) -> Span:
    return Span(begins=(Moment(op=name, cycles=begin),), ends=(Moment(op=name, cycles=end),))


def _whole(life: Lifetime) -> Span:
    return Span(begins=life.begins, ends=life.ends)

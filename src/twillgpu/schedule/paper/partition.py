"""What the paper's method may do with groups that the rules of ``docs/formulation.md`` forbid."""

from __future__ import annotations

from collections.abc import Mapping

from twillgpu.costs.record import Problem
from twillgpu.schedule.partition import designated, needed_warps, widths


def broken_rules(problem: Problem, groups: Mapping[str, int]) -> tuple[str, ...]:
    """Return the rules that a partition breaks whatever the starts are, each with an example."""
    found = (_width(problem, groups), _variable(problem, groups), _pairs(problem, groups), _kept(problem, groups))
    return tuple(text for text in found if text)


def _width(problem: Problem, groups: Mapping[str, int]) -> str:
    if max(needed_warps(problem, groups)) > problem.groups.warps[-1]:
        return "warp_uniqueness (no group is so wide)"
    total, most = sum(widths(problem, groups)), problem.groups.max_warps
    return f"warp_uniqueness ({total} warps in all, a block has {most})" if total > most else ""


def _variable(problem: Problem, groups: Mapping[str, int]) -> str:
    if not designated(problem):
        return ""
    for op in problem.ops:
        alone = problem.rules.variable_latency == "iff"
        if op.variable_latency != (groups[op.name] == 0) and (op.variable_latency or alone):
            return f"variable_latency ({op.name} in group {groups[op.name]})"
    return ""


def _pairs(problem: Problem, groups: Mapping[str, int]) -> str:
    for pair in problem.legality:
        together = groups[pair.first] == groups[pair.second]
        if pair.relation != "pause" and together != (pair.relation == "together"):
            return f"legality ({pair.first} and {pair.second} must be {pair.relation}: {pair.rule})"
    return ""


def _kept(problem: Problem, groups: Mapping[str, int]) -> str:
    """Return an edge by which a register value crosses although none may."""
    values = {op.name: op.value for op in problem.ops if op.value is not None and op.value.space == "registers"}
    for edge in problem.edges if not problem.rules.cross_group else ():
        if edge.kind == "data" and edge.tail in values and groups[edge.tail] != groups[edge.head]:
            return f"cross_warp_spill ({edge.tail} to {edge.head}, although values may not cross)"
    return ""

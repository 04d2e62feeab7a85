"""Hand-made schedules of forward attention: two products per sub-tile with a softmax between them.

The form is recognised by structure: a tensor op S whose result reaches, within the iteration, a reduction and an
exponential and then a tensor op O that accumulates across iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from twillgpu.baselines.orders import Body, exposed, issue_order
from twillgpu.baselines.partition import grouped, merged
from twillgpu.baselines.record import Plan, Unsuited, Way
from twillgpu.baselines.roles import program_order, roles
from twillgpu.costs.record import PricedEdge, Problem

FA3 = Way(
    name="FlashAttention-3",
    says="a load group, a consumer group per sub-tile: S of the next iteration, then O, then softmax; the groups' "
    "products in turn",
    source="Shah et al., arXiv 2407.08608, 2024, algorithm 2 and ping-pong scheduling",
)
FA4 = Way(
    name="FlashAttention-4",
    says="groups for loads, products, softmax per sub-tile, rescaling; products in the order O0, S0 of the next "
    "iteration, O1, S1; each softmax in its best order",
    source="Zadouri et al., arXiv 2603.05451, 2026",
)
FA4_GROUPS = Way(
    name="FlashAttention-4, groups",
    says="the same groups, every order left open",
    source="Zadouri et al., arXiv 2603.05451, 2026",
)
S_AHEAD = Way(
    name="stages: S ahead of the rest",
    says="K loads in stage 0, V loads in 1, S in 2, the rest in 3; body: S, softmax, O, loads",
    source="triton-lang/triton pull request 5185, 2024, first schedule (H100)",
)
O_BEHIND = Way(
    name="stages: O behind the rest",
    says="K loads in stage 0, V loads in 1, O in 3, the rest in 2; body: S, O, softmax, loads",
    source="triton-lang/triton pull request 5185, 2024, second schedule (H100)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """One sub-tile: product S, product O, the ops on the accumulator between two O, and the other ops of softmax."""

    s: str
    o: str
    rescale: tuple[str, ...]
    softmax: tuple[str, ...]


def heads(problem: Problem) -> tuple[Head, ...]:
    """Return the sub-tiles of an attention loop, or nothing where the loop is none."""
    kinds = {op.name: op.kind for op in problem.ops}
    tensor = [name for name, kind in kinds.items() if kind == "mma"]
    now, later = _followers(problem, carried=False), _followers(problem, carried=True)
    pairs = [(s, o) for s in tensor for o in tensor if _is_pair(kinds, now, later, s, o)]
    if not pairs or sorted(name for pair in pairs for name in pair) != sorted(tensor):
        return ()
    order = program_order(problem)
    found = []
    for s, o in pairs:
        around = {name for name in later[o] if o in later[name] and name != o}
        inner = {name for name in now[s] | _sources(now, o, s, pairs, problem) if kinds[name] != "mma"}
        rescale = tuple(name for name in order if name in around)
        found.append(
            Head(s=s, o=o, rescale=rescale, softmax=tuple(n for n in order if n in inner and n not in around))
        )
    covered = {name for head in found for name in (head.s, head.o, *head.rescale, *head.softmax)}
    loads = {op.name for op in problem.ops if op.variable_latency}
    return tuple(found) if covered | loads == set(kinds) else ()


def _is_pair(kinds: dict[str, str], now: dict[str, set[str]], later: dict[str, set[str]], s: str, o: str) -> bool:
    between = {name for name in now[s] if o in now[name]}
    softmax = {"exp", "reduce"} <= {kinds[name] for name in between}
    return s != o and softmax and o in later[o]


def _sources(now: dict[str, set[str]], o: str, s: str, pairs: list[tuple[str, str]], problem: Problem) -> set[str]:
    """Return the ops before O that are before no other O and after no other S."""
    others = [other for pair in pairs for other in pair if other not in (s, o)]
    return {
        op.name
        for op in problem.ops
        if o in now[op.name]
        and not op.variable_latency
        and not any(other in now[op.name] or op.name in now[other] for other in others)
    }


def _followers(problem: Problem, *, carried: bool) -> dict[str, set[str]]:
    """Return, for every op, what its value reaches over data edges (``carried``: of any distance)."""
    after: dict[str, set[str]] = {op.name: set() for op in problem.ops}
    for edge in problem.edges:
        if edge.kind == "data" and edge.tail != edge.head and (carried or edge.distance == 0):
            after[edge.tail].add(edge.head)
        if edge.kind == "data" and edge.tail == edge.head and carried:
            after[edge.tail].add(edge.head)
    found = {name: set(heads) for name, heads in after.items()}
    for _ in after:
        found = {name: reached.union(*(after[other] for other in reached)) for name, reached in found.items()}
    return found


def flash_attention_3(problem: Problem) -> Plan | Unsuited:
    """Return the plan of ``FA3``; for products with results in registers (wgmma)."""
    found = heads(problem)
    if not found or _in_tmem(problem, found):
        return _unsuited("Hopper: products with results in registers")
    labels = merged(roles(problem), problem, loads="load", products="mma")
    groups = grouped(problem, labels)
    orders: list[PricedEdge] = []
    for head in found:
        rest = [(name, 1) for name in program_order(problem) if name in (*head.softmax, *head.rescale)]
        orders += issue_order(problem, [(head.s, 1), (head.o, 0), *rest])
    if len(found) > 1:
        orders += issue_order(problem, [item for head in found for item in ((head.s, 1), (head.o, 0))])
    return Plan(groups=tuple(groups.items()), orders=tuple(orders))


def flash_attention_4(problem: Problem) -> Plan | Unsuited:
    """Return the plan of ``FA4``; for products with results in TMEM (tcgen05)."""
    plan = flash_attention_4_groups(problem)
    if isinstance(plan, Unsuited):
        return plan
    found = heads(problem)
    orders = issue_order(problem, [item for head in found for item in ((head.o, 0), (head.s, 1))])
    orders += issue_order(problem, [(name, 0) for head in found for name in head.rescale])
    return Plan(groups=plan.groups, orders=tuple(orders))


def flash_attention_4_groups(problem: Problem) -> Plan | Unsuited:
    """Return the plan of ``FA4_GROUPS``."""
    found = heads(problem)
    if not found or not _in_tmem(problem, found):
        return _unsuited("Blackwell: products with results in TMEM")
    labels = {op.name: "load" for op in problem.ops if op.variable_latency}
    for index, head in enumerate(found):
        labels |= {head.s: "mma", head.o: "mma"}
        labels |= dict.fromkeys(head.softmax, f"softmax {index}") | dict.fromkeys(head.rescale, "rescale")
    return Plan(groups=tuple(grouped(problem, labels).items()), orders=())


def s_ahead(problem: Problem) -> Plan | Unsuited:
    """Return the plan of ``S_AHEAD``."""
    return _stages(problem, lambda head, rest: [(head.s, 1), *((name, 0) for name in rest), (head.o, 0)])


def o_behind(problem: Problem) -> Plan | Unsuited:
    """Return the plan of ``O_BEHIND``."""
    return _stages(problem, lambda head, rest: [(head.s, 1), (head.o, 0), *((name, 1) for name in rest)])


def _stages(problem: Problem, body: Callable[[Head, list[str]], list[tuple[str, int]]]) -> Plan | Unsuited:
    """Return a plan in which each sub-tile's warps run ``body``, the first ones with the loads at its end.

    Ops are as many iterations ahead as their stage is before 3.
    """
    found = heads(problem)
    if not found or _in_tmem(problem, found):
        return _unsuited("Hopper: products with results in registers")
    parts = roles(problem)
    groups = grouped(problem, merged(parts, problem, loads=None, products="mma"))
    orders = exposed(problem, parts.loads)
    for index, head in enumerate(found):
        rest = [name for name in program_order(problem) if name in (*head.softmax, *head.rescale)]
        order: Body = body(head, rest) + (_loads(problem, found) if index == 0 else [])
        orders += issue_order(problem, order)
    return Plan(groups=tuple(groups.items()), orders=tuple(orders))


def _loads(problem: Problem, found: tuple[Head, ...]) -> list[tuple[str, int]]:
    """Return the loads for S (K) three iterations ahead and the others (V) two."""
    first = {head.s for head in found}
    keys = {edge.tail for edge in problem.edges if edge.head in first}
    return [(op.name, 3 if op.name in keys else 2) for op in problem.ops if op.variable_latency]


def _in_tmem(problem: Problem, found: tuple[Head, ...]) -> bool:
    names = {head.s for head in found}
    return any(op.name in names and op.value is not None and op.value.space == "tmem" for op in problem.ops)


def _unsuited(where: str) -> Unsuited:
    return Unsuited(reason=f"not forward attention (two products with a softmax between them) on {where}")

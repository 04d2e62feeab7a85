"""Fusing nodes that are worth no decision of their own, without losing freedom or changing recurrences.

Only nodes from registers to registers are fused, a producer into its only consumer:

- ``fma``: a multiplication into the addition or subtraction that reads it; it then costs no instruction.
- ``tail``: a reduction with what follows it on its result, a few elements a thread.
- ``tiny``: a node on a few elements a thread into its consumer, whatever its kind.
- ``chain``: an elementwise node into an elementwise consumer.

Each but ``fma`` must keep two promises. *Waiting*: the producer does not come to wait for an asynchronous op (load,
tensor core, TMEM load) that it did not wait for; a producer that waits for none is exempt (it is index arithmetic,
done where it is needed). *Recurrence*: a consumer on a recurrence circuit does not draw the producer into it,
unless the producer works on a few elements, or follows a tensor core op of the same iteration: such an iteration
lasts longer than one pass over the tile.

Index tiles that several nodes read are left to ``recompute``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from twillgpu.graph.body import tile_elements
from twillgpu.graph.flow import Flow
from twillgpu.graph.kinds import ASYNCHRONOUS, COMPUTE
from twillgpu.graph.nodes import Node

_FEW_PER_THREAD = 2
_ADDITIONS = ("arith.addf", "arith.subf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """Nodes and flows after fusing, and the nodes whose results outlive the iteration."""

    nodes: tuple[Node, ...]
    flows: tuple[Flow, ...]
    kept: frozenset[str]


def fuse(nodes: tuple[Node, ...], flows: tuple[Flow, ...], kept: frozenset[str], threads: int) -> Fused:
    """Return the nodes and flows with everything fused that the rules allow.

    Results of the nodes ``kept`` outlive the iteration; ``threads`` hold each tile.
    """
    state = Fused(nodes=nodes, flows=flows, kept=kept)
    for fused_multiply in (True, False):
        while (pair := _next_pair(state, threads, fused_multiply=fused_multiply)) is not None:
            state = _merge(state, *pair, fused_multiply=fused_multiply)
    return state


def _next_pair(state: Fused, threads: int, *, fused_multiply: bool) -> tuple[Node, Node] | None:
    view = _View(state)
    for node in state.nodes:
        consumer = view.sole_consumer(node)
        if consumer is None:
            continue
        if _multiplies_into(node, consumer) if fused_multiply else _worth_it(view, node, consumer, threads):
            return node, consumer
    return None


def _multiplies_into(node: Node, consumer: Node) -> bool:
    return (
        len(node.members) == 1
        and node.members[0].opcode == "arith.mulf"
        and consumer.members[-1].opcode in _ADDITIONS
        and node.members[0].results[0].type.shape == consumer.members[-1].results[0].type.shape
        and not any(work.fused for work in consumer.work)
    )


def _worth_it(view: _View, node: Node, consumer: Node, threads: int) -> bool:
    tiny = few(node, threads)
    tail = node.kind == "reduce" and tiny and few(consumer, threads)
    chain = node.kind == consumer.kind == "elementwise"
    if not (tail or chain or (tiny and node.kind != "reduce")):
        return False
    return view.keeps_waiting(node, consumer) and view.keeps_recurrence(node, consumer, threads)


def few(node: Node, threads: int) -> bool:
    """Return whether the node's result has a few elements a thread."""
    return node.result is not None and tile_elements(node.result) <= _FEW_PER_THREAD * threads


class _View:
    """Look-ups over the flows of one state."""

    def __init__(self, state: Fused) -> None:
        self.nodes = {node.name: node for node in state.nodes}
        self.into: dict[str, list[Flow]] = {node.name: [] for node in state.nodes}
        self.out: dict[str, list[Flow]] = {node.name: [] for node in state.nodes}
        for flow in state.flows:
            self.into[flow.head].append(flow)
            self.out[flow.tail].append(flow)
        self.kept = state.kept
        self.known: dict[str, frozenset[tuple[str, int]]] = {}

    def sole_consumer(self, node: Node) -> Node | None:
        """Return the only consumer, in the same iteration, of a node from registers to registers."""
        heads = {(flow.head, flow.distance) for flow in self.out[node.name]}
        if node.kind not in COMPUTE or len(heads) != 1 or node.name in self.kept:
            return None
        ((head, distance),) = heads
        consumer = self.nodes[head]
        return consumer if distance == 0 and consumer.kind in COMPUTE else None

    def keeps_waiting(self, node: Node, consumer: Node) -> bool:
        """The promise *waiting*."""
        waits = self.waits(node.name)
        others = [flow for flow in self.into[consumer.name] if flow.tail != node.name]
        return not waits or all(self.waits_along(flow) <= waits for flow in others)

    def waits(self, name: str) -> frozenset[tuple[str, int]]:
        """Return the asynchronous results that a node cannot start without, with their distance."""
        if name not in self.known:
            self.known[name] = frozenset[tuple[str, int]]().union(*map(self.waits_along, self.into[name]))
        return self.known[name]

    def waits_along(self, flow: Flow) -> frozenset[tuple[str, int]]:
        """Return what has to be waited for to read along one flow."""
        own = [(flow.tail, flow.distance)] if self.nodes[flow.tail].kind in ASYNCHRONOUS else []
        # What an earlier iteration waited for has long arrived.
        earlier = self.waits(flow.tail) if flow.distance == 0 else ()
        return frozenset((*own, *earlier))

    def keeps_recurrence(self, node: Node, consumer: Node, threads: int) -> bool:
        """The promise *recurrence*."""
        if not self.reaches(consumer.name, consumer.name) or self.reaches(consumer.name, node.name):
            return True
        if node.kind == "elementwise" and few(node, threads):
            return True
        return any(self.nodes[name].kind == "mma" and distance == 0 for name, distance in self.waits(node.name))

    def reaches(self, start: str, end: str) -> bool:
        """Return whether flows of any distance lead from ``start`` to ``end`` in at least one step."""
        seen: set[str] = set()
        pending = [flow.head for flow in self.out[start]]
        while pending:
            name = pending.pop()
            if name == end:
                return True
            if name not in seen:
                seen.add(name)
                pending += [flow.head for flow in self.out[name]]
        return False


def _merge(state: Fused, node: Node, consumer: Node, *, fused_multiply: bool) -> Fused:
    """Return the state with ``node`` inside ``consumer``, which keeps its name and its result."""
    work = tuple(replace(part, fused=True) for part in node.work) if fused_multiply else node.work
    merged = replace(
        consumer,
        kind=_heavier(node, consumer),
        members=(*node.members, *consumer.members),
        work=(*work, *consumer.work),
        reads=(*node.reads, *consumer.reads),
    )
    flows = dict.fromkeys(
        replace(
            flow,
            tail=consumer.name if flow.tail == node.name else flow.tail,
            head=consumer.name if flow.head == node.name else flow.head,
        )
        for flow in state.flows
        if not (flow.tail == node.name and flow.head == consumer.name)
    )
    return Fused(
        nodes=tuple(merged if one.name == consumer.name else one for one in state.nodes if one.name != node.name),
        flows=tuple(flows),
        kept=state.kept,
    )


_WEIGHT = {"elementwise": 0, "convert": 1, "exp": 2, "reduce": 3}


def _heavier(node: Node, consumer: Node) -> str:
    """Return the kind of the part that works on more elements, the heavier kind where they are equal."""

    def weight(one: Node) -> tuple[int, int]:
        elements = max(tile_elements(kind) for work in one.work for kind in (*work.operands, *work.results))
        return elements, _WEIGHT[one.kind]

    return max((node, consumer), key=weight).kind

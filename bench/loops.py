"""Random loops for the growth of search times: seeded, and shaped like the bodies of real loops.

Ops are of the usual mix (integer, multiply, load, store, divide), with latencies up to 20 cycles and divisions that
hold their unit for several cycles. Every op reads a few of the ops shortly before it, as code does; recurrences lead
back over one to three iterations. The document is graph JSON with a machine in place.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of op: unit, cycles for which it is held, latency, and share of the ops."""

    name: str
    unit: str
    cycles: int
    latency: int
    share: int


KINDS = (
    Kind(name="add", unit="alu", cycles=1, latency=1, share=40),
    Kind(name="mul", unit="mul", cycles=1, latency=4, share=18),
    Kind(name="mad", unit="mul", cycles=1, latency=5, share=7),
    Kind(name="load", unit="memory", cycles=1, latency=6, share=22),
    Kind(name="store", unit="memory", cycles=1, latency=1, share=8),
    Kind(name="div", unit="divider", cycles=6, latency=20, share=5),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What to draw.

    Attributes:
        ops: operations in the body.
        interval: cycles that the busiest unit needs, about (set by how many of each unit there are).
        density: edges per op, about.
        recurrences: edges from an earlier iteration.
        seed: of the generator.
        groups: warp groups allowed.
    """

    ops: int
    interval: int
    density: float = 1.6
    recurrences: int = 0
    seed: int = 0
    groups: int = 1


def loop(asked: Loop) -> dict[str, Any]:
    """Return a random loop as a graph document (``twillgpu-graph/1``)."""
    draw = random.Random(repr(asked))  # noqa: S311  # reproducible, not secret
    kinds = draw.choices(KINDS, weights=[kind.share for kind in KINDS], k=asked.ops)
    edges = _forward(asked, kinds, draw)
    return {
        "schema": "twillgpu-graph/1",
        "name": f"loop_{asked.ops}_{asked.interval}_{asked.seed}",
        "machine": _machine(asked, kinds),
        "ops": [
            {
                "name": f"{kind.name}{index}",
                "kind": kind.name,
                "uses": [{"unit": kind.unit, "cycles": kind.cycles}],
                "latency_cycles": kind.latency,
                "warps": 1,
            }
            for index, kind in enumerate(kinds)
        ],
        "edges": [*edges, *_recurrences(asked, kinds, edges, draw)],
        "legality": [],
        "limits": {"max_groups": asked.groups, "registers": 0, "variable_latency": "free"},
    }


def _name(kinds: list[Kind], index: int) -> str:
    return f"{kinds[index].name}{index}"


def _machine(asked: Loop, kinds: list[Kind]) -> dict[str, Any]:
    """Return a machine with as many instances of each unit as the interval asked for needs."""
    loads = {kind.unit: 0 for kind in KINDS}
    for kind in kinds:
        loads[kind.unit] += kind.cycles
    units = {unit: max(1, -(-load // asked.interval)) for unit, load in loads.items()}
    return {
        "name": "loops",
        "units": units,
        "groups": {"max": asked.groups, "warps": [1]},
        "handoff": {"base_cycles": 3, "cycles_per_kb": 0, "barrier_cycles": 2},
    }


def _forward(asked: Loop, kinds: list[Kind], draw: random.Random) -> list[dict[str, Any]]:
    """Return edges from a few of the 12 ops before each op; stores end a chain, loads often begin one."""
    edges = []
    for head in range(1, asked.ops):
        near = [tail for tail in range(max(0, head - 12), head) if kinds[tail].name != "store"]
        mean = asked.density * (0.5 if kinds[head].name == "load" else 1.1)
        count = min(len(near), int(mean) + (draw.random() < mean % 1))
        edges += [{"from": _name(kinds, tail), "to": _name(kinds, head)} for tail in sorted(draw.sample(near, count))]
    return edges


def _recurrences(
    asked: Loop, kinds: list[Kind], edges: list[dict[str, Any]], draw: random.Random
) -> list[dict[str, Any]]:
    """Return edges from an op back to one that it follows from, at a distance of 1 to 3 iterations."""
    into: dict[str, list[str]] = {}
    for edge in edges:
        into.setdefault(edge["to"], []).append(edge["from"])
    ends = [_name(kinds, index) for index, kind in enumerate(kinds) if kind.name != "store"]
    back = []
    for _ in range(asked.recurrences):
        end = start = draw.choice(ends)
        for _ in range(draw.randint(0, 3)):
            start = draw.choice(into.get(start, [start]))
        back.append({"from": end, "to": start, "distance": draw.randint(1, 3)})
    return back

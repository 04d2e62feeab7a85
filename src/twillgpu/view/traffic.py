"""What a loop moves from global memory, against what the memory gives: the model of one SM leaves that out."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.graph.record import DepGraph
from twillgpu.machine.record import Machine
from twillgpu.schedule.record import Schedule
from twillgpu.view.text import number, plural, wrap

LOADS = frozenset({"tma_load", "async_copy", "load"})
OTHERS = frozenset({"tma_store", "tma_reduce", "store", "atomic"})
HBM = "global.hbm_bytes_per_cycle"
PATH = "global.bytes_per_cycle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Global memory traffic of one iteration: bytes loaded, and how many stores and atomics are not in them."""

    load_bytes: int
    not_counted: int


def traffic(graph: DepGraph) -> Traffic:
    """Return the traffic of one iteration of the loop; the bytes of stores are not kept in the graph."""
    return Traffic(
        load_bytes=sum(op.result.bytes for op in graph.ops if op.kind in LOADS and op.result is not None),
        not_counted=sum(op.kind in OTHERS for op in graph.ops),
    )


def traffic_lines(machine: Machine, graph: DepGraph, schedule: Schedule) -> list[str]:
    """One line: bytes per cycle and SM that the loads ask for, and which of the machine's figures they exceed.

    Nothing where the loop loads nothing or the machine has no such figures.
    """
    figures = {figure.path: figure.value for figure in machine.figures}
    moved = traffic(graph)
    if not moved.load_bytes or not (HBM in figures or PATH in figures):
        return []
    rate = moved.load_bytes / schedule.ii_cycles
    stores = f" ({plural(moved.not_counted, 'store or atomic op')} not counted)" if moved.not_counted else ""
    remark = _remark(rate, figures.get(HBM), figures.get(PATH))
    return wrap(f"global memory: loads of {number(rate)} bytes per cycle per SM{stores}; {remark}")


def _remark(rate: float, hbm: float | None, path: float | None) -> str:
    if path is not None and rate > path:
        return f"more than the SM can receive ({number(path)}): the interval is not reachable"
    if hbm is None:
        return "the machine file has no figure for HBM"
    if rate > hbm:
        return f"more than {number(hbm)} needs hits in L2"
    return f"HBM gives each SM {number(hbm)}"

"""The price of a kernel's op from the machine ops it stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from twillgpu.costs import rules_global, rules_memory, rules_simt, rules_tensor
from twillgpu.costs.job import Job
from twillgpu.costs.pricing import Price, at
from twillgpu.errors import InputError
from twillgpu.graph.record import Op, Use, Work
from twillgpu.machine.record import Machine, OpPrice

RULES: dict[str, Callable[[Job], Price]] = {
    "free": rules_simt.free,
    "fp32": rules_simt.pipe,
    "alu": rules_simt.pipe,
    "conversion": rules_simt.pipe,
    "mufu": rules_simt.mufu,
    "reduce": rules_simt.reduce,
    "scan": rules_simt.scan,
    "gather": rules_memory.gather,
    "wgmma": rules_tensor.wgmma,
    "tcgen05": rules_tensor.tcgen05,
    "mma_v2": rules_tensor.mma_v2,
    "convert_layout": rules_memory.convert_layout,
    "local_alloc": rules_memory.local_alloc,
    "local_load": rules_memory.local_load,
    "local_store": rules_memory.local_store,
    "tmem_alloc": rules_memory.tmem_alloc,
    "tmem_load": rules_memory.tmem_load,
    "tmem_store": rules_memory.tmem_store,
    "tma_load": rules_global.tma_load,
    "tma_store": rules_global.tma_store,
    "tma_reduce": rules_global.tma_reduce,
    "global_load": rules_global.global_load,
    "global_store": rules_global.global_store,
    "async_copy": rules_global.async_copy,
    "atomic": rules_global.atomic,
}
"""Every pricing rule that a machine file may name (``twillgpu.machine.schema.PRICING_RULES``)."""


def price_work(op: Op, machine: Machine) -> Price:
    """Return the price of ``op``: its machine ops one after the other, those that are fused into another for free.

    Raises:
        InputError: an opcode or a figure that the machine file does not have, or types that no rule understands.
    """
    parts = [(_price(op, work, machine), _waits(work)) for work in op.work if not work.fused]
    return replace(chain(parts), worked=True)


def chain(parts: Iterable[tuple[Price, bool]]) -> Price:
    """Return the price of ops in one instruction stream: each starts when the one before has issued, and one that
    waits when the results of all before it are there; its uses move to where it starts.
    """
    uses: list[Use] = []
    issue = issued = ready = 0
    found = Price()
    for part, waits in parts:
        start = max(issued, ready) if waits else issued
        uses += [replace(use, offset=use.offset + start) for use in part.uses]
        issue += part.issue_cycles
        issued = start + part.issue_cycles
        ready = max(ready, start + part.latency_cycles)
        found = replace(
            found,
            asynchronous=found.asynchronous or part.asynchronous,
            signals=found.signals or part.signals,
            accumulates=found.accumulates or part.accumulates,
        )
    return replace(found, uses=tuple(uses), issue_cycles=issue, latency_cycles=ready)


def _waits(work: Work) -> bool:
    """Whether a machine op may read what the one before it in the same op has made: not if it reads no registers."""
    return not work.operands or any(kind.shape and kind.space == "registers" for kind in work.operands)


def _price(op: Op, work: Work, machine: Machine) -> Price:
    entry = _entry(op, work, machine)
    return RULES[entry.rule](Job(op=op, work=work, entry=entry, machine=machine))


def _entry(op: Op, work: Work, machine: Machine) -> OpPrice:
    for entry in machine.ops:
        if entry.opcode == work.opcode:
            return entry
    if not machine.ops:
        raise InputError(
            at(op),
            f"machine {machine.name} prices no opcodes, and this is {work.opcode}",
            "choose a real machine (twillgpu machines lists them), or give every op a cost in a graph file",
        )
    raise InputError(
        at(op),
        f"machine {machine.name} has no price for {work.opcode}",
        f'write a machine file with extends = "{machine.name}" and a table [ops."{work.opcode}"] with rule, passes, '
        "source and confidence (docs/machines.md)",
    )

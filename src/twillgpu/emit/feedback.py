"""Whether machine code is what its schedule says: one function per rule, each compares both sides.

Serious findings make the loop slower than the schedule, or the kernel impossible to launch; the others are notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from twillgpu.emit.quotas import expected_quotas
from twillgpu.emit.record import Compiled, Finding, GroupCode
from twillgpu.frontend.kernel import KernelOp, KernelValue, TileType
from twillgpu.graph.body import element_bits
from twillgpu.lower.record import Drain, Execute, GroupProgram, Instruction, Wait, WarpProgram

_SERIALISED = re.compile(r"\(C75\d\d\)|serializ", re.IGNORECASE)
_EXPONENTIALS = frozenset({"math.exp", "math.exp2"})
_TENSOR = frozenset({"HGMMA", "QGMMA", "IGMMA", "UTCHMMA", "UTCQMMA"})
MOST_RELOADS = 4
"""Reloads in a main loop that are no finding: they hit the cache and wait for nothing."""

_STEP_BITS = 256
"""Bits of the inner dimension that one tensor core instruction takes of each row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a block may take: bytes of SMEM, columns of TMEM (0: the machine has none)."""

    smem_bytes: int
    tmem_columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A program, the machine code made of it (groups in the order of the source), and the limits of a block."""

    program: WarpProgram
    groups: tuple[GroupProgram, ...]
    compiled: Compiled
    limits: Limits

    def pairs(self) -> Iterator[tuple[GroupProgram, GroupCode]]:
        """Yield each group with its code."""
        yield from zip(self.groups, self.compiled.groups, strict=True)

    @property
    def planned_smem_bytes(self) -> int:
        """The end of the last buffer in SMEM; barriers and scratch have what is set aside before the first."""
        ends = (ring.offset_bytes + ring.depth * ring.bytes for ring in self.program.rings if ring.memory == "smem")
        return max(ends, default=0)


def findings(judged: Judged) -> tuple[Finding, ...]:
    """Return what every rule of ``RULES`` finds, in their order."""
    return tuple(one for rule in RULES.values() for one in rule(judged))


def _smem_limit(judged: Judged) -> Iterator[Finding]:
    taken, limit = judged.compiled.smem_bytes, judged.limits.smem_bytes
    if taken > limit:
        yield _found("smem_limit", "", f"the block takes {taken:,} B of SMEM, the limit is {limit:,} B")


def _smem_plan(judged: Judged) -> Iterator[Finding]:
    taken, planned = judged.compiled.smem_bytes, judged.planned_smem_bytes
    if planned and taken > planned:
        said = f"the block takes {taken:,} B of SMEM, the schedule planned {planned:,} B: scratch of conversions"
        yield _found("smem_plan", "", said, serious=False)


def _tmem_limit(judged: Judged) -> Iterator[Finding]:
    taken, limit = judged.compiled.tmem_columns, judged.limits.tmem_columns
    if taken > limit:
        yield _found("tmem_limit", "", f"the block takes {taken} columns of TMEM, the limit is {limit}")


def _spills(judged: Judged) -> Iterator[Finding]:
    for group, code in judged.pairs():
        quota = f"{code.live_registers} registers live of {code.maxreg}"
        if code.loop is not None and (code.loop.stores or code.loop.spills > MOST_RELOADS):
            yield _found("spills", group.name, f"{code.loop.spills} spill instructions in the main loop, {quota}")


def _reloads(judged: Judged) -> Iterator[Finding]:
    for group, code in judged.pairs():
        inside = code.loop.spills if code.loop is not None else 0
        spilling = code.loop is not None and code.loop.stores
        if 0 < inside <= MOST_RELOADS and not spilling:
            said = f"{inside} reloads in the main loop of what is made before the groups part"
            yield _found("reloads", group.name, said, serious=False)
        if code.spills > inside:
            said = f"{code.spills - inside} spill instructions before and after the main loop"
            yield _found("spills_outside", group.name, said, serious=False)


def _serialised(judged: Judged) -> Iterator[Finding]:
    for warning in judged.compiled.warnings:
        if _SERIALISED.search(warning):
            yield _found("serialised", "", warning)


def _quotas(judged: Judged) -> Iterator[Finding]:
    expected = expected_quotas(judged.groups, judged.compiled.registers_per_thread, judged.compiled.warps)
    for (group, code), quota in zip(judged.pairs(), expected, strict=True):
        if len(judged.groups) > 1 and code.maxreg != quota:
            yield _found("setmaxnreg", group.name, f"setmaxnreg is {code.maxreg}, {quota} registers were asked for")


def _tensor_count(judged: Judged) -> Iterator[Finding]:
    ops = _kernel_ops(judged.program)
    types = {value.name: value.type for value in _values(judged.program)}
    for group, code in judged.pairs():
        wanted = sum(_instructions(one, ops, types, group.warps) for one in _tensor_ops(group.loop))
        counts = dict(code.loop.counts) if code.loop is not None else dict(code.counts)
        found = sum(counts.get(opcode, 0) for opcode in _TENSOR)
        if wanted and found != wanted:
            said = f"{found} tensor core instructions in the main loop, {wanted} in the program"
            yield _found("tensor_count", group.name, said)


def _order(judged: Judged) -> Iterator[Finding]:
    ops = _kernel_ops(judged.program)
    for group, code in judged.pairs():
        written = overlaps(group.loop, ops)
        left = _overlaps_left(code)
        if left < written:
            said = f"exponentials run while a product is in flight {left} times in an iteration, {written} as written"
            yield _found("order", group.name, said)


def _waits(judged: Judged) -> Iterator[Finding]:
    for group, code in judged.pairs():
        written = sum(isinstance(one, Wait) for one in group.loop)
        found = code.loop.waits if code.loop is not None else written
        if found > written:
            said = f"{found} barrier waits in an iteration, {written} as written"
            yield _found("waits", group.name, said, serious=False)


RULES: Mapping[str, Callable[[Judged], Iterator[Finding]]] = MappingProxyType(
    {
        "smem_limit": _smem_limit,
        "smem_plan": _smem_plan,
        "tmem_limit": _tmem_limit,
        "spills": _spills,
        "reloads": _reloads,
        "serialised": _serialised,
        "setmaxnreg": _quotas,
        "tensor_count": _tensor_count,
        "order": _order,
        "waits": _waits,
    }
)
"""Every rule by name."""


Event = tuple[Literal["issue", "exp", "drain"], int]
"""Something that happens in a loop; with a drain, the products that it leaves in flight."""


def overlaps(loop: Iterable[Instruction], ops: Mapping[str, KernelOp]) -> int:
    """Return how many waits for wgmma in one iteration follow an exponential while a product is in flight."""
    return _overlapped([event for one in loop for event in _events(one, ops)])


def _overlaps_left(code: GroupCode) -> int:
    kinds: dict[str, Literal["issue", "exp", "drain"]] = {"tensor": "issue", "exp": "exp", "drain": "drain"}
    order = code.loop.order if code.loop is not None else ()
    return _overlapped([(kinds[run.kind], run.pending) for run in order if run.kind in kinds])


def _overlapped(events: list[Event]) -> int:
    """Count the drains of something in flight with an exponential since the last issue, in the second of two
    iterations.
    """
    found, flying, since = 0, 0, False
    for number, (kind, pending) in enumerate(events + events):
        if kind == "issue":
            flying, since = flying + 1, False
        elif kind == "exp":
            since = flying > 0
        elif flying > pending:
            found += since and number >= len(events)
            flying, since = pending, False
    return found


def _events(instruction: Instruction, ops: Mapping[str, KernelOp]) -> Iterator[Event]:
    if isinstance(instruction, Drain) and instruction.engine == "wgmma":
        yield "drain", instruction.pending
    if isinstance(instruction, Execute):
        if instruction.engine == "wgmma":
            yield "issue", 0
        elif any(_exponential(ops[member]) for member in instruction.members):
            yield "exp", 0


def _exponential(op: KernelOp) -> bool:
    """Return whether an op takes the exponential of a tile of at least two dimensions."""
    return op.opcode in _EXPONENTIALS and len(op.results[0].type.shape) > 1


def _tensor_ops(instructions: Iterable[Instruction]) -> Iterator[Execute]:
    for one in instructions:
        if isinstance(one, Execute) and one.engine in ("wgmma", "tcgen05"):
            yield one


def _instructions(
    instruction: Execute, ops: Mapping[str, KernelOp], types: Mapping[str, TileType], warps: int
) -> int:
    """Return the tensor core instructions of one product, per warpgroup: wgmma has 64 rows, tcgen05 up to 128; both
    up to 256 columns, and 256 bits of the inner dimension.
    """
    op = ops[instruction.members[-1]]
    left, right = (types[name] for name in op.operands[:2])
    rows, inner = left.shape[-2:]
    step = _STEP_BITS // element_bits(left.dtype)
    height = 64 * max(1, warps // 4) if instruction.engine == "wgmma" else 128
    return -(-rows // height) * -(-right.shape[-1] // 256) * -(-inner // step)


def _kernel_ops(program: WarpProgram) -> dict[str, KernelOp]:
    kernel = program.kernel
    return {op.name: op for op in (*kernel.before, *kernel.loop.body, *kernel.after)}


def _values(program: WarpProgram) -> Iterator[KernelValue]:
    for op in _kernel_ops(program).values():
        yield from op.results


def _found(rule: str, group: str, message: str, *, serious: bool = True) -> Finding:
    return Finding(rule=rule, group=group, message=message, serious=serious)

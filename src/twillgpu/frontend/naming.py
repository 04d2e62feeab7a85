"""Readable unique names for the ops and values of a kernel, from the user's variables.

The op that makes the final value of a variable gets the variable's name (``p`` for the exponential), the other
steps the name and the opcode (``p_subf``). A tensor core op comes first (``qk``), ops that only move data last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from twillgpu.frontend.generic import MlirOp

TENSOR_OPCODES = ("tt.dot", "tt.dot_scaled", "ttng.warp_group_dot", "ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled")
"""The ops of the tensor core."""

_PLACEMENT = (
    "tt.broadcast", "tt.expand_dims", "tt.splat", "ttg.convert_layout", "ttg.local_alloc", "ttg.local_load",
    "ttg.memdesc_trans", "ttng.tmem_alloc", "ttng.tmem_load", "ttng.tmem_store",
)  # fmt: skip
_CASTS = ("arith.extf", "arith.truncf", "tt.fp_to_fp")
_INTEGER = re.compile(r"(-?\d+) : \w+")
_FLAGS = ("padding", "roundF32ToTF32")
_UNSAFE = re.compile(r"[^\w.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinted:
    """An op and the variable that it helps to compute (empty where unknown), or that it only moves."""

    op: MlirOp
    hint: str
    moves: bool = False


class Names:
    """Allots unique names; ``values`` maps the MLIR name of a value to its name in the kernel, ``ops`` the index
    of an op to the op's name. ``hints`` maps the MLIR name of a value to the user's variable.
    """

    def __init__(self) -> None:
        self.hints: dict[str, str] = {}
        self.taken: set[str] = set()
        self.values: dict[str, str] = {}
        self.ops: dict[int, str] = {}

    def unique(self, wanted: str) -> str:
        """Return ``wanted``, or ``wanted_1`` and so on when it is taken, and take it."""
        base = _UNSAFE.sub("_", wanted) or "value"
        name, number = base, 0
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name

    def value(self, mlir_name: str, wanted: str) -> str:
        """Name one value."""
        self.values[mlir_name] = self.unique(wanted)
        return self.values[mlir_name]

    def follow(self, ops: Sequence[Hinted]) -> tuple[Hinted, ...]:
        """Return ``ops`` in order with the variable that is moved as the hint of an op that only moves or converts
        data on the way to another op's result (``k`` for the copy of K into SMEM that ``qk = dot(q, k.T)`` needs).
        """
        final = {hint: op.index for hint, op in _final_ops(ops).items()}
        found = []
        for hinted in ops:
            op = hinted.op
            moves = op.opcode in (*_PLACEMENT, *_CASTS) and final.get(hinted.hint) != op.index
            moved = self.hints.get(op.operands[0]) if moves and op.operands else None
            hint = moved or hinted.hint
            self.hints |= dict.fromkeys((result.name for result in op.results), hint)
            found.append(Hinted(op=op, hint=hint, moves=moved is not None))
        return tuple(found)

    def section(self, ops: Sequence[Hinted]) -> None:
        """Name the ops of one section (before the loop, its body, after it) and their results."""
        final = {hint: op.index for hint, op in _final_ops(ops).items() if hint not in self.taken}
        for hinted in sorted(ops, key=lambda hinted: final.get(hinted.hint) != hinted.op.index):
            short = hinted.op.opcode.rsplit(".", 1)[-1]
            bare = final.get(hinted.hint) == hinted.op.index
            wanted = hinted.hint if bare else f"{hinted.hint}_{short}".lstrip("_")
            self._op(hinted.op, _constant_name(hinted.op) or wanted)

    def _op(self, op: MlirOp, wanted: str) -> None:
        name = self.unique(wanted)
        self.ops[op.index] = name
        for position, result in enumerate(op.results):
            kind = "token" if result.type == "!ttg.async.token" else str(position)
            self.values[result.name] = name if position == 0 else self.unique(f"{name}_{kind}")


def _final_ops(ops: Sequence[Hinted]) -> dict[str, MlirOp]:
    """Return for each variable the op that gets its bare name: the last one of the highest rank."""
    final: dict[str, MlirOp] = {}
    for hinted in ops:
        held = final.get(hinted.hint)
        if hinted.hint and not hinted.moves and (held is None or _rank(hinted.op) >= _rank(held)):
            final[hinted.hint] = hinted.op
    return final


def _rank(op: MlirOp) -> int:
    if op.opcode in TENSOR_OPCODES:
        return 2
    return 0 if op.opcode in _PLACEMENT else 1


def _constant_name(op: MlirOp) -> str:
    """Return ``c128`` for a scalar integer, ``cm1`` for a negative one, ``true`` and ``false``, else nothing."""
    value = op.attribute("value") if op.opcode == "arith.constant" else None
    match = _INTEGER.fullmatch(value or "")
    if match is None:
        return value if value in ("true", "false") else ""
    return f"c{match.group(1).replace('-', 'm')}"


def argument_names(hints: Iterable[str], ranks: Mapping[int, int], pointers: Iterable[int] = ()) -> tuple[str, ...]:
    """Return names for a function's arguments; ``ranks`` gives the rank of the descriptor at a position.

    Triton passes a descriptor of rank r as 1 + 2r arguments; some versions call them all by the same name.
    They become ``q``, ``q.shape.0``, ``q.shape.1``, ``q.stride.0``, ``q.stride.1``. For a target without TMA it
    passes a pointer (one of ``pointers``), shape and strides, one or two flags, and shape and strides again.
    """
    names = list(hints)
    for position, rank in ranks.items():
        _name_parts(names, position, _parts(rank))
    for position in pointers:
        alike = len(list(takewhile(names[position].__eq__, names[position + 1 :])))
        rank, flags = divmod(alike, 4)
        if rank and flags in (1, 2):
            _name_parts(names, position, [*_parts(rank), *_FLAGS[:flags], *_parts(rank)])
    return tuple(names)


def _parts(rank: int) -> list[str]:
    return [f"{part}.{axis}" for part in ("shape", "stride") for axis in range(rank)]


def _name_parts(names: list[str], position: int, parts: Sequence[str]) -> None:
    """Name the arguments after ``position``, if they all have its name."""
    base, end = names[position], position + 1 + len(parts)
    if Counter(names[position + 1 : end]) == {base: len(parts)}:
        names[position + 1 : end] = [f"{base}.{part}" for part in parts]

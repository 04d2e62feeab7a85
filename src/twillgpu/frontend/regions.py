"""From the regions of an MLIR op to closed ``Region`` records, with names of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from twillgpu.frontend.generic import MlirBlock, MlirModule, MlirOp
from twillgpu.frontend.kernel import KernelOp, KernelValue, Region
from twillgpu.frontend.loops import COMBINING_OPCODES
from twillgpu.frontend.naming import Hinted, Names
from twillgpu.frontend.tile_types import tile_type

_DEFAULTS = frozenset(
    {
        ("boundaryCheck", "array<i32>"),
        ("cache", "1 : i32"),
        ("evict", "1 : i32"),
        ("fastmath", "#arith.fastmath<none>"),
        ("isVolatile", "false"),
        ("overflowFlags", "#arith.overflow<none>"),
    }
)
"""Attributes that say nothing, which some versions of Triton print and others do not."""


class Places(Protocol):
    """Where ops come from in the user's file."""

    def hint(self, location: str) -> str:
        """Return the user's variable at a location, empty where unknown."""

    def source(self, op: MlirOp) -> str:
        """Return ``file.py:line`` of an op."""


def kernel_attributes(module: MlirModule, op: MlirOp) -> tuple[tuple[str, str], ...]:
    """Return the sorted attributes of ``op`` with their aliases expanded, without those that say nothing."""
    return tuple(sorted((key, module.expand(text)) for key, text in op.attributes if (key, text) not in _DEFAULTS))


def body_opcodes(op: MlirOp) -> tuple[str, ...]:
    """Return the opcodes inside the regions of ``op``; those of a function of elements without its terminator."""
    last = {block.ops[-1].index for region in op.regions for block in region if block.ops}
    combining = op.opcode in COMBINING_OPCODES
    return tuple(nested.opcode for nested in op.nested() if not (combining and nested.index in last))


def free_values(ops: Sequence[MlirOp]) -> tuple[str, ...]:
    """Return the values that ``ops`` and what is inside them read and do not define, in order of use."""
    every = [nested for op in ops for nested in (op, *op.nested())]
    blocks = [block for op in every for region in op.regions for block in region]
    defined = {result.name for op in every for result in op.results}
    defined |= {argument.name for block in blocks for argument in block.arguments}
    return tuple(dict.fromkeys(name for op in every for name in op.operands if name not in defined))


class RegionBuilder:
    """Builds the regions of the ops of one module."""

    def __init__(self, module: MlirModule, places: Places) -> None:
        self.module = module
        self.places = places
        self.types: dict[str, str] = {}
        for op in module.op.nested():
            self.types.update((result.name, result.type) for result in op.results)
            arguments = (value for region in op.regions for block in region for value in block.arguments)
            self.types.update((value.name, value.type) for value in arguments)

    def of(self, op: MlirOp, operands: Sequence[str], names: Mapping[str, str]) -> tuple[Region, ...]:
        """Return the regions of ``op``: none for a combine function that is one op on its arguments, and none where
        a region branches.

        Args:
            op: the op.
            operands: MLIR names of its operands, with the values that only its regions read.
            names: names outside of the op of those values, by MLIR name.
        """
        if _is_one_op(op) or any(len(region) != 1 for region in op.regions if region):
            return ()
        return tuple(self._region(region[0], operands, names) for region in op.regions if region)

    def _region(self, block: MlirBlock, operands: Sequence[str], outside: Mapping[str, str]) -> Region:
        own = [argument.name for argument in block.arguments]
        read = [name for name in free_values(block.ops) if name not in own]
        names = Names()
        for argument in block.arguments:
            names.value(argument.name, self.places.hint(argument.location) or "argument")
        for name in read:
            names.value(name, outside[name])
        inner, last = block.ops[:-1], block.ops[-1]
        names.section(names.follow([Hinted(op=op, hint=self.places.hint(op.location)) for op in inner]))
        return Region(
            arguments=tuple(self._value(name, names) for name in (*own, *read)),
            captures=tuple(operands.index(name) for name in read),
            ops=tuple(self._op(op, names) for op in inner),
            yielded=tuple(names.values[name] for name in last.operands),
        )

    def _op(self, op: MlirOp, names: Names) -> KernelOp:
        inner = [nested for region in op.regions for block in region for nested in block.ops]
        arguments = {value.name for region in op.regions for block in region for value in block.arguments}
        extra = (name for name in free_values(inner) if name not in arguments and name not in op.operands)
        operands = (*op.operands, *extra)
        return KernelOp(
            name=names.ops[op.index],
            opcode=op.opcode,
            operands=tuple(names.values[name] for name in operands),
            results=tuple(self._value(result.name, names) for result in op.results),
            attributes=kernel_attributes(self.module, op),
            source=self.places.source(op),
            body=body_opcodes(op),
            regions=self.of(op, operands, names.values),
        )

    def _value(self, name: str, names: Names) -> KernelValue:
        return KernelValue(name=names.values[name], type=tile_type(self.module.expand(self.types[name])))


def _is_one_op(op: MlirOp) -> bool:
    """Return whether the op combines two elements by one op on the block's arguments in order."""
    if op.opcode not in COMBINING_OPCODES or len(op.regions) != 1 or len(op.regions[0]) != 1:
        return False
    block = op.regions[0][0]
    if len(block.ops) != 2 or len(block.arguments) != 2:
        return False
    inner, last = block.ops
    plain = inner.operands == tuple(argument.name for argument in block.arguments)
    return plain and last.operands == tuple(result.name for result in inner.results)

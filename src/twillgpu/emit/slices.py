"""Which tiles of a group are worked on in column slices.

A load of a whole tile of 128 columns from TMEM needs 128 consecutive registers per thread, and a second tile of that
size beside it does not fit in most quotas. Where each thread holds a whole row, elementwise work, row reductions, and
loads and stores can go column slice by column slice without any exchange between threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from twillgpu.emit.frame import Frame
from twillgpu.emit.loop_variables import LoopVariables
from twillgpu.frontend.kernel import KernelOp, TileType
from twillgpu.frontend.layouts import parse_layout
from twillgpu.graph.body import element_bits
from twillgpu.lower.record import Execute, Get, GroupProgram, Instruction, Put

WIDTH = 32
"""Columns of a slice: a TMEM load of 32 registers."""

_SWIZZLE_BITS = 1024
"""Bits of a row of an SMEM tile in 128-byte swizzle: a slice of it has at least so many."""

_LEAST_COLUMNS = 128
_STORES = {"ttng.tmem_store": "tmem", "ttng.tmem_alloc": "tmem", "ttg.local_alloc": "smem", "ttg.local_store": "smem"}
_ELEMENTWISE = ("arith.", "math.")
_COMBINED = frozenset({"arith.addf", "arith.maxnumf", "arith.minnumf"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Slicing:
    """How a tile is cut: columns of a slice, number of slices, type of a slice."""

    width: int
    count: int
    tile: TileType


def slicings(frame: Frame, group: GroupProgram, variables: LoopVariables, kept: set[str]) -> dict[str, Slicing]:
    """Return how each tile of a group is cut; tiles that are not cut are not in it.

    Args:
        frame: the file.
        group: the group's program.
        variables: of the group's loop.
        kept: values that must exist as one variable (before the loop, or across conditional blocks).
    """
    parts = _Parts(frame=frame, candidates=_candidates(frame, group))
    for value in parts.candidates & kept:
        parts.whole(value)
    for value in parts.candidates:
        if variables.last.get(value, 0):
            parts.whole(value)
    for region in (group.before, group.prologue, group.loop, group.epilogue, group.after):
        for instruction in region:
            _visit(parts, instruction)
    return dict(parts.found())


def _candidates(frame: Frame, group: GroupProgram) -> set[str]:
    return {
        result.name
        for region in (group.before, group.prologue, group.loop, group.epilogue, group.after)
        for instruction in region
        if isinstance(instruction, Execute)
        for member in instruction.members
        for result in frame.op_named(member).results
        if not frame.inline(frame.op_named(member)) and rows_in_threads(result.type)
    }


def rows_in_threads(kind: TileType) -> bool:
    """Return whether each thread holds a whole row of at least 128 columns."""
    found = parse_layout(kind.layout) if kind.layout else None
    if kind.space != "registers" or found is None or found.name != "linear" or len(kind.shape) != 2:
        return False
    elsewhere = [vector for key in ("lane", "warp") for vector in found.vectors(key)]
    columns = {vector[1] for vector in found.vectors("register") if not vector[0]}
    whole = {1 << bit for bit in range(kind.shape[1].bit_length() - 1)}
    return kind.shape[1] >= _LEAST_COLUMNS and columns == whole and not any(vector[1] for vector in elsewhere)


class _Parts:
    """Sets of tiles that are cut in the same way, as a union of what ops tie together."""

    def __init__(self, frame: Frame, candidates: set[str]) -> None:
        self.frame, self.candidates = frame, candidates
        self.parent = {value: value for value in candidates}
        self.not_cut: set[str] = set()
        self.least: dict[str, int] = {}

    def root(self, value: str) -> str:
        while self.parent[value] != value:
            value = self.parent[value]
        return value

    def tie(self, values: list[str]) -> None:
        for value in values[1:]:
            self.parent[self.root(value)] = self.root(values[0])

    def whole(self, value: str) -> None:
        self.not_cut.add(value)

    def found(self) -> Iterator[tuple[str, Slicing]]:
        bad = {self.root(value) for value in self.not_cut}
        least: dict[str, int] = {}
        for value, width in self.least.items():
            least[self.root(value)] = max(width, least.get(self.root(value), WIDTH))
        for value in sorted(self.candidates):
            root = self.root(value)
            kind = self.frame.types[value]
            width = least.get(root, WIDTH)
            if root not in bad and width < kind.shape[1]:
                yield value, Slicing(width=width, count=kind.shape[1] // width, tile=narrowed(kind, width))


def narrowed(kind: TileType, width: int) -> TileType:
    """Return the type of the first ``width`` columns of a tile."""
    found = parse_layout(kind.layout)
    if found is None:
        return kind
    kept = tuple(vector for vector in found.vectors("register") if vector[1] < width)
    return replace(kind, shape=(kind.shape[0], width), layout=str(found.with_entry("register", kept)))


def _visit(parts: _Parts, instruction: Instruction) -> None:
    if isinstance(instruction, Get):
        if instruction.value in parts.candidates:
            parts.whole(instruction.value)
    elif isinstance(instruction, Put):
        ring = parts.frame.rings[instruction.access.ring]
        _stored(parts, _tiles(parts, instruction.value), ring.tile, "smem")
    elif isinstance(instruction, Execute) and instruction.engine != "tma_store":
        for member in instruction.members:
            op = parts.frame.op_named(member)
            if not parts.frame.inline(op):
                _operation(parts, op)


def _operation(parts: _Parts, op: KernelOp) -> None:
    """Tie what an op works on, or mark what it needs whole."""
    made = [value.name for value in op.results if value.name in parts.candidates]
    read = [tile for operand in op.operands for tile in _tiles(parts, operand)]
    if not made and not read:
        return
    ways = (_is_load(op), _is_reduction(op), op.opcode.startswith(_ELEMENTWISE) and _by_rows(parts, op, made))
    if op.opcode in _STORES:
        target = op.results[0].type if op.opcode.endswith("alloc") else parts.frame.types[op.operands[0]]
        memory = parts.frame.types[op.operands[1]] if op.opcode == "ttg.local_store" else target
        _stored(parts, read, memory, _STORES[op.opcode])
    elif any(ways):
        parts.tie([*made, *read])
    else:
        for value in (*made, *read):
            parts.whole(value)


def _stored(parts: _Parts, tiles: list[str], memory: TileType, space: str) -> None:
    """Note the least width of a slice that can be stored, or that the tile is stored whole."""
    for tile in tiles:
        if space == "smem":
            if "nvmma_shared" not in memory.layout:
                parts.whole(tile)
            parts.least[tile] = max(parts.least.get(tile, 0), _SWIZZLE_BITS // element_bits(memory.dtype))


def _is_load(op: KernelOp) -> bool:
    return op.opcode == "ttng.tmem_load"


def _is_reduction(op: KernelOp) -> bool:
    axis = (op.attribute("axis") or "0").split()[0]
    return op.opcode == "tt.reduce" and axis == "1" and len(op.body) == 1 and op.body[0] in _COMBINED


def _by_rows(parts: _Parts, op: KernelOp, made: list[str]) -> bool:
    """Return whether every operand is a tile that is cut as well, a scalar, or a vector with an element per row."""
    return bool(made) and all(_rows(parts, operand) for operand in op.operands)


def _rows(parts: _Parts, value: str) -> bool:
    kind = parts.frame.types[value]
    maker = parts.frame.makers.get(value)
    if value in parts.candidates or not kind.shape:
        return True
    if maker is None or not parts.frame.inline(maker):
        return False
    if maker.opcode == "tt.expand_dims":
        return (maker.attribute("axis") or "0").split()[0] == "1"
    return all(_rows(parts, operand) for operand in maker.operands)


def _tiles(parts: _Parts, value: str) -> list[str]:
    """Return the tiles that a value is, seen through what is written in place."""
    if value in parts.candidates:
        return [value]
    maker = parts.frame.makers.get(value)
    if maker is None or not parts.frame.inline(maker):
        return []
    return [tile for operand in maker.operands for tile in _tiles(parts, operand)]

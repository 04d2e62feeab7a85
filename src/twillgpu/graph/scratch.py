"""SMEM that Triton's compiler takes for ops that move register values between warps: an upper bound.

The compiler gives every such op a buffer of its own for as long as it runs, beside whatever the kernel allocates.
Ops of one warp group take turns and share their place; those of different groups do not. A change of layout takes
the bytes of its tile at most; a reduction over several warps one element for each row and warp.

On Ampere, for which no code is emitted, nothing is counted: most changes of layout there are operands of ``tt.dot``,
which are read from SMEM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twillgpu.frontend.kernel import Kernel, KernelOp, Region, TileType
from twillgpu.graph.body import element_bits, tile_bytes, tile_elements
from twillgpu.graph.direct import stored_directly
from twillgpu.graph.kinds import GLOBAL_OPCODES
from twillgpu.graph.layout import owners, same_owners

GROUPS = 5
"""Warp groups of a block at most, the one that may be added for what is done after the loop included."""

SPECIALISED = ("sm_90a", "sm_100a")
"""Targets that code is emitted for."""

LEAST_BYTES = 4
"""A reduction takes no less for an element."""

_PURE = frozenset({"tt.load", "tt.descriptor_load", "tt.descriptor_gather"})


def scratch_bytes(kernel: Kernel, nodes: Iterable[tuple[str, tuple[KernelOp, ...]]]) -> int:
    """Return the bytes of scratch that a block may need at most, however ops are shared out among its groups.

    Args:
        kernel: the kernel.
        nodes: the ops of the loop, those that always run in one group together, with the kind of node. A copy to
            SMEM changes no layout: its readers load the tile in theirs.
    """
    if kernel.target not in SPECIALISED:
        return 0
    found, nodes = _Scratch(kernel), tuple(nodes)
    sites = [max(map(found.needed, members), default=0) for kind, members in nodes if kind != "async_copy"]
    # What is no node of its own is done by every group that needs it; what only serves a store is not written.
    counted = {op.name for _, members in nodes for op in members} | set(stored_directly(kernel))
    for op in kernel.loop.body:
        sites += [0 if op.name in counted else found.needed(op)] * GROUPS
    for op in (*kernel.before, *kernel.after):
        sites += [0 if op.name in counted else found.needed(op)] * min(GROUPS, found.performers(op))
    return sum(sorted(sites, reverse=True)[:GROUPS])


class _Scratch:
    """Look-ups over one kernel: types, readers, and ops behind an op."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.types: Mapping[str, TileType] = _types(kernel)
        self.readers: dict[str, list[KernelOp]] = {}
        for op in (*kernel.before, *kernel.loop.body, *kernel.after):
            for operand in op.operands:
                self.readers.setdefault(operand, []).append(op)
        self.once = {op.name for op in (*kernel.loop.body, *kernel.after) if op in kernel.loop.body or _effect(op)}

    def needed(self, op: KernelOp, inner: Mapping[str, TileType] | None = None) -> int:
        """Return the bytes that an op, or the ops inside it, need; ``inner``: types of the names of its region."""
        types = {**self.types, **(inner or {})}
        inside = [
            self.needed(one, {**(inner or {}), **_region_types(region)})
            for region in op.regions
            for one in region.ops
        ]
        rule = _RULES.get(op.opcode)
        operands = [types[name] for name in op.operands if name in types]
        own = 0 if rule is None or not op.results or not operands else rule(op, operands[0])
        return max([own, *inside])

    def performers(self, op: KernelOp) -> int:
        """Return how many groups may do an op outside the loop: one for each op that is done once and needs it."""
        found: set[str] = set()
        todo, seen = [op], {op.name}
        while todo:
            one = todo.pop()
            if one.name in self.once:
                found.add(one.name)
                continue
            following = [user for result in one.results for user in self.readers.get(result.name, [])]
            todo += [user for user in following if user.name not in seen]
            seen.update(user.name for user in following)
        carried = {value.initial for value in self.kernel.loop.carried}
        loop = any(result.name in carried for result in op.results) or found & self._loop()
        return GROUPS if loop else max(1, len(found))

    def _loop(self) -> set[str]:
        return {op.name for op in self.kernel.loop.body}


def _effect(op: KernelOp) -> bool:
    return not op.results or (op.opcode in GLOBAL_OPCODES and op.opcode not in _PURE)


def _types(kernel: Kernel) -> dict[str, TileType]:
    found = {value.name: value.type for value in (*kernel.arguments, kernel.loop.induction)}
    for carried in kernel.loop.carried:
        found |= {carried.argument.name: carried.argument.type, carried.result: carried.argument.type}
    ops = (*kernel.before, *kernel.loop.body, *kernel.after)
    return found | {result.name: result.type for op in ops for result in op.results}


def _region_types(region: Region) -> dict[str, TileType]:
    """Return the types of the names inside a region, which may be those of other values outside."""
    found = {value.name: value.type for value in region.arguments}
    return found | {result.name: result.type for op in region.ops for result in op.results}


def _converted(op: KernelOp, source: TileType) -> int:
    target = op.results[0].type
    if source.space != "registers" or not source.shape or same_owners(source, target):
        return 0
    return tile_elements(source) * max(1, element_bits(source.dtype) // 8)


def _spread(op: KernelOp, source: TileType) -> int:
    """A tile of one row or column that is spread over a tile of another layout."""
    same = not source.shape or source.layout == op.results[0].type.layout
    return 0 if same else tile_bytes(source)


def _reshaped(op: KernelOp, source: TileType) -> int:
    return tile_bytes(source) if source.shape and op.results[0].type.space == "registers" else 0


def _reduced(op: KernelOp, source: TileType) -> int:
    axis = int((op.attribute("axis") or "0").split()[0])
    found = owners(source)
    bits = None if found is None else sum(1 for vector in found.warp if vector[axis])
    warps = _MOST_WARPS if bits is None else 1 << bits
    size = max(LEAST_BYTES, element_bits(source.dtype) // 8)
    rows = tile_elements(source) // source.shape[axis]
    return rows * warps * size * len(op.operands) if warps > 1 else 0


_MOST_WARPS = 16
_RULES = {
    "ttg.convert_layout": _converted,
    "tt.broadcast": _spread,
    "tt.reshape": _reshaped,
    "tt.reduce": _reduced,
}

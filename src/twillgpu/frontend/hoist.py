"""Moving loop-invariant ops in front of the loop: ops that compute the same in every iteration."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.frontend.generic import MlirBlock, MlirOp

_PURE_DIALECTS = ("arith", "math")
_PURE = frozenset(
    {
        "tt.addptr", "tt.bitcast", "tt.broadcast", "tt.cat", "tt.clampf", "tt.dot", "tt.expand_dims",
        "tt.fp_to_fp", "tt.gather", "tt.get_num_programs", "tt.get_program_id", "tt.int_to_ptr", "tt.join",
        "tt.make_range", "tt.make_tensor_descriptor", "tt.mulhiui", "tt.precise_divf", "tt.precise_sqrt",
        "tt.ptr_to_int", "tt.reduce", "tt.reshape", "tt.scan", "tt.splat", "tt.split", "tt.trans", "tt.unsplat",
        "ttg.convert_layout", "ttg.memdesc_index", "ttg.memdesc_reinterpret", "ttg.memdesc_reshape",
        "ttg.memdesc_subslice", "ttg.memdesc_trans", "ttng.tmem_subslice", "ttng.warp_group_dot",
    }
)  # fmt: skip
_COPIES = frozenset({"ttg.local_alloc", "ttng.tmem_alloc"})
_LOADS = frozenset({"tt.descriptor_load", "tt.descriptor_gather"})
_WRITES = frozenset(
    {
        "tt.store", "tt.descriptor_store", "tt.descriptor_reduce", "tt.descriptor_scatter", "tt.atomic_rmw",
        "tt.atomic_cas", "tt.elementwise_inline_asm", "tt.extern_elementwise", "tt.call",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Hoisted:
    """The ops that move in front of the loop and those that stay in its body, each in program order."""

    moved: tuple[MlirOp, ...]
    body: tuple[MlirOp, ...]


def hoist(block: MlirBlock) -> Hoisted:
    """Split the body of a loop, ``block`` with the loop's arguments and its terminator, into what moves and what
    stays (the terminator is in neither).

    Pure ops of invariant operands move, and so do copies of an invariant tile into SMEM or TMEM, and TMA loads of
    an invariant tile where the loop writes no global memory (a TMA load out of bounds is harmless, so a loop of no
    iterations is safe too; loads through pointers stay).
    """
    writes = any(op.opcode in _WRITES for op in block.ops)
    varying = {argument.name for argument in block.arguments}
    moved: list[MlirOp] = []
    body: list[MlirOp] = []
    for op in block.ops[:-1]:
        if _movable(op, loads=not writes) and varying.isdisjoint(op.operands):
            moved.append(op)
            continue
        body.append(op)
        varying.update(result.name for result in op.results)
    return Hoisted(moved=tuple(moved), body=tuple(body))


def _movable(op: MlirOp, *, loads: bool) -> bool:
    if op.opcode in _COPIES:
        return bool(op.operands) and not any("mutable" in result.type for result in op.results)
    if op.opcode in _LOADS:
        return loads
    return op.opcode in _PURE or op.opcode.split(".", 1)[0] in _PURE_DIALECTS

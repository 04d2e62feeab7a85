"""Which ops do work, and of what kind.

Views, free changes of layout, scalars, tokens and address arithmetic do no work that a schedule could move: they are
no nodes of the graph, and dependences go through them.
"""

from __future__ import annotations

from twillgpu.frontend.kernel import KernelOp
from twillgpu.graph.body import Body
from twillgpu.graph.layout import same_owners

VIEWS = frozenset(
    {
        "arith.bitcast", "arith.constant", "tt.bitcast", "tt.broadcast", "tt.cat", "tt.expand_dims", "tt.join",
        "tt.make_range", "tt.reshape", "tt.splat", "tt.split", "tt.trans", "tt.unsplat", "ttg.memdesc_index",
        "ttg.memdesc_reinterpret", "ttg.memdesc_reshape", "ttg.memdesc_subslice", "ttg.memdesc_subview",
        "ttg.memdesc_trans", "ttng.tmem_subslice", "tt.int_to_ptr", "tt.ptr_to_int", "ub.poison",
    }
)  # fmt: skip
"""Another name for registers or memory, or a constant."""

KINDS = {
    "tt.descriptor_load": "tma_load",
    "tt.descriptor_gather": "tma_load",
    "tt.load": "load",
    "tt.dot": "mma",
    "tt.dot_scaled": "mma",
    "ttng.warp_group_dot": "mma",
    "ttng.tc_gen5_mma": "mma",
    "ttng.tc_gen5_mma_scaled": "mma",
    "tt.reduce": "reduce",
    "tt.scan": "reduce",
    "ttg.convert_layout": "layout",
    "tt.gather": "layout",
    "ttng.tmem_load": "tmem_load",
    "ttng.tmem_store": "tmem_store",
    "ttng.tmem_alloc": "tmem_store",
    "ttg.local_alloc": "local_store",
    "ttg.local_store": "local_store",
    "ttg.local_load": "local_load",
    "tt.descriptor_store": "tma_store",
    "tt.descriptor_scatter": "tma_store",
    "tt.descriptor_reduce": "tma_reduce",
    "tt.store": "store",
    "tt.atomic_rmw": "atomic",
    "tt.atomic_cas": "atomic",
    "tt.clampf": "elementwise",
    "tt.mulhiui": "elementwise",
    "tt.precise_divf": "elementwise",
    "tt.precise_sqrt": "exp",
    "tt.addptr": "elementwise",
    "tt.fp_to_fp": "convert",
}
_SPECIAL = frozenset({"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sin", "cos"})
_CONVERSIONS = frozenset({"truncf", "extf", "sitofp", "uitofp", "fptosi", "fptoui"})

_SCALAR_OPCODES = frozenset({"tt.get_program_id", "tt.get_num_programs", "tt.make_tensor_descriptor"})

TENSOR_OPCODES = frozenset(opcode for opcode, kind in KINDS.items() if kind == "mma")
ALLOCS = frozenset({"ttg.local_alloc", "ttng.tmem_alloc"})
GLOBAL_OPCODES = frozenset(
    opcode
    for opcode, kind in KINDS.items()
    if kind in ("tma_load", "load", "tma_store", "tma_reduce", "store", "atomic")
)
"""Ops that touch global memory."""

SMEM_WRITES = frozenset(
    {"ttg.local_alloc", "ttg.local_store", "tt.descriptor_store", "tt.descriptor_reduce", "tt.descriptor_scatter"}
)
"""Ops that write a register tile to SMEM, from whatever layout it has."""

ASYNCHRONOUS = frozenset({"tma_load", "async_copy", "load", "atomic", "mma", "tmem_load"})
"""Kinds whose consumers wait for the result; ``mma`` only where the tensor core works on its own (not ``tt.dot``)."""

VARIABLE = frozenset({"tma_load", "async_copy"})
"""Kinds whose latency is not known when the kernel is scheduled."""

COMPUTE = frozenset({"elementwise", "exp", "convert", "reduce"})
"""Kinds that work from registers to registers."""

_ADDRESS_OPERANDS = {
    "tt.load": (0, 1),
    "tt.store": (0, 2),
    "tt.atomic_rmw": (0, 2),
    "tt.atomic_cas": (0,),
}


def kind_of(op: KernelOp) -> str:
    """Return the kind of a node of this opcode, ``op`` for an opcode that is not known."""
    if op.opcode in KINDS:
        return KINDS[op.opcode]
    dialect, _, name = op.opcode.partition(".")
    if dialect not in ("arith", "math"):
        return "op"
    if dialect == "math" and name in _SPECIAL:
        return "exp"
    return "convert" if name in _CONVERSIONS else "elementwise"


def idle_ops(body: Body) -> frozenset[str]:
    """Return the names of the ops of the loop body that are no nodes."""
    addresses = address_ops(body)
    return frozenset(op.name for op in body.kernel.loop.body if op.name in addresses or _idle(op, body))


def _idle(op: KernelOp, body: Body) -> bool:
    if op.opcode in VIEWS or op.opcode in _SCALAR_OPCODES or (op.opcode in ALLOCS and not op.operands):
        return True
    if op.opcode == "ttg.convert_layout":
        users = body.users.get(op.results[0].name, ())
        only_written = bool(users) and all(user.opcode in SMEM_WRITES for user in users)
        kept = op.results[0].name in body.kept
        return (only_written and not kept) or same_owners(body.types[op.operands[0]], op.results[0].type)
    if kind_of(op) not in COMPUTE or op.opcode in ("tt.reduce", "tt.scan"):
        return False
    return all(not result.type.shape for result in op.results)


def address_operands(op: KernelOp) -> tuple[int, ...]:
    """Return the positions of the operands of a memory op that are pointers or masks."""
    return _ADDRESS_OPERANDS.get(op.opcode, ())


def address_ops(body: Body) -> frozenset[str]:
    """Return the names of ops on tiles of integers, pointers or flags that only serve addresses and masks.

    The largest such set: it starts with every op of these types, and loses those whose result anything else reads.
    """
    found = {op.name: op for op in body.kernel.loop.body if _may_address(op)}
    after = {operand for op in body.kernel.after for operand in op.operands}
    arguments = {
        name
        for name, carried in body.carried.items()
        if _address_type(carried.argument.type.dtype) and carried.result not in after
    }
    while True:
        lost = {
            name for name, op in found.items() if any(not _serves(r.name, found, arguments, body) for r in op.results)
        }
        gone = {name for name in arguments if not _serves(name, found, arguments, body)}
        if not lost and not gone:
            return frozenset(found)
        found = {name: op for name, op in found.items() if name not in lost}
        arguments -= gone


def _may_address(op: KernelOp) -> bool:
    return (
        bool(op.results)
        and op.opcode not in GLOBAL_OPCODES
        and all(result.type.space == "registers" and _address_type(result.type.dtype) for result in op.results)
    )


def _address_type(dtype: str) -> bool:
    return dtype.startswith("ptr") or dtype == "index" or (dtype.startswith("i") and dtype[1:].isdigit())


def _serves(value: str, found: dict[str, KernelOp], arguments: set[str], body: Body) -> bool:
    """Return whether every reader of ``value`` uses it for an address; so must the next iteration, if it is kept."""
    for user in body.users.get(value, ()):
        positions = [at for at, operand in enumerate(user.operands) if operand == value]
        if user.name not in found and any(at not in address_operands(user) for at in positions):
            return False
    next_names = [name for name, carried in body.carried.items() if carried.yielded == value]
    return all(name in arguments for name in next_names)

"""Well-formedness of a kernel: single definitions, definitions before uses, and types that agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel, KernelOp, KernelValue, Region, TileType

Types = Mapping[str, TileType]

_REMEDY = "give the kernel as Triton or this program printed it"


def check_kernel(kernel: Kernel, *, where: str = "kernel") -> None:
    """Raise ``InputError`` that names the op and the value unless ``kernel`` is well-formed.

    Every value and every op name is defined once; operands are defined before their use (a value of the loop's body
    is not visible after the loop, its carried results are); carried values keep their type; elementwise ops,
    reductions, broadcasts, transpositions and matrix products have shapes that fit.
    """
    _check_single_definitions(kernel, where)
    types = {value.name: value.type for value in kernel.arguments}
    _check_block(kernel.before, types, where)
    _check_loop(kernel, types, where)
    visible = types | {carried.result: carried.argument.type for carried in kernel.loop.carried}
    _check_block(kernel.after, visible, where)


def all_ops(kernel: Kernel) -> tuple[KernelOp, ...]:
    """Return the ops before, in and after the loop, in program order."""
    return (*kernel.before, *kernel.loop.body, *kernel.after)


def _check_single_definitions(kernel: Kernel, where: str) -> None:
    ops = all_ops(kernel)
    values = [value.name for value in (*kernel.arguments, kernel.loop.induction)]
    values += [result.name for op in ops for result in op.results]
    values += [name for carried in kernel.loop.carried for name in (carried.argument.name, carried.result)]
    for kind, names in (("op", [op.name for op in ops]), ("value", values)):
        twice = _repeated(names)
        if twice is not None:
            raise InputError(where, f"the {kind} {twice!r} is defined twice", _REMEDY)


def _repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _check_block(ops: Iterable[KernelOp], types: dict[str, TileType], where: str) -> None:
    """Check ``ops`` in order and add their results to ``types``."""
    for op in ops:
        for operand in op.operands:
            _check_defined(operand, types, f"op {op.name}", where)
        _check_op(op, types, where)
        for region in op.regions:
            _check_region(op, region, types, where)
        types.update((result.name, result.type) for result in op.results)


def _check_region(op: KernelOp, region: Region, types: Types, where: str) -> None:
    """Check that a region reads only its arguments, and that those from outside are the operands they stand for."""
    twice = _repeated(
        [value.name for value in region.arguments] + [result.name for inner in region.ops for result in inner.results]
    )
    if twice is not None:
        raise InputError(where, f"the region of op {op.name} defines {twice!r} twice", _REMEDY)
    own = len(region.arguments) - len(region.captures)
    for argument, place in zip(region.arguments[own:], region.captures, strict=True):
        if place >= len(op.operands) or types[op.operands[place]] != argument.type:
            what = f"the region of op {op.name} reads {argument.name!r} from operand {place}, which is no such value"
            raise InputError(where, what, _REMEDY)
    inside = {argument.name: argument.type for argument in region.arguments}
    _check_block(region.ops, inside, where)
    for name in region.yielded:
        _check_defined(name, inside, f"the region of op {op.name}", where)


def _check_defined(name: str, types: Types, reader: str, where: str) -> None:
    if name not in types:
        raise InputError(where, f"{reader} reads {name!r}, which is not defined before it", _REMEDY)


def _check_loop(kernel: Kernel, types: dict[str, TileType], where: str) -> None:
    loop = kernel.loop
    for bound in (loop.lower, loop.upper, loop.step):
        _check_defined(bound, types, f"loop {loop.name}", where)
    for carried in loop.carried:
        _check_defined(carried.initial, types, f"carried value {carried.argument.name}", where)
        _check_same(carried.argument, carried.initial, types, where)
    inside = types | {loop.induction.name: loop.induction.type}
    inside |= {carried.argument.name: carried.argument.type for carried in loop.carried}
    _check_block(loop.body, inside, where)
    for carried in loop.carried:
        _check_defined(carried.yielded, inside, f"carried value {carried.argument.name}", where)
        _check_same(carried.argument, carried.yielded, inside, where)


def _check_same(argument: KernelValue, name: str, types: Types, where: str) -> None:
    if types[name] != argument.type:
        what = f"the carried value {argument.name!r} has type {argument.type} and {name!r} has {types[name]}"
        raise InputError(where, what, _REMEDY)


def _check_op(op: KernelOp, types: Types, where: str) -> None:
    check = _SHAPES.get(op.opcode)
    if check is None and op.opcode.split(".")[0] in ("arith", "math"):
        check = _elementwise
    if check is not None and not check(op, [types[name] for name in op.operands]):
        shapes = ", ".join(f"{name} {list(types[name].shape)}" for name in op.operands)
        results = ", ".join(str(list(result.type.shape)) for result in op.results)
        raise InputError(where, f"op {op.name} ({op.opcode}) has operands {shapes} and results {results}", _REMEDY)


def _elementwise(op: KernelOp, operands: list[TileType]) -> bool:
    tiles = [kind for kind in operands if kind.shape]
    return all(kind.shape == result.type.shape for kind in tiles for result in op.results)


def _reduce(op: KernelOp, operands: list[TileType]) -> bool:
    axis = int((op.attribute("axis") or "0").split()[0])
    shape = operands[0].shape
    return axis < len(shape) and all(
        result.type.shape == (*shape[:axis], *shape[axis + 1 :]) for result in op.results
    )


def _expand_dims(op: KernelOp, operands: list[TileType]) -> bool:
    axis = int((op.attribute("axis") or "0").split()[0])
    shape = operands[0].shape
    return op.results[0].type.shape == (*shape[:axis], 1, *shape[axis:])


def _broadcast(op: KernelOp, operands: list[TileType]) -> bool:
    wide = op.results[0].type.shape
    return len(wide) == len(operands[0].shape) and all(
        size in (1, full) for size, full in zip(operands[0].shape, wide, strict=True)
    )


def _same_shape(op: KernelOp, operands: list[TileType]) -> bool:
    return not operands or all(result.type.shape in ((), operands[0].shape) for result in op.results)


def _transposed(op: KernelOp, operands: list[TileType]) -> bool:
    return sorted(op.results[0].type.shape) == sorted(operands[0].shape)


def _product(op: KernelOp, operands: list[TileType]) -> bool:
    """Check [M, K] x [K, N] accumulated on [M, N]."""
    a, b, c = (kind.shape for kind in operands[:3])
    fits = len(a) == len(b) == len(c) == 2 and a[1] == b[0] and c == (a[0], b[1])
    return fits and all(result.type.shape in ((), c) for result in op.results)


_SHAPES: dict[str, Callable[[KernelOp, list[TileType]], bool]] = {
    "tt.reduce": _reduce,
    "tt.expand_dims": _expand_dims,
    "tt.broadcast": _broadcast,
    "ttg.convert_layout": _same_shape,
    "ttg.local_alloc": _same_shape,
    "ttng.tmem_alloc": _same_shape,
    "tt.trans": _transposed,
    "ttg.memdesc_trans": _transposed,
    "ttng.warp_group_dot": _product,
    "ttng.tc_gen5_mma": _product,
}

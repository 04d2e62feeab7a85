"""Inputs for any kernel: scalars that give a wanted number of iterations, tensors as large as the kernel touches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from twillgpu.emulate.call import Context, Value
from twillgpu.emulate.control import CONTROL_RULES, trip_range
from twillgpu.emulate.inputs import Inputs, is_free_scalar, is_tensor, metadata_of, prepare
from twillgpu.emulate.memory import GlobalMemory
from twillgpu.emulate.numbers import Array, format_of
from twillgpu.emulate.probe import Room, probe, probe_arguments
from twillgpu.emulate.reference import run_ops
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.frontend.subtile_dims import value_types

DEFAULT_TRIPS = 3
_STEP = 16
"""Integer arguments are multiples of this where possible, as Triton assumes of them unless it is told otherwise."""

_FREE_SIZE = 4096
_FREE_FLOAT = 0.125
_LARGEST = 1 << 20
_MOST_BYTES = 1 << 30
_ROUNDS = 4


def sample_inputs(
    kernel: Kernel,
    *,
    trips: int | None = None,
    scalars: Mapping[str, float] | None = None,
    grid: tuple[int, int, int] = (1, 1, 1),
    seed: int = 0,
) -> Inputs:
    """Return random inputs on which ``kernel`` touches no memory outside of its tensors.

    Integer arguments that the loop's bounds depend on get the largest value with ``trips`` iterations in the first
    block (a few, where ``trips`` is not given), other integers 4096, floats 0.125; ``scalars`` goes before that.
    Tensors are as large as a dry run touches; what is read is random (floats: normal; integers: small, not negative
    from 32 bits on, since they may be indices), what is only written is zero.

    Raises ``InputError`` where no value of those arguments gives ``trips`` iterations, where the tensors would take
    more than a gibibyte, and for accesses that leave every tensor; ``UnsupportedError`` as ``run`` does.
    """
    chosen = _scalars(kernel, trips, dict(scalars or {}), grid)
    random = np.random.default_rng(seed)
    tensors: dict[str, Array] = {}
    for _ in range(_ROUNDS):
        rooms = probe(kernel, chosen, grid, tensors)
        shapes = {room.name: _shape(room, chosen) for room in rooms}
        if all(name in tensors and tensors[name].shape == shape for name, shape in shapes.items()):
            break
        _check_size(kernel, rooms, shapes)
        tensors = {room.name: _values(room, shapes[room.name], random) for room in rooms}
        if not any(room.read and not format_of(room.dtype).is_float for room in rooms):
            break
    free = {argument.name for argument in kernel.arguments if is_free_scalar(argument)}
    given = {name: value for name, value in chosen.items() if name in free or name in (scalars or {})}
    return Inputs(tensors=tensors, scalars=given, grid=grid)


def trips_of(kernel: Kernel, inputs: Inputs, program: tuple[int, int, int] = (0, 0, 0)) -> int:
    """Return the number of iterations of the loop in one block of the grid.

    Raises as ``run`` does.
    """
    launched, bounds = prepare(kernel, inputs), _Bounds(kernel, inputs.grid)
    return bounds.count(launched.memory, launched.arguments, program)


class _Bounds:
    """The ops that the bounds of a kernel's loop depend on, and the integer arguments among what they read."""

    def __init__(self, kernel: Kernel, grid: tuple[int, int, int]) -> None:
        self.kernel = kernel
        self.grid = grid
        self.types = value_types(kernel)
        loop = kernel.loop
        needed = _closure(kernel.before, {loop.lower, loop.upper, loop.step})
        self.ops = tuple(op for op in kernel.before if any(result.name in needed for result in op.results))
        self.arguments = _integers(kernel, needed)

    def trips(self, scalars: Mapping[str, float]) -> int:
        """Return the number of iterations in the first block, with zeros in memory."""
        memory, arguments = probe_arguments(self.kernel, scalars, {})
        return self.count(memory, arguments, (0, 0, 0))

    def count(self, memory: GlobalMemory, arguments: Mapping[str, Value], program: tuple[int, int, int]) -> int:
        """Return the number of iterations in one block."""
        values = dict(arguments)
        run_ops(self.ops, values, Context(types=self.types, memory=memory, program=program, grid=self.grid))
        loop = self.kernel.loop
        return len(trip_range(*(values[bound] for bound in (loop.lower, loop.upper, loop.step))))


def _closure(ops: tuple[KernelOp, ...], names: set[str]) -> set[str]:
    """Return ``names`` and every value that they are computed from by ``ops``."""
    needed = set(names)
    for op in reversed(ops):
        if any(result.name in needed for result in op.results):
            needed.update(op.operands)
    return needed


def _integers(kernel: Kernel, names: set[str]) -> tuple[str, ...]:
    """Return the arguments among ``names`` that are numbers of elements: integers, and extents of descriptors."""
    return tuple(
        argument.name
        for argument in kernel.arguments
        if argument.name in names
        and not is_tensor(argument)
        and argument.type.dtype in ("i32", "i64")
        and (is_free_scalar(argument) or _is_extent(argument.name, kernel))
    )


def _is_extent(name: str, kernel: Kernel) -> bool:
    part = next(metadata_of(argument) for argument in kernel.arguments if argument.name == name)
    return part is not None and part[1] == "shape"


def _scalars(
    kernel: Kernel, trips: int | None, given: dict[str, float], grid: tuple[int, int, int]
) -> dict[str, float]:
    """Return a value for every scalar argument that needs one."""
    bounds = _Bounds(kernel, grid)
    chosen = {**{a.name: _default(a.type.dtype) for a in kernel.arguments if is_free_scalar(a)}, **given}
    varied = [name for name in bounds.arguments if name not in given]
    inner = _integers(kernel, _control_operands(kernel))
    wanted = DEFAULT_TRIPS if trips is None else trips

    def count(size: int) -> int:
        return bounds.trips({**chosen, **dict.fromkeys(varied, size)})

    found = (_largest(count, wanted, unit) for unit in (_STEP, 1) if varied)
    size = next((size for size in found if size is not None), None)
    if size is not None:
        chosen |= dict.fromkeys((*varied, *(name for name in inner if name not in given)), size)
    if trips is not None and bounds.trips(chosen) != trips:
        raise InputError(
            kernel.loop.source or f"loop of {kernel.name}",
            f"no value of {', '.join(varied) or 'the arguments'} was found that gives {trips} iterations",
            "give the scalar arguments that the loop's bounds depend on",
        )
    return chosen


def _control_operands(kernel: Kernel) -> set[str]:
    """Return what loops and branches outside of the scheduled loop are computed from."""
    ops = (*kernel.before, *kernel.after)
    names = {name for op in ops if op.opcode in CONTROL_RULES for name in op.operands[:3]}
    return _closure(ops, names)


def _default(dtype: str) -> float:
    if format_of(dtype).is_float:
        return _FREE_FLOAT
    return _FREE_SIZE if dtype in ("i32", "i64") else 1


def _largest(count: Callable[[int], int], wanted: int, unit: int) -> int | None:
    """Return the largest multiple of ``unit`` with exactly ``wanted`` iterations, ``None`` where there is none below
    a million, or where the number never gets larger. ``count`` does not fall.
    """
    low, high = 0, unit
    if count(low) > wanted:
        return None
    while count(high) <= wanted:
        low, high = high, 2 * high
        if high > _LARGEST:
            return None
    while high - low > unit:
        middle = (low + high) // (2 * unit) * unit
        low, high = (middle, high) if count(middle) <= wanted else (low, middle)
    return low if count(low) == wanted else None


def _shape(room: Room, scalars: Mapping[str, float]) -> tuple[int, ...]:
    """Return the shape of a tensor: what was touched, at least one element, and extents that were chosen."""
    chosen = (int(scalars.get(f"{room.name}.shape.{axis}", 1)) for axis in range(room.rank))
    return tuple(max(1, touched, extent) for touched, extent in zip(room.extents, chosen, strict=True))


def _check_size(kernel: Kernel, rooms: tuple[Room, ...], shapes: Mapping[str, tuple[int, ...]]) -> None:
    sizes = {
        room.name: int(np.prod(shapes[room.name], dtype=np.float64)) * format_of(room.dtype).size_bytes
        for room in rooms
    }
    if sum(sizes.values()) > _MOST_BYTES:
        name = max(sizes, key=lambda name: sizes[name])
        raise InputError(
            f"inputs of {kernel.name}",
            f"the kernel touches {sizes[name]} bytes of {name}",
            "give smaller scalar arguments (sizes and strides)",
        )


def _values(room: Room, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    form = format_of(room.dtype)
    if not room.read:
        return np.zeros(shape, form.carrier)
    if form.is_float:
        return random.standard_normal(shape, np.float32).astype(form.carrier)
    if form.carrier == np.bool_:
        return random.integers(0, 2, shape).astype(np.bool_)
    return random.integers(-8 if form.size_bytes < 4 else 0, 8, shape).astype(form.carrier)

"""What a kernel is run on: tensors, scalars and a grid, and how they become the values of the kernel's arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from twillgpu.emulate.call import Value
from twillgpu.emulate.memory import Descriptor, GlobalMemory
from twillgpu.emulate.numbers import Array, format_of, rounded
from twillgpu.errors import InputError, nearest
from twillgpu.frontend.kernel import Kernel, KernelValue, TileType

Outputs: TypeAlias = dict[str, Array]
"""Tensors after a run, by the name of the argument, in the carrier type of their element type."""

_METADATA = re.compile(r"(.+)\.(shape|stride)\.(\d+)(?:_\d+)?")
_FLAG = re.compile(r"(.+)\.(?:padding|roundF32ToTF32)(?:_\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The arguments of a launch.

    Attributes:
        tensors: an array for each pointer and descriptor argument, by name: row-major, of the tensor's shape for a
            descriptor (``[rows, columns]``), of any shape for a pointer. Formats that numpy lacks (bf16, 8-bit
            floats) are given as float arrays and rounded. What a kernel writes is given too, as it is before.
        scalars: the other arguments by name. Shape and stride arguments of descriptors follow from the tensors.
        grid: number of blocks in each direction.
    """

    tensors: Mapping[str, Array]
    scalars: Mapping[str, float] = field(default_factory=dict)
    grid: tuple[int, int, int] = (1, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A launch in memory: the values of the kernel's arguments, and where each tensor is.

    Attributes:
        memory: global memory, with a copy of every tensor.
        arguments: values of the arguments by name.
        tensors: (address, shape, element type) of each tensor by the name of its argument.
    """

    memory: GlobalMemory
    arguments: Mapping[str, Value]
    tensors: Mapping[str, tuple[int, tuple[int, ...], str]]

    def outputs(self) -> Outputs:
        """Return all tensors as they are now, copied."""
        return {
            name: np.array(format_of(dtype).decode(self.memory.contents(address))).reshape(shape)
            for name, (address, shape, dtype) in self.tensors.items()
        }


def prepare(kernel: Kernel, inputs: Inputs) -> Prepared:
    """Copy the tensors of ``inputs`` into global memory and return the values of the kernel's arguments.

    Raises ``InputError`` where an argument has no value, a name is not an argument, a descriptor's tensor has another
    number of dimensions than its block, or the grid is not one.
    """
    _check_names(kernel, inputs)
    memory = GlobalMemory()
    placed = {
        argument.name: _placed(memory, argument, inputs.tensors[argument.name], kernel)
        for argument in kernel.arguments
        if is_tensor(argument)
    }
    arguments = {
        argument.name: _tensor_value(argument.type, placed[argument.name])
        if is_tensor(argument)
        else _scalar_value(argument, inputs, placed)
        for argument in kernel.arguments
    }
    return Prepared(memory=memory, arguments=arguments, tensors=placed)


def is_tensor(argument: KernelValue) -> bool:
    """Return whether an argument is a pointer or a descriptor."""
    return argument.type.space in ("global", "descriptor")


def element_type(kind: TileType) -> str:
    """Return the element type of the tensor behind a pointer or descriptor argument."""
    return kind.dtype.removeprefix("ptr<").removesuffix(">")


def metadata_of(argument: KernelValue) -> tuple[str, str, int] | None:
    """Return (tensor, ``shape`` or ``stride``, dimension) for an argument that is part of a descriptor."""
    match = _METADATA.fullmatch(argument.name)
    return (match.group(1), match.group(2), int(match.group(3))) if match else None


def is_descriptor_flag(argument: KernelValue) -> bool:
    """Return whether an argument is one of the flags that Triton passes with a descriptor: they are off."""
    return _FLAG.fullmatch(argument.name) is not None


def is_free_scalar(argument: KernelValue) -> bool:
    """Return whether an argument's value has to be given."""
    return not is_tensor(argument) and metadata_of(argument) is None and not is_descriptor_flag(argument)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous tensor."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides[: len(shape)]))


def typed_scalar(value: float, dtype: str) -> Value:
    """Return a scalar in the carrier of ``dtype``; integers wrap around."""
    form = format_of(dtype)
    if form.is_float:
        return rounded(np.asarray(value, np.float64), dtype)
    return np.asarray(int(value) & ((1 << 64) - 1), np.uint64).astype(form.carrier)[()]


def _check_names(kernel: Kernel, inputs: Inputs) -> None:
    where = f"inputs of {kernel.name}"
    tensors = [argument.name for argument in kernel.arguments if is_tensor(argument)]
    scalars = [argument.name for argument in kernel.arguments if not is_tensor(argument)]
    needed = [argument.name for argument in kernel.arguments if is_free_scalar(argument)]
    for kind, given, known, required in (
        ("tensor", inputs.tensors, tensors, tensors),
        ("scalar", inputs.scalars, scalars, needed),
    ):
        unknown = next((name for name in given if name not in known), None)
        if unknown is not None:
            raise InputError(where, f"the kernel has no {kind} argument {unknown!r}", nearest(unknown, required))
        missing = [name for name in required if name not in given]
        if missing:
            raise InputError(where, f"no value for {kind} argument {', '.join(missing)}", "give one for each")
    if len(inputs.grid) != 3 or any(extent < 1 for extent in inputs.grid):
        raise InputError(where, f"the grid {inputs.grid} has no blocks", "give three numbers from 1 on")


def _placed(
    memory: GlobalMemory, argument: KernelValue, given: Array, kernel: Kernel
) -> tuple[int, tuple[int, ...], str]:
    tensor, kind = np.asarray(given), argument.type
    if kind.space == "descriptor" and tensor.ndim != len(kind.shape):
        raise InputError(
            f"inputs of {kernel.name}",
            f"{argument.name} has {tensor.ndim} dimensions and its descriptor has blocks of {list(kind.shape)}",
            "give a tensor with as many dimensions",
        )
    dtype = element_type(kind)
    with np.errstate(all="ignore"):
        bits = format_of(dtype).encode(np.asarray(rounded(tensor, dtype)))
    return memory.add(argument.name, dtype, bits), tensor.shape, dtype


def _tensor_value(kind: TileType, placed: tuple[int, tuple[int, ...], str]) -> Value:
    address, shape, dtype = placed
    if kind.space == "global":
        return np.int64(address)
    return Descriptor(address=address, shape=shape, strides=row_major(shape), dtype=dtype)


def _scalar_value(
    argument: KernelValue, inputs: Inputs, placed: Mapping[str, tuple[int, tuple[int, ...], str]]
) -> Value:
    name, dtype = argument.name, argument.type.dtype
    if name in inputs.scalars:
        return typed_scalar(inputs.scalars[name], dtype)
    if is_descriptor_flag(argument):
        return typed_scalar(0, dtype)
    part = metadata_of(argument)
    if part is None or part[0] not in placed or part[2] >= len(placed[part[0]][1]):
        raise InputError(
            f"inputs of {name}",
            "it is part of a descriptor whose tensor has not this dimension",
            "give a tensor with as many dimensions as the descriptor, or the scalar itself",
        )
    shape = placed[part[0]][1]
    extents = shape if part[1] == "shape" else row_major(shape)
    return typed_scalar(extents[part[2]], dtype)

"""The kernel as a small SSA tile IR: what is before the loop, one iteration of the loop, what is after it.

Opcodes are those of MLIR (``ttng.warp_group_dot``, ``math.exp2``, ``tt.reduce`` ...): the ops are the real
machine ops of Triton's TTGIR before warp specialization and pipelining. ``text.py`` prints and parses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Space = Literal["registers", "smem", "tmem", "global", "scalar", "token", "descriptor", "none"]
"""Where a value is: a register tile, a memdesc in SMEM or TMEM, a pointer or tile of pointers (``global`` is
only for scalar pointers; a tensor of pointers is a register tile of dtype ``ptr<...>``), a scalar, a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileType:
    """Type of a value: where it is, its shape in elements, element type (``f32``, ``f16``, ``i32``, ``ptr<f16>``),
    and the layout encoding as MLIR text with aliases expanded (empty where there is none).
    """

    space: Space
    shape: tuple[int, ...] = ()
    dtype: str = ""
    layout: str = ""
    mutable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelValue:
    """An SSA value: its name without ``%`` (unique in the kernel) and its type."""

    name: str
    type: TileType


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTile:
    """Which part of a split op this is: slice ``index`` of ``count`` along dimension ``dimension`` of its tile;
    ``origin`` is the name of the op it was split from (the inverse map of the sub-tiling).
    """

    dimension: int
    index: int
    count: int
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """The body of an op with its wiring. It is closed: what it reads from outside of the op are its last arguments,
    which stand for operands of the op; names are its own.

    Attributes:
        arguments: the block's arguments, then one for each value from outside.
        captures: for each argument of the second kind, the place among the op's operands of what it stands for.
        ops: ops in program order, without the terminator.
        yielded: names of what the terminator hands out (for ``scf.condition``: the condition first).
    """

    arguments: tuple[KernelValue, ...]
    captures: tuple[int, ...] = ()
    ops: tuple[KernelOp, ...]
    yielded: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOp:
    """One operation.

    Attributes:
        name: unique readable name in the kernel (``qk``, ``exp2_1``): derived from the result's source name
            where there is one, otherwise from the opcode.
        opcode: MLIR opcode.
        operands: names of the SSA values read, in MLIR order.
        results: values defined.
        attributes: sorted (key, MLIR text) pairs.
        source: ``file.py:line`` of the user's kernel, or empty.
        body: for ops with regions (``tt.reduce``, ``tt.scan``): the opcodes inside, in order, without the
            terminator. Enough to price it and to interpret a combine function.
        subtile: set by sub-tiling.
        regions: bodies with their wiring, empty where ``body`` says it all: one op on the block's arguments in order.
    """

    name: str
    opcode: str
    operands: tuple[str, ...] = ()
    results: tuple[KernelValue, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    source: str = ""
    body: tuple[str, ...] = ()
    subtile: SubTile | None = None
    regions: tuple[Region, ...] = ()

    def attribute(self, key: str) -> str | None:
        """Return the MLIR text of one attribute, or ``None``."""
        return dict(self.attributes).get(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A loop-carried value: the block argument, its initial value (a name defined before the loop), the name
    yielded at the end of the iteration, and the loop's result that holds it after the loop.
    """

    argument: KernelValue
    initial: str
    yielded: str
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The loop to schedule: ``for induction in range(lower, upper, step)`` (names of values), carried values,
    and the ops of one iteration in program order.
    """

    name: str
    induction: KernelValue
    lower: str
    upper: str
    step: str
    trip_count: int | None
    carried: tuple[Carried, ...]
    body: tuple[KernelOp, ...]
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of the ``@triton.jit`` function, or option of its launch, as the kernel was specialised.

    Attributes:
        name: name of the parameter.
        type: type by Triton's name (``*fp16``, ``i32``, ``tensordesc<fp16[128,64]>``), or ``constexpr``: also of an
            argument that Triton made a constant, such as a 1; ``option`` of an option of the launch (``num_warps``,
            which sub-tiling changes in the kernel).
        value: of a ``constexpr`` or ``option`` its value as a Python literal: of what has none (a type, a
            function) the name.
        default: the default of the function's signature as a Python literal, empty where there is none.
        aligned: whether the kernel counts on a multiple of 16 (bytes for a pointer): it is, and addresses that the
            kernel computes depend on it.
    """

    name: str
    type: str
    value: str = ""
    default: str = ""
    aligned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel for one target.

    Attributes:
        name: name of the ``@triton.jit`` function.
        target: ``sm_80``, ``sm_90a`` or ``sm_100a``.
        num_warps: warps that the whole-tile ops are spread over, as captured.
        arguments: the function's arguments.
        before: ops before the loop, in order (loop-invariant ops are hoisted here).
        loop: the loop.
        after: ops after the loop, in order.
        source_file: the user's file, relative to the working folder where possible.
        remarks: what the front end decided and the user should know (config chosen, stubs, hoists).
        parameters: the parameters of the function with the constants, which are no arguments; empty where the kernel
            comes from TTGIR text.
    """

    name: str
    target: str
    num_warps: int
    arguments: tuple[KernelValue, ...]
    before: tuple[KernelOp, ...]
    loop: Loop
    after: tuple[KernelOp, ...]
    source_file: str = ""
    remarks: tuple[str, ...] = field(default=())
    parameters: tuple[Parameter, ...] = field(default=())

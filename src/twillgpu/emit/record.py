"""What the offline compiler made of a source file: resources, and the instructions of each warp group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RunKind = Literal["tensor", "exp", "drain", "wait", "load", "store", "tmem"]
"""Classes of machine instructions whose order a schedule is about: tensor core, exponential, waits for the tensor
core (``drain``) and for barriers (``wait``), TMA loads and stores, TMEM traffic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """``count`` instructions of one class in a row, other instructions in between not counted."""

    kind: RunKind
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCode:
    """The machine code of one warp group.

    Attributes:
        name: name of the group's function in the source.
        maxreg: its ``setmaxnreg``; 0 where there is none.
        live_registers: largest number of general registers live at an instruction, per thread.
        spills: local memory instructions (``STL``, ``LDL``).
        instructions: machine instructions.
        counts: (opcode without modifiers, number) of the opcodes that matter, sorted.
        order: runs of the classes that a schedule is about, in the order of the code.
    """

    name: str
    maxreg: int
    live_registers: int
    spills: int
    instructions: int
    counts: tuple[tuple[str, int], ...]
    order: tuple[Run, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A source file as the offline compiler takes it, with no GPU and no driver.

    Attributes:
        target: ``sm_90a`` or ``sm_100a``.
        triton: version of Triton.
        seconds: wall seconds of Triton and of the assembler.
        warps: warps of a block, as the compiler rounds them up.
        registers_per_thread: what every thread is launched with (``.maxnreg`` under warp specialization).
        spill_bytes: bytes of spill stores and loads that the assembler reports.
        smem_bytes, tmem_columns: what the block takes.
        warnings: the assembler's, each once.
        groups: the code of each group, in the order of the source.
    """

    target: str
    triton: str
    seconds: float
    warps: int
    registers_per_thread: int
    spill_bytes: int
    smem_bytes: int
    tmem_columns: int
    warnings: tuple[str, ...]
    groups: tuple[GroupCode, ...]

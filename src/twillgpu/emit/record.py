"""What the offline compiler made of a source file: resources, and the instructions of each warp group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

RunKind = Literal["tensor", "exp", "drain", "wait", "load", "store", "tmem"]
"""Classes of machine instructions whose order a schedule is about: tensor core, exponential, waits for the tensor
core (``drain``) and for barriers (``wait``), TMA loads and stores, TMEM traffic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How the code of the groups is written. What the assembler makes of it differs with kernel and version.

    Attributes:
        apart: prologue and epilogue of a group with wgmma are straight code for each small number of iterations;
            otherwise steps under conditions.
        anew: addresses in SMEM that are the same in every iteration are computed in each one; the compiler would
            otherwise keep dozens of them in registers for the whole loop.
    """

    apart: bool = False
    anew: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """``count`` instructions of one class in a row, other instructions in between not counted.

    ``pending``: products that a ``drain`` leaves in flight.
    """

    kind: RunKind
    count: int
    pending: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCode:
    """The main loop of a group: its longest loop.

    ``spills``: local memory instructions; ``stores``: those that store. A loop that only reloads a few values is not
    short of registers: what several groups need may be computed before they part, where few registers are left for
    it. ``waits`` are waits for barriers.
    """

    live_registers: int
    spills: int
    stores: int
    instructions: int
    waits: int
    counts: tuple[tuple[str, int], ...]
    order: tuple[Run, ...]


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
        loop: the same of its main loop alone, ``None`` where it has none.
    """

    name: str
    maxreg: int
    live_registers: int
    spills: int
    instructions: int
    counts: tuple[tuple[str, int], ...]
    order: tuple[Run, ...]
    loop: LoopCode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A source file as the offline compiler takes it, with no GPU and no driver.

    Attributes:
        target: ``sm_90a`` or ``sm_100a``.
        triton: version of Triton.
        assembler: the assembler that this Triton uses for the target, and its version: ``ptxas 12.8.93``.
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
    assembler: str = "ptxas"

    @property
    def made_with(self) -> str:
        """What compiled it: Triton and the assembler with their versions."""
        return f"Triton {self.triton} ({self.assembler})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One difference between machine code and schedule: rule, group (empty: the block), both sides in words.

    ``serious``: the loop is slower than the schedule, or the kernel cannot be launched; otherwise a note.
    """

    rule: str
    group: str
    message: str
    serious: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a further search leaves free beyond the machine's own: registers per thread, bytes of SMEM."""

    registers_per_thread: int = 0
    smem_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One emission: from what, with what registers, what came out, what is done next.

    Attributes:
        number: from 1.
        ii_cycles: interval of its schedule.
        budget: what the search left free.
        registers: (group, registers per thread).
        form: of prologues and epilogues.
        compiled: the machine code, ``None`` where it does not compile.
        findings: what is wrong with it.
        action: what is done about it; empty for the last one.
        seconds: wall seconds, search included.
    """

    number: int
    ii_cycles: int
    budget: Budget
    registers: tuple[tuple[str, int], ...]
    compiled: Compiled | None
    findings: tuple[Finding, ...]
    action: str
    seconds: float
    form: Form = field(default_factory=Form)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """An emitted source file, and how it came about.

    Attributes:
        source: the text.
        ii_cycles: interval of its schedule.
        rounds: every emission that was compiled, the best one's text is ``source``; empty where nothing was checked.
        best: number of the round whose text it is; 0 where nothing was checked.
        clean: nothing serious was found in it; ``False`` where nothing was checked.
        conclusion: why there are no more rounds.
    """

    source: str
    ii_cycles: int
    rounds: tuple[Round, ...] = ()
    best: int = 0
    clean: bool = False
    conclusion: str = ""

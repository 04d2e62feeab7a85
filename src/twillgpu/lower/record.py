"""The explicit program of a warp-specialised kernel: what each warp group executes, buffers and barriers included.

``docs/programs.md`` defines what every record means: memory, barriers, asynchronous engines, counting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from twillgpu.frontend.kernel import Kernel, TileType

Anchor = Literal["first", "loop", "last"]
Engine = Literal["simt", "tma", "tma_store", "wgmma", "tcgen05", "cp_async"]
Scope = Literal["iteration", "tile"]
Memory = Literal["smem", "tmem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """An iteration of the kernel's loop: ``offset`` (``first``), ``t + offset`` in step t of the steady-state loop
    (``loop``), or ``trips + offset`` (``last``).
    """

    anchor: Anchor
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """The how-many-eth use of a ring or a barrier, counted from 0 at the start of the block.

    Scope ``iteration``: one use per iteration, ``base + iteration - lag``, where ``base`` is the sum of the trips
    of the tiles that the block has done before. Scope ``tile``: one use per tile, ``tile - lag``; ``iteration`` is
    then ``None``. Instance n is copy ``n mod copies``, phase ``n div copies``. A negative instance stands for what
    was complete before the block began.
    """

    scope: Scope
    iteration: Iteration | None = None
    lag: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """An instance of a ring that an instruction reads or writes."""

    ring: str
    instance: Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute:
    """Run kernel ops for one iteration (``iteration`` is ``None`` before and after the loop).

    Attributes:
        op: name of the op of the graph, or of the kernel outside the loop; empty for scalars that every group
            computes for itself.
        members: names of the kernel ops to run, in order.
        engine: who does the work. ``simt``: the group itself, complete when the next instruction starts. All others
            are asynchronous: they read their operands and deliver their results at any time until the group, or a
            barrier, waited for their completion.
        iteration: the iteration they belong to.
        reads, writes: ring instances touched. Fixed buffers are rings of scope ``tile``.
        completes: for ``tma`` loads the barrier instance that counts their bytes; ``None`` otherwise.
        at_least: executed only if the trip count is at least this.
    """

    op: str
    members: tuple[str, ...]
    engine: Engine = "simt"
    iteration: Iteration | None = None
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    completes: BarrierUse | None = None
    at_least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Store a register value of this group into a ring instance, for another group (synchronous)."""

    value: str
    iteration: Iteration | None
    access: Access
    at_least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """Load a register value of another group from a ring instance (synchronous)."""

    value: str
    iteration: Iteration | None
    access: Access
    at_least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierUse:
    """One instance of a barrier."""

    barrier: str
    instance: Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Block until the phase of this barrier instance is complete; passes at once for a negative instance."""

    use: BarrierUse
    at_least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrive:
    """Arrive at a barrier instance: one arrival of the group, after everything it did before."""

    use: BarrierUse
    at_least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectBytes:
    """Arrive at a barrier instance, and let its phase also wait for so many bytes of TMA loads."""

    use: BarrierUse
    bytes: int
    at_least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Arrive at a barrier instance when all work that this group has given to ``engine`` before is complete
    (``tcgen05``, ``cp_async``).
    """

    engine: Engine
    use: BarrierUse
    at_least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Block until at most ``pending`` of the newest asynchronous ops of this group on ``engine`` are incomplete
    (``wgmma``, ``cp_async``, ``tma_store``; ops of one engine and group complete in order).

    ``reads_only``: wait only until they have read their operands (``tma_store``).
    """

    engine: Engine
    pending: int
    reads_only: bool = False
    at_least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Make this group's writes to SMEM visible to the asynchronous engines (``async_shared``), or wait for its TMEM
    stores (``tmem_store``), before what follows.
    """

    kind: Literal["async_shared", "tmem_store"]
    at_least: int = 0


Instruction: TypeAlias = Execute | Put | Get | Wait | Arrive | ExpectBytes | Commit | Drain | Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A buffer of ``depth`` copies at ``offset_bytes + k * bytes`` of its memory.

    Attributes:
        name: name.
        memory: ``smem`` or ``tmem``.
        bytes: bytes of one copy, aligned.
        depth: copies.
        offset_bytes: place of copy 0 (TMEM: column offset times the bytes of a column).
        scope: whether it has an instance per iteration or per tile.
        tile: shape, element type and layout of one copy.
        values: kernel values that name an instance: memory descriptors made by an allocation, or the register value
            that is handed over (``Put``, ``Get``).
    """

    name: str
    memory: Memory
    bytes: int
    depth: int
    offset_bytes: int
    scope: Scope
    tile: TileType
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """``copies`` mbarriers, each complete after ``arrivals`` arrivals and the bytes expected.

    ``serves``: the dependences it enforces, as ``tail -> head (kind, distance)`` in words.
    """

    name: str
    copies: int
    arrivals: int
    scope: Scope
    serves: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProgram:
    """What one warp group executes for one tile: ``before``; then with ``stages`` local stages: ``prologue``;
    ``loop`` for t in range(stages - 1, trips); ``epilogue``; then ``after``.
    """

    name: str
    warps: int
    registers_per_thread: int
    stages: int
    before: tuple[Instruction, ...]
    prologue: tuple[Instruction, ...]
    loop: tuple[Instruction, ...]
    epilogue: tuple[Instruction, ...]
    after: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpProgram:
    """A kernel as programs of warp groups.

    ``persistent``: a block works on several tiles one after the other; all counts run on. ``ii_cycles``: the
    interval of the schedule that it was made from.
    """

    kernel: Kernel
    machine: str
    ii_cycles: int
    groups: tuple[GroupProgram, ...]
    rings: tuple[Ring, ...]
    barriers: tuple[Barrier, ...]
    persistent: bool = False
    remarks: tuple[str, ...] = ()

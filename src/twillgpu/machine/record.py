"""The record of a machine: units, memories, registers, warp groups, hand-off costs, and sourced figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twillgpu.errors import InputError, nearest

Confidence = Literal["V", "D", "S", "G"]
"""V read in a primary source or measured, D derived from V figures, S secondary source, G guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number with its unit, where it comes from, and how far to trust it."""

    path: str
    value: float
    unit: str
    source: str
    confidence: Confidence

    def __post_init__(self) -> None:
        if not self.source.strip():
            raise InputError(self.path, "the figure has no source", "say where the number comes from")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A functional unit of one SM; ``capacity`` instances (or shares) may be held at once."""

    name: str
    capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory of one block. Every buffer is rounded up to, and placed at, a multiple of ``alignment_bytes``."""

    name: str
    capacity_bytes: int
    alignment_bytes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers:
    """Register file limits; quotas of a group run from ``quota_min`` to ``per_thread`` in ``quota_step``."""

    per_thread: int
    per_sm: int
    overhead_per_thread: int = 0
    quota_min: int = 24
    quota_step: int = 8

    @property
    def smallest(self) -> int:
        """The smallest legal quota: quotas are multiples of ``quota_step``."""
        return -(-self.quota_min // self.quota_step) * self.quota_step

    @property
    def largest(self) -> int:
        """The largest legal quota; below ``smallest`` where no quota is legal."""
        return self.per_thread // self.quota_step * self.quota_step

    def pool(self, warps: int) -> int:
        """Return the registers that a block of ``warps`` warps (a multiple of 4) can share out among its groups.

        A launch allocates equally to all threads, in steps of the quota; setmaxnreg only moves what it allocated.
        """
        per_thread = self.per_sm // (32 * warps) // self.quota_step * self.quota_step
        return 32 * warps * per_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """At most ``max`` warp groups, each of one of the widths ``warps`` (ascending), ``max_warps`` in all."""

    max: int = 1
    warps: tuple[int, ...] = (1, 2, 4, 8, 16)
    max_warps: int = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """Cost of handing a value from one group to another, in cycles."""

    base_cycles: float = 0
    cycles_per_kb: float = 0
    barrier_cycles: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpPrice:
    """How one opcode is priced, from the ``[ops."NAME"]`` tables of a machine file.

    Attributes:
        opcode: the MLIR opcode, for instance ``math.exp2``.
        rule: the pricing rule (a class of op: ``elementwise``, ``mufu``, ``reduce``, ``mma``, ...).
        passes: instructions per element on the rule's own unit, 1 where it does not apply.
        extra_passes: further FP32 instructions per element (scaling, Newton steps, range reduction).
        source: where the price comes from.
        confidence: how far to trust it.
    """

    opcode: str
    rule: str
    passes: float
    source: str
    confidence: Confidence
    extra_passes: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A GPU as the model sees it: one SM and one block.

    ``registers`` and ``memories`` are absent where nothing is limited. ``figures`` holds every number of the
    file under its dotted path; ``figure`` looks one up and names the path that is missing.
    """

    name: str
    title: str = ""
    arch: str = ""
    units: tuple[Unit, ...] = ()
    memories: tuple[Memory, ...] = ()
    registers: Registers | None = None
    groups: Groups = Groups()
    handoff: Handoff = Handoff()
    legality: tuple[str, ...] = ()
    ops: tuple[OpPrice, ...] = ()
    figures: tuple[Figure, ...] = ()
    sha256: str = ""

    def unit(self, name: str) -> Unit:
        """Return the unit called ``name``; raises ``InputError`` with the nearest name."""
        for unit in self.units:
            if unit.name == name:
                return unit
        raise InputError(
            f"machine {self.name}", f"no unit {name!r}", nearest(name, (unit.name for unit in self.units))
        )

    def memory(self, name: str) -> Memory | None:
        """Return the memory called ``name``, or ``None`` where it is not limited."""
        return next((memory for memory in self.memories if memory.name == name), None)

    def figure(self, path: str) -> float:
        """Return the value of the figure at ``path``; raises ``InputError`` that says what to add."""
        for figure in self.figures:
            if figure.path == path:
                return figure.value
        raise InputError(
            f"machine {self.name}",
            f"the figure {path!r} is missing",
            f"add {path} = {{ value = ..., unit = ..., source = ..., confidence = ... }} to the machine file",
        )

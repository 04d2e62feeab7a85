"""Machine code as the disassembler of Triton's wheel prints it: live registers, spills, order, per warp group.

Two listings are joined by address: one with source lines, which say what group an instruction belongs to, and one
with the number of live registers (``nvdisasm`` prints only one of both at a time). Instructions of library code that
was inlined into a group have lines of other files: they belong to the group around them.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from twillgpu.emit.record import GroupCode, Run, RunKind

_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;(?:.*?//\s*\|\s*(\d+)?)?")
_LINE = re.compile(r'^\s*//## File "([^"]+)", line (\d+)')
_PREDICATE = re.compile(r"^@!?U?P\w+\s+")
_MAXREG = re.compile(r"\b0x([0-9a-f]+)")

_KINDS: tuple[tuple[str, RunKind], ...] = (
    ("HGMMA", "tensor"), ("QGMMA", "tensor"), ("IGMMA", "tensor"), ("UTCHMMA", "tensor"), ("UTCQMMA", "tensor"),
    ("HMMA", "tensor"), ("MUFU.EX2", "exp"), ("WARPGROUP.DEPBAR", "drain"), ("SYNCS.PHASECHK", "wait"),
    ("UTMALDG", "load"), ("UTMASTG", "store"), ("UTMAREDG", "store"), ("LDTM", "tmem"), ("STTM", "tmem"),
)  # fmt: skip
COUNTED = frozenset(
    {
        "HGMMA", "QGMMA", "UTCHMMA", "UTCQMMA", "HMMA", "MUFU", "UTMALDG", "UTMASTG", "UTMAREDG", "LDTM", "STTM",
        "SYNCS", "BAR", "UTCBAR", "SHFL", "STL", "LDL", "STS", "LDS", "LDG", "STG", "LDGSTS", "WARPGROUP",
        "USETMAXREG",
    }
)  # fmt: skip
"""Opcodes that a report counts."""

SPILLS = ("STL", "LDL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One machine instruction: its text without predicate, the function that it belongs to, the last ``setmaxnreg``
    before it (0: none), and registers per thread that are live.
    """

    text: str
    function: str
    maxreg: int
    live_registers: int

    @property
    def opcode(self) -> str:
        """The opcode without modifiers."""
        return self.text.split(None, 1)[0].split(".")[0]


def instructions(
    lines: str, lives: str, source: str, functions: Mapping[str, tuple[int, int]]
) -> tuple[Instruction, ...]:
    """Join the two listings of one kernel.

    Args:
        lines: ``nvdisasm -c -g``.
        lives: ``nvdisasm -c -lrm count``.
        source: path of the source file, as the compiler saw it.
        functions: first and last line of the kernel and of each group in the source; code from other lines (helper
            functions, libraries) belongs to the one around it.
    """
    live = {address: int(count or 0) for address, _, count in _listed(lives)}
    return tuple(
        Instruction(text=text, function=function, maxreg=maxreg, live_registers=live.get(address, 0))
        for address, text, function, maxreg in _placed(lines, source, functions)
    )


def group_code(name: str, code: tuple[Instruction, ...]) -> GroupCode:
    """Return what a report says of the code of one group."""
    quotas = Counter(one.maxreg for one in code)
    counts = Counter(one.opcode for one in code if one.opcode in COUNTED)
    return GroupCode(
        name=name,
        maxreg=max(quotas, key=lambda quota: quotas[quota], default=0),
        live_registers=max((one.live_registers for one in code), default=0),
        spills=sum(counts[opcode] for opcode in SPILLS),
        instructions=len(code),
        counts=tuple(sorted(counts.items())),
        order=_order(code),
    )


def _order(code: tuple[Instruction, ...]) -> tuple[Run, ...]:
    kinds = (kind for one in code if (kind := _kind(one.text)) is not None)
    return tuple(Run(kind=kind, count=len(tuple(run))) for kind, run in itertools.groupby(kinds))


def _kind(text: str) -> RunKind | None:
    return next((kind for start, kind in _KINDS if text.startswith(start)), None)


def _listed(listing: str) -> Iterator[tuple[str, str, str | None]]:
    for line in listing.splitlines():
        found = _INSTRUCTION.match(line)
        if found is not None:
            yield found.group(1), found.group(2), found.group(3)


def _placed(
    listing: str, source: str, functions: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, str, str, int]]:
    """Yield address, text without predicate, function and quota of every instruction."""
    function, maxreg = "", 0
    for line in listing.splitlines():
        place = _LINE.match(line)
        if place is not None and place.group(1) == source:
            at = int(place.group(2))
            function = next((name for name, (first, last) in functions.items() if first <= at <= last), function)
        found = _INSTRUCTION.match(line)
        if found is None:
            continue
        text = _PREDICATE.sub("", found.group(2))
        quota = _MAXREG.search(text) if text.startswith("USETMAXREG") else None
        maxreg = int(quota.group(1), 16) if quota else maxreg
        yield found.group(1), text, function, maxreg

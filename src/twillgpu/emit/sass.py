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
from dataclasses import dataclass, replace

from twillgpu.emit.record import GroupCode, LoopCode, Run, RunKind

_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;(?:.*?//\s*\|\s*(\d+)?)?")
_LINE = re.compile(r'^\s*//## File "([^"]+)", line (\d+)')
_PREDICATE = re.compile(r"^@!?U?P\w+\s+")
_LABEL = re.compile(r"^(\.L_\w+):")
_BRANCH = re.compile(r"^(@!?U?P\w+\s+)?BRA\S*\s+(!?U?P\d+,\s*)?`\((\.L_\w+)\)")
_REGISTER = re.compile(r"\bR(\d+)\b")
_TRAP = "BPT.TRAP"
"""Where the code of the compiler's own checks begins, behind that of the kernel."""
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

_RETRY = 4
"""A loop of so few instructions only polls a barrier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One machine instruction: its text without predicate, the function that it belongs to, the last ``setmaxnreg``
    before it (0: none), registers per thread that are live, its address, and that of the place which it jumps back to
    under a condition (``None``: it does not).
    """

    text: str
    function: str
    maxreg: int
    live_registers: int
    address: int = 0
    back_to: int | None = None

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
        lives: ``nvdisasm -c -lrm count``; where it is empty, the highest register that an instruction names counts.
        source: path of the source file, as the compiler saw it.
        functions: first and last line of the kernel and of each group in the source; code from other lines (helper
            functions, libraries) belongs to the one around it.
    """
    live = {int(address, 16): int(count) for address, _, count in _listed(lives) if count}
    return tuple(
        replace(one, live_registers=live.get(one.address, 0) if live else _highest(one.text))
        for one in _placed(lines, source, functions)
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
        loop=_loop_code(_main_loop(code)),
    )


def _main_loop(code: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """Return the instructions of the longest loop. A loop ends in a conditional branch back to its start; the retry
    paths of barrier waits, which stand behind all other code, come back without a condition.
    """
    loops = [(one.back_to, one.address) for one in code if one.back_to is not None]
    spans = [tuple(one for one in code if first <= one.address <= last) for first, last in loops]
    return max(spans, key=len, default=())


def _loop_code(code: tuple[Instruction, ...]) -> LoopCode | None:
    if len(code) <= _RETRY:
        return None
    counts = Counter(one.opcode for one in code if one.opcode in COUNTED)
    return LoopCode(
        live_registers=max(one.live_registers for one in code),
        spills=sum(counts[opcode] for opcode in SPILLS),
        stores=counts[SPILLS[0]],
        instructions=len(code),
        waits=sum(_kind(one.text) == "wait" for one in code),
        counts=tuple(sorted(counts.items())),
        order=_order(code),
    )


def _order(code: tuple[Instruction, ...]) -> tuple[Run, ...]:
    kinds = ((kind, _pending(kind, one.text)) for one in code if (kind := _kind(one.text)) is not None)
    runs = itertools.groupby(kinds)
    return tuple(Run(kind=kind, count=len(tuple(run)), pending=pending) for (kind, pending), run in runs)


def _pending(kind: RunKind, text: str) -> int:
    found = _MAXREG.search(text) if kind == "drain" else None
    return int(found.group(1), 16) if found else 0


def _kind(text: str) -> RunKind | None:
    return next((kind for start, kind in _KINDS if text.startswith(start)), None)


def _listed(listing: str) -> Iterator[tuple[str, str, str | None]]:
    for line in listing.splitlines():
        found = _INSTRUCTION.match(line)
        if found is not None:
            yield found.group(1), found.group(2), found.group(3)


def _placed(listing: str, source: str, functions: Mapping[str, tuple[int, int]]) -> Iterator[Instruction]:
    """Yield every instruction, without its live registers."""
    labels = _labels(listing)
    function, maxreg = "", 0
    for line in listing.splitlines():
        place = _LINE.match(line)
        if place is not None and place.group(1) == source:
            at = int(place.group(2))
            function = next((name for name, (first, last) in functions.items() if first <= at <= last), function)
        found = _INSTRUCTION.match(line)
        if found is None:
            continue
        text, address = _PREDICATE.sub("", found.group(2)), int(found.group(1), 16)
        quota = _MAXREG.search(text) if text.startswith("USETMAXREG") else None
        maxreg = int(quota.group(1), 16) if quota else maxreg
        function = "" if text.startswith(_TRAP) else function
        yield Instruction(
            text=text,
            function=function,
            maxreg=maxreg,
            live_registers=0,
            address=address,
            back_to=_back_to(found.group(2), address, labels),
        )


def _highest(text: str) -> int:
    return max((int(number) + 1 for number in _REGISTER.findall(text)), default=0)


def _labels(listing: str) -> dict[str, int]:
    """Return the address of the instruction behind each label."""
    found: dict[str, int] = {}
    waiting: list[str] = []
    for line in listing.splitlines():
        label, instruction = _LABEL.match(line), _INSTRUCTION.match(line)
        if label is not None:
            waiting.append(label.group(1))
        elif instruction is not None:
            found.update(dict.fromkeys(waiting, int(instruction.group(1), 16)))
            waiting.clear()
    return found


def _back_to(text: str, address: int, labels: Mapping[str, int]) -> int | None:
    """Return the place before ``address`` that a conditional branch goes to."""
    found = _BRANCH.match(text)
    if found is None or not (found.group(1) or found.group(2)):
        return None
    target = labels.get(found.group(3), address + 1)
    return target if target <= address else None

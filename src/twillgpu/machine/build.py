"""The record of a machine from its merged sheet: typed parts, and checks that need more than one figure."""

from __future__ import annotations

from twillgpu.errors import InputError
from twillgpu.machine.record import Groups, Handoff, Machine, Memory, Registers, Unit
from twillgpu.machine.sheet import Place, Sheet


def build(sheet: Sheet, place: Place) -> Machine:
    """Return the machine that ``sheet`` describes, without its hash.

    Raises:
        InputError: no name, an abstract file, or figures that contradict each other.
    """
    if sheet.name is None:
        raise InputError(place.at("name"), "the machine has no name", 'add name = "..."')
    if sheet.abstract:
        raise InputError(place.at("abstract"), f"{sheet.name} is only a base for others", "name one that extends it")
    return Machine(
        name=sheet.name,
        title=sheet.title or "",
        arch=sheet.arch or "",
        units=_units(sheet),
        memories=_memories(sheet, place),
        registers=_registers(sheet, place),
        groups=_groups(sheet, place),
        handoff=_handoff(sheet),
        legality=sheet.legality or (),
        ops=tuple(sheet.ops[opcode] for opcode in sorted(sheet.ops)),
        figures=tuple(sheet.figures[path] for path in sorted(sheet.figures)),
    )


def _value(sheet: Sheet, path: str, default: float) -> float:
    figure = sheet.figures.get(path)
    return default if figure is None else figure.value


def _whole(sheet: Sheet, path: str, default: int) -> int:
    return int(_value(sheet, path, default))


def _names(sheet: Sheet, section: str) -> tuple[str, ...]:
    parts = [path.split(".") for path in sheet.figures]
    return tuple(sorted({part[1] for part in parts if part[0] == section}))


def _units(sheet: Sheet) -> tuple[Unit, ...]:
    names = _names(sheet, "units")
    return tuple(Unit(name=name, capacity=_whole(sheet, f"units.{name}", 1)) for name in names)


def _memories(sheet: Sheet, place: Place) -> tuple[Memory, ...]:
    return tuple(_memory(sheet, name, place) for name in _names(sheet, "memories"))


def _memory(sheet: Sheet, name: str, place: Place) -> Memory:
    path = f"memories.{name}.capacity_bytes"
    if path not in sheet.figures:
        raise InputError(place.at(path), f"memory {name} has no capacity", "add capacity_bytes")
    return Memory(
        name=name,
        capacity_bytes=_whole(sheet, path, 0),
        alignment_bytes=_whole(sheet, f"memories.{name}.alignment_bytes", 1),
    )


def _registers(sheet: Sheet, place: Place) -> Registers | None:
    if not _names(sheet, "registers"):
        return None
    for path in ("registers.per_thread", "registers.per_sm"):
        if path not in sheet.figures:
            raise InputError(place.at(path), "the register limits need it", "add it, or remove the whole section")
    found = Registers(
        per_thread=_whole(sheet, "registers.per_thread", 0),
        per_sm=_whole(sheet, "registers.per_sm", 0),
        overhead_per_thread=_whole(sheet, "registers.overhead_per_thread", 0),
        quota_min=_whole(sheet, "registers.quota_min", min(24, _whole(sheet, "registers.per_thread", 0))),
        quota_step=_whole(sheet, "registers.quota_step", 8),
    )
    if found.quota_min > found.per_thread:
        raise InputError(
            place.at("registers.quota_min"),
            f"the smallest quota {found.quota_min} is above the limit per thread {found.per_thread}",
            "lower quota_min or raise per_thread",
        )
    return found


def _groups(sheet: Sheet, place: Place) -> Groups:
    plain = Groups()
    listed = sorted(int(figure.value) for path, figure in sheet.figures.items() if path.startswith("groups.warps["))
    widths = tuple(listed) or plain.warps
    found = Groups(
        max=_whole(sheet, "groups.max", plain.max),
        warps=widths,
        max_warps=_whole(sheet, "groups.max_warps", plain.max_warps),
    )
    if found.warps[-1] > found.max_warps:
        raise InputError(
            place.at("groups.warps"),
            f"a group of {found.warps[-1]} warps is wider than the block's {found.max_warps}",
            "remove that width or raise max_warps",
        )
    return found


def _handoff(sheet: Sheet) -> Handoff:
    return Handoff(
        base_cycles=_value(sheet, "handoff.base_cycles", 0),
        cycles_per_kb=_value(sheet, "handoff.cycles_per_kb", 0),
        barrier_cycles=_value(sheet, "handoff.barrier_cycles", 0),
    )

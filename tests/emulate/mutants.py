"""Every program that one small mistake makes out of a good one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import warp_programs as warp

from twillgpu.lower.record import Access, Arrive, Commit, Drain, Execute, Get, Instruction, Put, Wait, WarpProgram

PARTS = ("before", "prologue", "loop", "epilogue", "after")


def mutants(good: WarpProgram) -> Iterator[tuple[str, WarpProgram]]:
    """Yield (what was done, program)."""
    for group in good.groups:
        for part in PARTS:
            for name, changed in _changed(getattr(group, part)):
                yield f"{group.name}.{part}: {name}", warp.edit(good, group.name, _always(changed), part)
    yield from _barriers(good)
    yield from _rings(good)


def _always(changed: list[Instruction]) -> Callable[[list[Instruction]], list[Instruction]]:
    return lambda _: changed


def _changed(instructions: Sequence[Instruction]) -> Iterator[tuple[str, list[Instruction]]]:
    for place, one in enumerate(instructions):
        before, after = list(instructions[:place]), list(instructions[place + 1 :])
        if not isinstance(one, Execute):
            yield f"drop {_name(one)}", [*before, *after]
            yield f"repeat {_name(one)}", [*before, one, one, *after]
        if after:
            yield f"swap {_name(one)} and {_name(after[0])}", [*before, after[0], one, *after[1:]]
        for text, other in _variants(one):
            yield f"{text} of {_name(one)}", [*before, other, *after]


def _variants(one: Instruction) -> Iterator[tuple[str, Instruction]]:
    if isinstance(one, Wait | Arrive | Commit):
        for change in (-1, 1):
            instance = replace(one.use.instance, lag=one.use.instance.lag + change)
            yield f"lag {change:+}", replace(one, use=replace(one.use, instance=instance))
    if isinstance(one, Drain):
        yield "one more pending", replace(one, pending=one.pending + 1)
    if isinstance(one, Put | Get):
        yield "slot before", replace(one, access=_earlier(one.access))
    if isinstance(one, Execute):
        for field in ("reads", "writes"):
            touched = getattr(one, field)
            if touched:
                yield f"{field} the slot before", _with(one, field, (_earlier(touched[0]), *touched[1:]))
    if one.at_least:
        yield "no guard", replace(one, at_least=0)


def _with(one: Execute, field: str, value: tuple[Access, ...]) -> Execute:
    return replace(one, reads=value) if field == "reads" else replace(one, writes=value)


def _earlier(access: Access) -> Access:
    return replace(access, instance=replace(access.instance, lag=access.instance.lag + 1))


def _barriers(good: WarpProgram) -> Iterator[tuple[str, WarpProgram]]:
    for place, one in enumerate(good.barriers):
        for change in (-1, 1):
            for field, value in (("arrivals", one.arrivals + change), ("copies", one.copies + change)):
                if value:
                    other = replace(one, arrivals=value) if field == "arrivals" else replace(one, copies=value)
                    changed = (*good.barriers[:place], other, *good.barriers[place + 1 :])
                    yield f"{one.name}: {change:+} {field}", replace(good, barriers=changed)


def _rings(good: WarpProgram) -> Iterator[tuple[str, WarpProgram]]:
    for place, one in enumerate(good.rings):
        others = [ring for ring in good.rings if ring is not one and ring.memory == one.memory]
        changes = [("depth - 1", replace(one, depth=one.depth - 1))] if one.depth > 1 else []
        changes += [(f"placed over {other.name}", replace(one, offset_bytes=other.offset_bytes)) for other in others]
        for text, other in changes:
            yield f"{one.name}: {text}", replace(good, rings=(*good.rings[:place], other, *good.rings[place + 1 :]))


def _name(one: Instruction) -> str:
    if isinstance(one, Execute):
        return one.op
    use = getattr(one, "use", None)
    return f"{type(one).__name__} {use.barrier}" if use else type(one).__name__

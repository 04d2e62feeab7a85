"""Where a group computes the ops that are no work: views, scalars, address arithmetic.

An op goes right before its first user. One that only serves later iterations (``pointer += step``) goes to the end of
the step before, where it needs no stage of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.lower.arrange import Arrangement
from twillgpu.lower.flow import Needs, Use, only_index
from twillgpu.lower.sheet import Sheet

_END = 1 << 30
_BEFORE, _AFTER = -1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Ops in order; ``head``: the step that they are part of, empty where they stand alone at a place.

    ``observes``: graph ops whose asynchronous results they touch.
    """

    members: tuple[str, ...]
    head: str
    stage: int
    position: tuple[int, int, str]
    observes: tuple[str, ...] = ()


def idle_places(sheet: Sheet, group: int, needs: Needs, arrangement: Arrangement) -> tuple[Idle, ...]:
    """Return the idle ops of one group, those of one place together and in program order."""
    found: dict[tuple[str, int, tuple[int, int, str]], list[str]] = {}
    observed: dict[tuple[str, int, tuple[int, int, str]], dict[str, None]] = {}
    for op in sheet.kernel.loop.body:
        if op.name not in needs.idle:
            continue
        makers = _makers(sheet, group, op.name)
        key = _place(sheet, op.name, needs.idle[op.name], makers, arrangement)
        found.setdefault(key, []).append(op.name)
        if not key[0]:
            observed.setdefault(key, {}).update(dict.fromkeys(makers))
    return tuple(
        Idle(members=tuple(names), head=key[0], stage=key[1], position=key[2], observes=tuple(observed.get(key, ())))
        for key, names in found.items()
    )


def _place(
    sheet: Sheet,
    name: str,
    uses: list[Use],
    makers: tuple[str, ...],
    arrangement: Arrangement,
) -> tuple[str, int, tuple[int, int, str]]:
    if not uses:
        return _after(makers, arrangement)
    places = arrangement.places
    first = min(uses, key=lambda use: (places[use.op].stage + use.distance, places[use.op].position))
    place = places[first.op]
    if first.distance == 0:
        return first.op, place.stage, place.position
    if only_index(sheet, sheet.inside[name]):
        return "", place.stage + first.distance - 1, (_END, 0, "")
    return "", place.stage + first.distance, (place.position[0], _BEFORE, "")


def _after(makers: tuple[str, ...], arrangement: Arrangement) -> tuple[str, int, tuple[int, int, str]]:
    """Return the place of an op that nothing in the loop uses: after what it is made from."""
    if not makers:
        return "", 0, (_END, 0, "")
    last = max((arrangement.places[name] for name in makers), key=lambda place: (place.stage, place.position))
    return "", last.stage, (last.position[0], _AFTER, "")


def _makers(sheet: Sheet, group: int, name: str) -> tuple[str, ...]:
    """Return the graph ops of the group that make, in the same iteration, what an idle op is made from."""
    found: dict[str, None] = {}
    pending = list(sheet.inside[name].operands)
    while pending:
        op = sheet.body.inner.get(pending.pop())
        if op is None:
            continue
        makers = [maker for maker in sheet.makers.get(op.name, ()) if sheet.group[maker] == group]
        if makers:
            found |= dict.fromkeys(makers)
        else:
            pending += op.operands
    return tuple(found)

"""Groups that take turns on the tensor core: barriers that keep the order of issue of the schedule (ping-pong).

Without them two groups that share the tensor core may drift until both wait for it and both work beside it at the
same time. Hand-written kernels use named barriers for this (FlashAttention-3, section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from twillgpu.lower.orders import Order
from twillgpu.lower.sheet import Sheet
from twillgpu.lower.steps import Step, issued

UNIT = "tensor"
BUSY = 0.8
"""Share of the unit's cycles from which on turns are kept by default."""


def unit_turns(sheet: Sheet, steps: dict[str, Step], *, asked: bool | None) -> Iterator[tuple[Step, Order]]:
    """Yield, for each op on the tensor core that is followed by one of another group, the moment after its issue, and
    the order of this moment before the other op.

    Args:
        sheet: the kernel and its schedule.
        steps: all steps by name.
        asked: whether the user wants turns; ``None``: where groups share a busy tensor core on Hopper.
    """
    ops = [step for step in steps.values() if step.engine == "wgmma"]
    if len({step.group for step in ops}) < 2 or asked is False or (asked is None and _share(sheet, ops) <= BUSY):
        return
    ordered = sorted(ops, key=lambda step: (step.time % sheet.interval, step.time))
    for first, second in zip(ordered, [*ordered[1:], *ordered[:1]], strict=True):
        if first.group != second.group:
            after = issued(first)
            distance = -((second.time - first.time) // sheet.interval)
            yield after, Order(tail=after.name, head=second.name, distance=distance, kind="issue")


def _share(sheet: Sheet, ops: list[Step]) -> float:
    """Return the share of the unit's cycles that the ops use."""
    capacity = next((unit.capacity for unit in sheet.problem.units if unit.name == UNIT), 1)
    uses = [use for step in ops for use in sheet.priced[step.op].uses if use.unit == UNIT]
    return sum(use.cycles * use.amount for use in uses) / (capacity * sheet.interval)

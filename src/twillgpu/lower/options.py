"""What a user may choose about lowering."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerOptions:
    """Choices that a schedule leaves open.

    Attributes:
        order_units: whether barriers keep the groups that share the tensor core in the order of the schedule
            (ping-pong); ``None``: on Hopper, where two or more groups issue to it and it is more than 80 % used.
        persistent: whether a block works on several tiles.
    """

    order_units: bool | None = None
    persistent: bool = False

"""What the decorator may be told."""

from __future__ import annotations

from dataclasses import dataclass, field

from twillgpu.costs.record import PriceOptions
from twillgpu.schedule.record import SearchOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeOptions:
    """How a decorated kernel is scheduled and launched.

    Attributes:
        machine: name or file of the machine; ``None``: that of the GPU of the launch.
        loop: number of the loop counted from 1, where the kernel has several.
        rows: rows of a sub-tile; ``None``: the rows of the target's tensor core; 0: no sub-tiles.
        limits: limits below the machine's, and the rules in force.
        search: limits and seed of the search.
        check: whether emitted code is compiled and compared with the schedule before it is used.
        cache: whether results are kept in the user's cache folder.
        fallback: whether the original is launched, with a warning, where the schedule's code cannot be; otherwise
            the reason is raised.
    """

    machine: str | None = None
    loop: int | None = None
    rows: int | None = None
    limits: PriceOptions = field(default_factory=PriceOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    check: bool = True
    cache: bool = True
    fallback: bool = True

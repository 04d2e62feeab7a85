"""What a search may claim, in words."""

from __future__ import annotations

from dataclasses import replace

from twillgpu.costs.record import Bounds
from twillgpu.schedule.record import Refuted, SearchResult
from twillgpu.view.limit import limit_reached
from twillgpu.view.records import bound_reason
from twillgpu.view.text import number, plural, section, wrap


def verdict(result: SearchResult) -> str:
    """Return the headline: the interval and how far it is proved."""
    scope = f"minimum over all schedules of at most {plural(result.max_stages, 'stage')}"
    if result.schedule is None:
        return _without_schedule(result)
    found = f"I = {plural(result.schedule.ii_cycles, 'cycle')} per iteration"
    if result.status == "optimal":
        return f"{found}, optimal: {scope}"
    gap = result.schedule.ii_cycles - result.lower_bound_cycles
    share = gap / result.schedule.ii_cycles
    return (
        f"{found}, not proved optimal: at most {plural(gap, 'cycle')} ({share:.1%}) above the {scope}, "
        f"which is {number(result.lower_bound_cycles)} or more"
    )


def _without_schedule(result: SearchResult) -> str:
    if result.status == "infeasible":
        return f"infeasible: no schedule of at most {plural(result.max_stages, 'stage')} exists at any interval"
    return (
        f"no schedule found before a limit was reached; any schedule of at most {plural(result.max_stages, 'stage')} "
        f"takes {plural(result.lower_bound_cycles, 'cycle')} or more per iteration"
    )


def claim_section(result: SearchResult) -> list[str]:
    """The headline, and what proves the lower bound."""
    lines = wrap(verdict(result))
    if result.bound_reason and result.status != "infeasible":
        lines += wrap(f"lower bound {number(result.lower_bound_cycles)}: {result.bound_reason}")
    if result.status in ("feasible", "limit"):
        lines += wrap(limit_reached(result))
    return section("Result", lines)


def refuted_section(result: SearchResult) -> list[str]:
    """Each range of intervals that was refuted, why, and the rules that force it."""
    texts = [_refuted(refuted, result.bounds) for refuted in _merged(result.refuted)]
    return section("Refuted intervals", [line for text in texts for line in wrap(text, hang="  ")])


def _merged(ranges: tuple[Refuted, ...]) -> list[Refuted]:
    """Join ranges that follow each other and are refuted for the same reason."""
    merged: list[Refuted] = []
    for refuted in ranges:
        last = merged[-1] if merged else None
        if last is not None and last.last_cycles + 1 == refuted.first_cycles and _why(last) == _why(refuted):
            merged[-1] = replace(last, last_cycles=refuted.last_cycles)
        else:
            merged.append(refuted)
    return merged


def _why(refuted: Refuted) -> tuple[str, tuple[str, ...]]:
    return refuted.reason, refuted.families


def _refuted(refuted: Refuted, bounds: Bounds) -> str:
    first, last = number(refuted.first_cycles), number(refuted.last_cycles)
    span = f"I = {first}" if first == last else f"I = {first} to {last}"
    rules = f" [rules: {', '.join(refuted.families)}]" if refuted.families else ""
    below = bool(bounds.bounds) and refuted.reason == bounds.binding.reason
    reason = f"below the bound of {bounds.binding.name}" if below else refuted.reason
    return f"{span}: {reason}{rules}"


def bounds_section(result: SearchResult) -> list[str]:
    """Lower bounds on the interval, largest first; the binding ones are marked."""
    lines = []
    for bound in result.bounds.bounds:
        mark = ">" if bound.cycles == result.bounds.binding.cycles else " "
        text = f"{mark} {number(bound.cycles):>9}  {bound.name}: {bound_reason(bound)}"
        lines += wrap(text, hang=" " * 13)
    for reason in result.bounds.impossible:
        lines += wrap(f"> no interval at all: {reason}", hang=" " * 13)
    return section("Lower bounds on I in cycles (> binding)", lines)

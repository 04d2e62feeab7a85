"""Findings in words, each once: the same two instructions in later iterations only count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twillgpu.emulate.record import AccessPoint, Hazard, HazardKind, Race, RaceKind
from twillgpu.emulate.shadow import Event, Written
from twillgpu.emulate.steps import BarrierCopy, Cell, Label, Touch

PRONOUNS = {
    "tma": "no wait for the barrier that counts its bytes comes in between",
    "tcgen05": "no wait for a barrier that it was committed to comes in between",
    "wgmma": "its group does not drain it before",
    "cp_async": "its group neither drains nor commits it before",
    "tma_store": "its group does not drain it before",
}
"""What is missing where an engine's access is not known to be over, by engine."""


class Findings:
    """What is wrong with a program, in the order in which it is met."""

    def __init__(self, barriers: Sequence[BarrierCopy] = ()) -> None:
        self._barriers = barriers
        self._races: dict[tuple[str, ...], Race] = {}
        self._hazards: dict[tuple[str, ...], Hazard] = {}

    def copy(self) -> Findings:
        """Return the same findings, to be continued apart from these."""
        twin = Findings(self._barriers)
        twin._races, twin._hazards = dict(self._races), dict(self._hazards)
        return twin

    @property
    def races(self) -> tuple[Race, ...]:
        """Return the races found."""
        return tuple(self._races.values())

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Return the hazards found."""
        return tuple(self._hazards.values())

    def race(self, first: Written, second: Written, verb: str, then: str) -> None:
        """Record two accesses without the order that they need."""
        event, later = first.event, second.event
        one, two = point(event.label, verb, first.touch), point(later.label, then, second.touch)
        if verb == "write" and event.engine == "simt" and not event.executed & ~later.clock:
            self._race("fence", one, two, _place(second.touch), _unpublished(event, first.touch))
            return
        self._race("order", one, two, _place(second.touch), self._missing(event, later))

    def stale(self, first: Written, second: Written) -> None:
        """Record a read that finds another instance, or another ring's bytes, than it names."""
        wanted = f"{second.touch.ring} instance {second.touch.instance}"
        found = f"{first.touch.ring} instance {first.touch.instance}"
        one = point(first.event.label, "write", first.touch)
        two = point(second.event.label, "read", second.touch)
        self._race("stale", one, two, _place(second.touch), f"it is to find {wanted}, and finds {found}")

    def poison(self, event: Event, touch: Touch) -> None:
        """Record a read of bytes that nobody wrote."""
        self._race(
            "poison", None, point(event.label, "read", touch), _place(touch), "nobody has written there before"
        )

    def undrained(self, event: Event, owner: Event, cell: Cell) -> None:
        """Record the use of a register that an engine may not have filled."""
        one = _point(owner.label, f"{owner.label.text} writes {cell[0]}")
        two = _point(event.label, f"{event.label.text} uses {cell[0]}")
        self._race("drain", one, two, f"register {cell[0]}", f"{owner.engine} is not drained in between")

    def wrong_pass(self, label: Label, barrier: BarrierCopy, phase: int, complete: int) -> None:
        """Record a wait that passed on the parity of another phase than its own."""
        if complete <= phase:
            self.early_pass(label, barrier, phase)
        else:
            self.lag(label, barrier, phase)

    def early_pass(self, label: Label, barrier: BarrierCopy, phase: int) -> None:
        """Record a wait that can run while the phase before its own is in progress, and then passes at once."""
        if phase < -1:
            message = f"{label} waits for phase {phase} of {barrier}: a fresh barrier has only phase -1 behind it"
        else:
            message = (
                f"{label} for phase {phase} of {barrier} can run before phase {phase - 1} is complete, and would "
                "pass at once: its group has not waited for that phase, nor for anything after it"
            )
        self._hazard("early pass", message, label, barrier)

    def lag(self, label: Label, barrier: BarrierCopy, phase: int) -> None:
        """Record a wait that may still be under way when the phase after its own is complete."""
        self._hazard(
            "phase lag",
            f"{label} for phase {phase} of {barrier} may still be waiting when phase {phase + 1} is complete and "
            f"phase {phase + 2} begins, and would block: no arrival of phase {phase + 1} comes after it",
            label,
            barrier,
        )

    def early_arrival(self, label: Label, barrier: BarrierCopy) -> None:
        """Record an arrival that may fall into the phase before the one that it is for."""
        self._hazard(
            "early arrival",
            f"{label} arrives at {barrier} and may do so before the arrivals of the phase before are all there; it "
            "would be counted in that phase",
            label,
            barrier,
        )

    def overflow(self, label: Label, barrier: BarrierCopy) -> None:
        """Record an arrival beyond the count of its phase."""
        self._hazard(
            "arrivals",
            f"{label} arrives at {barrier}, which has had all its {barrier.arrivals} arrivals and waits for bytes",
            label,
            barrier,
        )

    def misplaced(self, label: Label, barrier: BarrierCopy, phase: int, actual: int) -> None:
        """Record an arrival that is counted in another phase than the one it names."""
        self._hazard(
            "arrivals",
            f"{label} is an arrival for phase {phase} of {barrier}, and is counted in phase {actual}: an arrival is "
            f"{'missing before it' if actual < phase else 'too many before it'}",
            label,
            barrier,
        )

    def unfinished(self, label: Label, engine: str) -> None:
        """Record work of an engine that may still run when the block has ended."""
        self._hazard("exit", f"{label} may still run when the block ends: {PRONOUNS[engine]}", label)

    def missing(self, group: str, text: str, cell: Cell, trips: int) -> None:
        """Record a register value that a group uses and does not have."""
        of = "" if cell[1] is None else f" of iteration {cell[1]}"
        message = f"{text} in group {group} uses {cell[0]}{of}, which the group does not have (trips {trips})"
        self._hazards.setdefault(
            ("missing value", group, text, cell[0]), Hazard(kind="missing value", message=message)
        )

    def slot(self, group: str, text: str, ring: str, iterations: tuple[int, int]) -> None:
        """Record an op that reads the copy of an iteration (first) where its operand is that of another (second)."""
        read, meant = iterations
        message = f"{text} in group {group} reads {ring} of iteration {read}, and its operand is that of {meant}"
        self._hazards.setdefault(("wrong slot", group, text, ring), Hazard(kind="wrong slot", message=message))

    def coverage(self, op: str, message: str) -> None:
        """Record an op of the loop that is not executed once in every iteration."""
        self._hazards.setdefault(("coverage", op), Hazard(kind="coverage", message=message))

    def _missing(self, event: Event, later: Event) -> str:
        if event.engine != "simt":
            return PRONOUNS[event.engine]
        reason = f"group {later.label.group} has waited for nothing that {event.label.group} arrived at after it"
        names = sorted({barrier.name for barrier in self._barriers if _serves(barrier, event.label, later.label)})
        return reason + (f" ({', '.join(names)} should order them)" if names else "")

    def _race(self, kind: RaceKind, first: AccessPoint | None, second: AccessPoint, place: str, missing: str) -> None:
        key = (kind, "" if first is None else f"{first.group} {first.what}", f"{second.group} {second.what}")
        old = self._races.get(key)
        self._races[key] = (
            replace(old, count=old.count + 1)
            if old is not None
            else Race(kind=kind, first=first, second=second, place=place, missing=missing)
        )

    def _hazard(self, kind: HazardKind, message: str, label: Label, barrier: BarrierCopy | None = None) -> None:
        key = (kind, label.group, label.text, barrier.name if barrier else "")
        old = self._hazards.get(key)
        self._hazards[key] = Hazard(kind=kind, message=message) if old is None else replace(old, count=old.count + 1)


def point(label: Label, verb: str, touch: Touch) -> AccessPoint:
    """Return one side of a race."""
    return _point(label, f"{label.text} {verb}s {touch.ring}")


def _point(label: Label, what: str) -> AccessPoint:
    return AccessPoint(what=what, group=label.group, iteration=label.iteration, tile=label.tile, source=label.source)


def _place(touch: Touch) -> str:
    return f"{touch.memory} bytes {touch.start}..{touch.end - 1} ({touch.ring} instance {touch.instance})"


def _unpublished(event: Event, touch: Touch) -> str:
    kind = "async_shared" if touch.memory == "smem" else "tmem_store"
    return f"group {event.label.group} has no Fence({kind}) after the write"


def _serves(barrier: BarrierCopy, first: Label, second: Label) -> bool:
    ops = {first.text.split()[-1], second.text.split()[-1]}
    return any(ops <= set(text.replace(",", " ").split()) for text in barrier.serves)

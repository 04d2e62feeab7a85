"""All mbarriers of a block: what arrivals do to them, and which arrivals are wrong."""

from __future__ import annotations

from collections.abc import Sequence

from twillgpu.emulate.mbarrier import Mbarrier, arrived, delivered, fresh, overflows, passes
from twillgpu.emulate.steps import BarrierCopy, Label, Wait
from twillgpu.emulate.wording import Findings


class Bank:
    """The state of every barrier copy, by index."""

    def __init__(self, barriers: Sequence[BarrierCopy], findings: Findings) -> None:
        self.barriers = barriers
        self.findings = findings
        self.states = [fresh(barrier.arrivals) for barrier in barriers]

    def start(self, copy: BarrierCopy) -> None:
        """Begin a further barrier copy, the last one of ``barriers``."""
        self.states.append(fresh(copy.arrivals))

    def arrive(self, barrier: int, phase: int | None, expected: int, label: Label) -> Mbarrier:
        """Count one arrival, made for ``phase`` (``None`` where the program does not say); return the new state."""
        state, copy = self.states[barrier], self.barriers[barrier]
        if overflows(state):
            self.findings.overflow(label, copy)
        elif phase is not None and state.complete != phase:
            self.findings.misplaced(label, copy, phase, state.complete)
        self.states[barrier] = arrived(state, copy.arrivals, expected)
        return self.states[barrier]

    def deliver(self, barrier: int, count: int) -> Mbarrier:
        """Count bytes that arrived; return the new state."""
        self.states[barrier] = delivered(self.states[barrier], self.barriers[barrier].arrivals, count)
        return self.states[barrier]

    def passes(self, step: Wait) -> bool:
        """Return whether a wait passes; one that came too late is recorded."""
        state = self.states[step.barrier]
        if passes(state, step.phase):
            return True
        if state.complete > step.phase + 1:
            self.findings.lag(step.label, self.barriers[step.barrier], step.phase)
        return False

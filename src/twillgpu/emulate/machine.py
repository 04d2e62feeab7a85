"""The machine: groups that run on their own, mbarriers, and engines that finish when a scheduler lets them.

It knows nothing of warp programs: whatever yields steps can run on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twillgpu.emulate.bank import Bank
from twillgpu.emulate.deadlock import explain
from twillgpu.emulate.flight import Engines, Flight, Pending
from twillgpu.emulate.order import Order
from twillgpu.emulate.record import Deadlock, Hazard, Race
from twillgpu.emulate.schedulers import Choice, Scheduler
from twillgpu.emulate.steps import Arrive, BarrierCopy, Block, Commit, Drain, Fence, Join, Step, Wait, Work
from twillgpu.emulate.wording import Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended: what happens-before found along it, and why it stopped where it did not end."""

    races: tuple[Race, ...]
    hazards: tuple[Hazard, ...]
    deadlock: Deadlock | None
    steps: int


class Machine:
    """One block under way. Its scripts may begin further groups and barriers while they run."""

    def __init__(self, block: Block, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.groups, self.barriers = list(block.groups), list(block.barriers)
        self.findings = Findings(self.barriers)
        self.bank = Bank(self.barriers, self.findings)
        self.order = Order(self.groups, self.barriers, self.findings)
        self.engines = Engines()
        self._scripts: list[Iterator[Step]] = [iter(script) for script in block.scripts]
        self._next: list[Step | None] = [None] * len(self._scripts)
        self._arrivers: dict[str, dict[str, str]] = {}
        self._steps = 0

    def start_group(self, name: str, script: Iterator[Step], parent: int) -> int:
        """Begin a further group after everything that ``parent`` has done; return its number."""
        self.groups.append(name)
        self.order.start_group(parent)
        self._scripts.append(script)
        self._next.append(None)
        group = len(self.groups) - 1
        self._next[group] = next(script, None)
        return group

    def start_barrier(self, copy: BarrierCopy) -> int:
        """Begin a further barrier copy; return its number."""
        self.barriers.append(copy)
        self.bank.start(copy)
        self.order.start_barrier()
        return len(self.barriers) - 1

    def run(self) -> Outcome:
        """Run until everything is done, or nothing can go on."""
        for group, script in enumerate(list(self._scripts)):
            self._next[group] = next(script, None)
        while True:
            flights = [Choice(flight.group, flight) for flight in self.engines.ready()]
            groups = [Choice(group, None) for group, step in enumerate(self._next) if self._can_run(group, step)]
            if not groups and not flights:
                break
            choice = self.scheduler.choose(groups, flights)
            self._steps += 1
            if choice.flight is not None:
                self._progress(choice.flight)
            else:
                self._advance(choice.group)
            self._fulfil()
        deadlock = self._deadlock()
        if deadlock is None:
            self.order.finish()
        return Outcome(races=self.findings.races, hazards=self.findings.hazards, deadlock=deadlock, steps=self._steps)

    def _can_run(self, group: int, step: Step | None) -> bool:
        if isinstance(step, Wait):
            return self.bank.passes(step)
        if isinstance(step, Drain):
            return self.engines.drained(group, step.engine, step.pending, step.reads_only)
        if isinstance(step, Join):
            return not any(other for at, other in enumerate(self._next) if at != group)
        return step is not None

    def _advance(self, group: int) -> None:
        step = self._next[group]
        match step:
            case Work():
                self._work(group, step)
            case Wait():
                state = self.bank.states[step.barrier]
                self.order.wait(group, step.barrier, step.phase, state, step.label)
            case Arrive():
                self._remember(step)
                state = self.bank.arrive(step.barrier, step.phase, step.bytes, step.label)
                self.order.arrive(group, step.barrier, state, step.label)
            case Commit():
                self._remember(step)
                self.engines.promise(group, Pending(step, self.order.commit(group, step.engine)))
            case Drain():
                self.order.drain(group, step.engine, step.pending, step.reads_only)
            case Fence():
                self.order.fence(group, step.kind)
            case Join():
                self.order.join(group)
        self._next[group] = next(self._scripts[group], None)

    def _work(self, group: int, step: Work) -> None:
        event = self.order.work(group, step)
        if step.engine != "simt":
            self.engines.give(Flight(group, step, event))
        elif step.action is not None:
            step.action.read()
            step.action.write()

    def _progress(self, flight: Flight) -> None:
        """Let an op read its operands, or complete."""
        action, signal = flight.step.action, flight.step.signal
        if not flight.has_read:
            flight.has_read = True
            if action is not None:
                action.read()
            return
        if action is not None:
            action.write()
        self.engines.remove(flight)
        if signal is not None:
            self.order.deliver(flight.event, signal[0], self.bank.deliver(*signal))

    def _fulfil(self) -> None:
        """Make the arrivals for which all work is complete."""
        for pending in self.engines.due():
            step = pending.step
            state = self.bank.arrive(step.barrier, step.phase, 0, step.label)
            self.order.keep(pending.promise, step.barrier, state, step.label)

    def _remember(self, step: Arrive | Commit) -> None:
        name = self.barriers[step.barrier].name
        self._arrivers.setdefault(name, {})[step.label.group] = f"arrived there last with {step.label}"

    def _deadlock(self) -> Deadlock | None:
        def arrivers(wait: Wait) -> dict[str, str]:
            known = self._arrivers.get(self.barriers[wait.barrier].name, {})
            return {group: text for group, text in known.items() if self._next[self.groups.index(group)]}

        return explain(self.groups, self.barriers, self.bank.states, self._next, arrivers)

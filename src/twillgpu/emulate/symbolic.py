"""One run without numbers: engines are immediate, groups run as far as they can, one after the other.

One run is enough where no hazard is found: ``docs/emulation.md`` says why.
"""

from __future__ import annotations

from collections.abc import Sequence

from twillgpu.emulate.bank import Bank
from twillgpu.emulate.deadlock import arrivers_ahead, explain
from twillgpu.emulate.order import Order
from twillgpu.emulate.record import Deadlock
from twillgpu.emulate.steps import Arrive, BarrierCopy, Commit, Drain, Fence, Step, Wait, Work
from twillgpu.emulate.wording import Findings

TURN = 8
"""Steps of a group before the next one has its turn: any number is right, a small one keeps messages close to what
happens first on the chip.
"""


class SymbolicRun:
    """A block under way: the position of each group in its script, the barriers, and the order of all events."""

    def __init__(
        self, groups: tuple[str, ...], barriers: tuple[BarrierCopy, ...], findings: Findings | None = None
    ) -> None:
        self.groups = groups
        self.barriers = barriers
        self.findings = findings or Findings(barriers)
        self.bank = Bank(barriers, self.findings)
        self.order = Order(groups, barriers, self.findings)
        self.scripts: list[list[Step]] = [[] for _ in groups]
        self.positions = [0] * len(groups)
        self.steps = 0

    def extend(self, scripts: Sequence[Sequence[Step]]) -> None:
        """Give each group more to do after what it has."""
        for group, script in enumerate(scripts):
            self.scripts[group] = [*self.scripts[group][self.positions[group] :], *script]
            self.positions[group] = 0

    def copy(self) -> SymbolicRun:
        """Return the same state, to be continued apart from this one."""
        twin = SymbolicRun(self.groups, self.barriers, self.findings.copy())
        twin.bank.states = list(self.bank.states)
        twin.order = self.order.copy(twin.findings)
        twin.scripts = list(self.scripts)
        twin.positions = list(self.positions)
        return twin

    def run(self) -> bool:
        """Run all groups until each is at the end of its script or blocked; return whether all are at the end."""
        moved = True
        while moved:
            moved = False
            for group in range(len(self.groups)):
                moved = self._advance(group) or moved
        return all(position == len(script) for position, script in zip(self.positions, self.scripts, strict=True))

    def deadlock(self) -> Deadlock | None:
        """Return why groups cannot go on, ``None`` where all are at the end."""
        rest = [script[position:] for script, position in zip(self.scripts, self.positions, strict=True)]
        waits = [steps[0] if steps else None for steps in rest]
        arrivers = arrivers_ahead(self.groups, rest)
        return explain(self.groups, self.barriers, self.bank.states, waits, arrivers)

    def _advance(self, group: int) -> bool:
        script, start = self.scripts[group], self.positions[group]
        position = start
        end = min(len(script), start + TURN)
        while position < end:
            step = script[position]
            if isinstance(step, Wait) and not self.bank.passes(step):
                break
            self._execute(group, step)
            position += 1
        self.positions[group] = position
        self.steps += position - start
        return position > start

    def _execute(self, group: int, step: Step) -> None:
        order, bank = self.order, self.bank
        match step:
            case Work():
                event = order.work(group, step)
                if step.signal is not None:
                    barrier, count = step.signal
                    order.deliver(event, barrier, bank.deliver(barrier, count))
            case Wait():
                order.wait(group, step.barrier, step.phase, bank.states[step.barrier], step.label)
            case Arrive():
                state = bank.arrive(step.barrier, step.phase, step.bytes, step.label)
                order.arrive(group, step.barrier, state, step.label)
            case Commit():
                promise = order.commit(group, step.engine)
                state = bank.arrive(step.barrier, step.phase, 0, step.label)
                order.keep(promise, step.barrier, state, step.label)
            case Drain():
                order.drain(group, step.engine, step.pending, step.reads_only)
            case Fence():
                order.fence(group, step.kind)

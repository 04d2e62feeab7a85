"""The slow oracle: runs a warp program in many orders, and looks at what happens. It knows no happens-before.

Every byte of SMEM and TMEM has a version. A run goes wrong where a read finds another version than the kernel has
there in program order, where a group waits while its phase has passed twice, where an arrival is one too many, where
nobody can go on, or where an engine works on when the block ends. Orders: strict priorities of groups and engines in
many permutations with changes at random places (as in probabilistic concurrency testing, Burckhardt et al. 2010).
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scripts import ARRIVE, ASYNC, COMMIT, DRAIN, ENGINES, EXPECT, FENCE, SIMT, WAIT, Compiler, Script

from twillgpu.lower.record import WarpProgram

TORN = ("torn", None, -1)
"""What an engine is about to write."""
STORES = ENGINES.index("tma_store")
COPIES = ENGINES.index("tma")
LAZY = 0.2
"""Share of copies that come only when nothing else can happen, in runs that have such copies."""
ISSUED, STARTED, READ = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run showed: ``None`` where nothing went wrong."""

    kind: str
    text: str


class Wrong(Exception):  # noqa: N818  # a verdict, not an error of the oracle
    """Ends a run."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind, text)
        self.outcome = Outcome(kind=kind, text=text)


class Machine:
    """The state of a block, and what can happen next."""

    def __init__(self, script: Script, draw: random.Random) -> None:
        self.script, self.draw = script, draw
        self.lazy: deque[list[Any]] = deque()
        self.laziness = draw.choice((0.0, LAZY, LAZY))
        self.places = [0] * len(script.steps)
        self.memory: list[Any] = [None] * script.atoms
        self.unpublished: dict[int, int] = {}
        """Atom to the group whose software wrote it and has not published it."""
        self.complete = [0] * len(script.arrivals)
        self.missing = list(script.arrivals)
        self.bytes = [0] * len(script.arrivals)
        self.queues: list[deque[list[Any]]] = [deque() for _ in range(len(script.steps) * len(ENGINES))]
        self.waiting: dict[int, tuple[int, int]] = {}

    def group(self, number: int) -> bool:
        """Let a group take one step; return whether it could."""
        steps, place = self.script.steps[number], self.places[number]
        if place == len(steps):
            return False
        step: Any = steps[place]
        if step[0] == WAIT:
            free = self._passes(number, step[1], step[2])
        elif step[0] == DRAIN:
            free = self._drained(self.queues[number * len(ENGINES) + step[1]], step[2], reads_only=step[3])
        else:
            self._do(number, step)
            free = True
        self.places[number] += free
        return free

    def _do(self, number: int, step: Any) -> None:
        kind = step[0]
        if kind == SIMT:
            self._simt(number, step[1], step[2])
        elif kind == ARRIVE:
            self._arrive(step[1])
        elif kind == EXPECT:
            self.bytes[step[1]] += step[2]
            self._arrive(step[1])
        elif kind == ASYNC:
            late = step[1] == COPIES and self.draw.random() < self.laziness
            queue = self.lazy if late else self.queues[number * len(ENGINES) + step[1]]
            queue.append([ISSUED, step[2], step[3], step[4]])
        elif kind == COMMIT:
            self.queues[number * len(ENGINES) + step[1]].append([None, step[2]])
        elif kind == FENCE:
            tensor, marks = self.script.tensor, self.unpublished.items()
            self.unpublished = {
                atom: owner for atom, owner in marks if owner != number or (atom in tensor) != step[1]
            }

    def _simt(self, group: int, reads: Any, writes: Any) -> None:
        memory, unpublished, tensor = self.memory, self.unpublished, self.script.tensor
        for atoms, tag in reads:
            for atom in atoms:
                if memory[atom] != tag:
                    raise Wrong("wrong version", f"group {group} finds {memory[atom]}, not {tag}")
                if atom in tensor and unpublished.get(atom, group) != group:
                    raise Wrong("unpublished", f"group {group} reads {tag} before its store is complete")
        for atoms, tag in writes:
            for atom in atoms:
                if atom in tensor and unpublished.get(atom, group) != group:
                    raise Wrong("unpublished", f"group {group} writes over a store that is not complete")
                memory[atom] = tag
                unpublished[atom] = group

    def _passes(self, group: int, barrier: int, phase: int) -> bool:
        complete = self.complete[barrier]
        if complete >= phase + 2:
            raise Wrong("phase lag", f"group {group} waits for phase {phase}, and {complete} are complete")
        if (complete ^ phase) & 1:
            if complete != phase + 1:
                raise Wrong("early pass", f"group {group} passes phase {phase} when {complete} are complete")
            self.waiting.pop(group, None)
            return True
        self.waiting[group] = (barrier, phase)
        return False

    def _arrive(self, barrier: int) -> None:
        if self.missing[barrier] == 0:
            raise Wrong("arrivals", f"an arrival beyond the count at barrier {barrier}")
        self.missing[barrier] -= 1
        self._completed(barrier)

    def _completed(self, barrier: int) -> None:
        if self.missing[barrier] or self.bytes[barrier]:
            return
        self.missing[barrier] = self.script.arrivals[barrier]
        self.complete[barrier] += 1
        for group, (waited, phase) in self.waiting.items():
            if waited == barrier and self.complete[barrier] >= phase + 2:
                raise Wrong("phase lag", f"group {group} waits for phase {phase}, which has passed")

    @staticmethod
    def _drained(queue: deque[list[Any]], pending: int, *, reads_only: bool) -> bool:
        left = sum(1 for item in queue if item[0] is not None and not (reads_only and item[0] == READ))
        return left <= pending

    def engine(self, number: int) -> bool:
        """Let an engine of a group take one step; return whether it could."""
        return self._engine(self.queues[number], number % len(ENGINES))

    def linger(self) -> bool:
        """Let a copy that comes late take one step; return whether there is one."""
        return self._engine(self.lazy, COPIES)

    def _engine(self, queue: deque[list[Any]], kind: int) -> bool:
        if not queue:
            return False
        item = queue[self.draw.randrange(len(queue))] if kind == COPIES else queue[0]
        if item[0] is None:
            queue.popleft()
            self._arrive(item[1])
        elif item[0] == ISSUED:
            self._reads(item[1])
            for atoms, _ in item[2]:
                for atom in atoms:
                    self._covered(atom)
                    self.memory[atom] = TORN
            item[0] = STARTED
        elif item[0] == STARTED and kind == STORES:
            self._reads(item[1])
            item[0] = READ
        else:
            self._finish(item)
            queue.remove(item)
        return True

    def _covered(self, atom: int) -> None:
        if atom in self.script.tensor and atom in self.unpublished:
            raise Wrong("unpublished", "an engine writes over a store that is not complete")
        self.unpublished.pop(atom, None)

    def _reads(self, reads: Any, own: frozenset[int] = frozenset()) -> None:
        for atoms, tag in reads:
            for atom in atoms:
                if atom in own:
                    continue
                if self.memory[atom] != tag:
                    raise Wrong("wrong version", f"an engine finds {self.memory[atom]}, not {tag}")
                if atom in self.unpublished:
                    raise Wrong("unpublished", f"an engine reads {tag} before it is published")

    def _finish(self, item: list[Any]) -> None:
        state, reads, writes, signal = item
        if state == STARTED:
            # What it writes itself, it has read when it started.
            self._reads(reads, frozenset(atom for atoms, _ in writes for atom in atoms))
        for atoms, tag in writes:
            for atom in atoms:
                self._covered(atom)
                self.memory[atom] = tag
        if signal is not None:
            self.bytes[signal[0]] -= signal[1]
            self._completed(signal[0])

    @property
    def ended(self) -> bool:
        """Whether all groups have ended."""
        return all(place == len(steps) for place, steps in zip(self.places, self.script.steps, strict=True))

    def leave(self) -> None:
        """End the block: no engine may still read or write its memory."""
        for number, queue in enumerate((*self.queues, self.lazy)):
            if any(item[0] is not None and item[0] != READ for item in queue):
                raise Wrong("exit", f"{ENGINES[number % len(ENGINES)]} works on when the block ends")


def run(script: Script, order: list[int], draw: random.Random, changes: float) -> Outcome | None:
    """Run a block; threads (groups, then queues) in the order of their priorities, which change with this chance."""
    machine, groups = Machine(script, draw), len(script.steps)
    order = list(order)
    try:
        while not machine.ended:
            _one(machine, order, groups, changes)
        machine.leave()
    except Wrong as wrong:
        return wrong.outcome
    return None


def _one(machine: Machine, order: list[int], groups: int, changes: float) -> None:
    """Take the step of the first thread that can."""
    for place, thread in enumerate(order):
        if machine.group(thread) if thread < groups else machine.engine(thread - groups):
            if changes and machine.draw.random() < changes:
                order.append(order.pop(place))
            return
    if not machine.linger():
        raise Wrong("deadlock", f"groups stand at {machine.places}")


def orders(script: Script, draw: random.Random, runs: int) -> Iterator[tuple[list[int], float]]:
    """Yield priorities of threads: extremes first, then random ones with changes."""
    groups, used = len(script.steps), _used(script)
    engines = [thread for thread in used if thread >= groups]
    for permutation in itertools.islice(_permutations(groups, draw), runs // 3):
        yield [*permutation, *draw.sample(engines, len(engines))], 0
        yield [*draw.sample(engines, len(engines)), *permutation], 0
    while True:
        order = draw.sample(used, len(used))
        yield order, draw.choice((0.0, 0.005, 0.03, 0.2))


def _permutations(groups: int, draw: random.Random) -> Iterator[list[int]]:
    # Every group once first and once last, forwards and backwards; then at random.
    for first in range(groups):
        around = [(first + step) % groups for step in range(groups)]
        yield around
        yield [around[0], *reversed(around[1:])]
    while True:
        yield draw.sample(range(groups), groups)


def _used(script: Script) -> list[int]:
    """Return the threads that have anything to do: all groups, and the queues that they use."""
    groups = len(script.steps)
    used = list(range(groups))
    for group, steps in enumerate(script.steps):
        queues = sorted({step[1] for step in steps if step[0] in (ASYNC, COMMIT)})  # type: ignore[type-var]
        used += [groups + group * len(ENGINES) + int(str(queue)) for queue in queues]
    return used


def judge(program: WarpProgram, blocks: Sequence[Sequence[int]], runs: int, seed: int = 0) -> Outcome | None:
    """Return what goes wrong in some order of some block, ``None`` where nothing was found.

    Args:
        program: the program.
        blocks: trip counts of the tiles of every block.
        runs: orders tried for each block.
        seed: of the random orders.
    """
    scripts = []
    for trips in blocks:
        script = Compiler(program, trips).compile()
        if script.static:
            return Outcome(kind="registers", text=script.static[0])
        scripts.append(script)
    draw = random.Random(seed)  # noqa: S311  # not for cryptography
    sequences = [(script, itertools.islice(orders(script, draw, runs), runs)) for script in scripts]
    while sequences:
        # Blocks take turns, since most faults show in the first orders of one of them.
        for entry in list(sequences):
            script, left = entry
            found = next(left, None)
            if found is None:
                sequences.remove(entry)
                continue
            outcome = run(script, found[0], draw, found[1])
            if outcome is not None:
                return outcome
    return None

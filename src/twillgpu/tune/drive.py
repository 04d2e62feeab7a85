"""Bounds first, then the most promising candidates, several at a time, until none left can be the best."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from twillgpu.tune.executors import Pool
from twillgpu.tune.journal import Journal
from twillgpu.tune.record import Outcome, Progress, Task

TRIES = 3
"""Times that a candidate is given to a worker that dies before the candidate is given up."""
PREPARED = 512
"""Candidates whose preparation is kept between bounding and solving: more would fill memory."""
SHOWN = 200
"""Characters of what an executor says about a lost worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Works:
    """What workers do.

    Attributes:
        bound: gives a ``bounded`` outcome or a final one, and what ``solve`` needs not do again.
        solve: gives a final outcome; takes what ``bound`` has given, or ``None``.
    """

    bound: Callable[[Task], tuple[Outcome, object]]
    solve: Callable[[Task, object], Outcome]


@dataclass(slots=True)
class _Load:
    """Seconds that workers took for one kind of work, for the estimate of what is left."""

    count: int = 0
    seconds: float = 0.0

    def take(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds

    @property
    def mean(self) -> float | None:
        return self.seconds / self.count if self.count else None


class Drive:
    """One run over the tasks. Outcomes are kept by candidate, so that none is in the result twice.

    What the ``best`` fastest candidates need is solved, or everything (0).
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        works: Works,
        *,
        best: int = 1,
        journal: Journal | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._tasks, self._works = tasks, works
        self._best, self._journal, self._progress = best, journal, progress
        self._outcomes: dict[str, Outcome] = {}
        self._to_bound: deque[Task] = deque()
        self._to_solve: list[tuple[float, int, Task]] = []
        self._again: deque[Task] = deque()
        self._tries: dict[str, int] = {}
        self._prepared: dict[str, object] = {}
        self._running: dict[Future[Any], Task] = {}
        self._times: list[float] = []
        self._loads = {"bound": _Load(), "solve": _Load()}
        self._order = {task.candidate.key: index for index, task in enumerate(tasks)}
        self.kept = 0

    def run(self, make: Callable[[], Pool]) -> tuple[Outcome, ...]:
        """Return the outcome of every task, in their order; ``make`` gives the pool if there is anything to do.

        An interrupt ends the workers and goes on to the caller; the journal has what was finished.
        """
        self._resume()
        if not self._to_bound and not self._promising():
            return tuple(self._pruned(task) for task in self._tasks)
        self._pool = make()
        try:
            self._tell()
            while self._fill():
                done, _ = wait(self._running, timeout=1.0, return_when=FIRST_COMPLETED)
                self._take(done)
                self._tell()
        finally:
            self._pool.stop()
        return tuple(self._pruned(task) for task in self._tasks)

    def _resume(self) -> None:
        """Take what the journal knows; the rest is bounded, or solved."""
        known = self._journal.known if self._journal is not None else {}
        for task in self._tasks:
            found = known.get((task.candidate.key, task.digests))
            if found is None:
                self._to_bound.append(task)
                continue
            self.kept += found.status != "bounded"
            self._note(task, found)

    def _fill(self) -> bool:
        """Give workers what they can take; return whether anything is under way.

        A candidate whose worker died before runs alone, so that it takes no other with it if it was to blame.
        """
        if self._again:
            if not self._running:
                self._start(self._again.popleft())
            return True
        width = self._pool.width()
        while len(self._running) < width and not self._again:
            task = self._next()
            if task is None:
                break
            self._start(task)
        return bool(self._running)

    def _next(self) -> Task | None:
        if self._to_bound:
            return self._to_bound.popleft()
        return heapq.heappop(self._to_solve)[2] if self._promising() else None

    def _promising(self) -> bool:
        """Return whether a candidate that is not solved yet could be one of the best."""
        return bool(self._to_solve) and self._to_solve[0][0] <= self._ceiling()

    def _ceiling(self) -> float:
        """Return the time above which a lower bound rules a candidate out: that of the last one to be kept."""
        return self._times[self._best - 1] if 0 < self._best <= len(self._times) else float("inf")

    def _start(self, task: Task) -> None:
        try:
            future = self._submitted(task)
        except BrokenExecutor:
            self._pool.renew()
            future = self._submitted(task)
        self._running[future] = task

    def _submitted(self, task: Task) -> Future[Any]:
        if task.candidate.key not in self._outcomes:
            return self._pool.submit(self._works.bound, task)
        return self._pool.submit(self._works.solve, task, self._prepared.pop(task.candidate.key, None))

    def _take(self, done: Iterable[Future[Any]]) -> None:
        broken = False
        for future in sorted(done, key=lambda one: self._order[self._running[one].candidate.key]):
            task = self._running.pop(future)
            try:
                found = future.result()
            except (Exception, CancelledError) as error:  # noqa: BLE001  # an executor may raise anything for a lost worker
                broken = broken or isinstance(error, BrokenExecutor | CancelledError)
                self._lost(task, error)
                continue
            self._keep(task, self._parted(task, found))
        if broken:
            self._recover()

    def _parted(self, task: Task, found: Outcome | tuple[Outcome, object]) -> Outcome:
        """Return the outcome of either work; keep what bounding has prepared."""
        if isinstance(found, Outcome):
            return found
        outcome, prepared = found
        if prepared is not None and len(self._prepared) < PREPARED:
            self._prepared[task.candidate.key] = prepared
        return outcome

    def _recover(self) -> None:
        """Renew an executor that broke; what else it had under way is lost with it."""
        for task in self._running.values():
            self._lost(task, None)
        self._running.clear()
        self._pool.renew()

    def _lost(self, task: Task, error: BaseException | None) -> None:
        tries = self._tries[task.candidate.key] = self._tries.get(task.candidate.key, 0) + 1
        if tries < TRIES:
            self._again.append(task)
            return
        said = next(iter(str(error or "").splitlines()), "")[:SHOWN]
        reason = f"given up after {tries} tries: {type(error or BrokenExecutor()).__name__}: {said}"
        known = self._outcomes.get(task.candidate.key)
        floor = known.floor_microseconds if known is not None else None
        self._keep(task, Outcome(candidate=task.candidate, status="error", reason=reason, floor_microseconds=floor))

    def _keep(self, task: Task, outcome: Outcome) -> None:
        known = self._outcomes.get(task.candidate.key)
        if known is not None and (known.status != "bounded" or outcome.status == "bounded"):
            return
        self._loads["bound" if known is None else "solve"].take(outcome.seconds)
        if known is not None and outcome.floor_microseconds is None:
            outcome = replace(outcome, floor_microseconds=known.floor_microseconds)
        if self._journal is not None:
            self._journal.add(outcome, task.digests)
        self._note(task, outcome)

    def _note(self, task: Task, outcome: Outcome) -> None:
        self._outcomes[task.candidate.key] = outcome
        if outcome.status == "bounded":
            floor = outcome.floor_microseconds or 0.0
            heapq.heappush(self._to_solve, (floor, self._order[task.candidate.key], task))
        elif outcome.microseconds is not None:
            self._times.append(outcome.microseconds)
            self._times.sort()

    def _pruned(self, task: Task) -> Outcome:
        outcome = self._outcomes[task.candidate.key]
        if outcome.status != "bounded":
            return outcome
        reason = f"takes at least {outcome.floor_microseconds:,.1f} us, above {self._ceiling():,.1f} us"
        return replace(outcome, status="pruned", reason=reason)

    def _tell(self) -> None:
        if self._progress is None:
            return
        finished = [one for one in self._outcomes.values() if one.status != "bounded"]
        ceiling = self._ceiling()
        pruned = sum(floor > ceiling for floor, _, _ in self._to_solve)
        solved = [one for one in finished if one.microseconds is not None]
        self._progress(
            Progress(
                total=len(self._tasks),
                bounded=len(self._outcomes),
                finished=len(finished),
                pruned=pruned,
                best=min(solved, key=lambda one: one.microseconds or 0.0, default=None),
                seconds_left=self._left(len(finished) + pruned),
            )
        )

    def _left(self, settled: int) -> float | None:
        """Return the seconds left if every candidate takes the mean so far; the later ones are often pruned."""
        bound, solve = self._loads["bound"].mean, self._loads["solve"].mean
        bounding = len(self._tasks) - len(self._outcomes)
        if solve is None or (bounding and bound is None):
            return None
        return (bounding * (bound or 0.0) + (len(self._tasks) - settled) * solve) / self._pool.width()

"""The run over candidates: pruning, resuming, workers that die."""

import os
import select
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_works import TOYS, toy, toy_bound

from twillgpu.tune.drive import Drive, Works
from twillgpu.tune.executors import Local, processes
from twillgpu.tune.journal import Journal
from twillgpu.tune.record import Outcome, Progress, Task


def _threads(jobs: int = 1) -> Local:
    return Local(lambda: ThreadPoolExecutor(jobs), jobs)


def _run(tasks: Sequence[Task], best: int = 1) -> tuple[Outcome, ...]:
    return Drive(tasks, TOYS, best=best).run(_threads)


def _statuses(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.status for outcome in outcomes]


def test_the_most_promising_is_solved_first_and_rules_others_out() -> None:
    tasks = [toy(1, 30, 31), toy(2, 10, 20), toy(3, 20, 22), toy(4, 20.5, 21)]
    outcomes = _run(tasks)
    assert _statuses(outcomes) == ["pruned", "solved", "solved", "pruned"]
    assert outcomes[0].reason == "takes at least 30.0 us, above 20.0 us"
    assert outcomes[0].floor_microseconds == 30
    assert outcomes[2].floor_microseconds == 20
    assert _statuses(_run(tasks, best=2)) == ["pruned", "solved", "solved", "solved"]
    assert _statuses(_run(tasks, best=0)) == ["solved"] * 4


def test_candidates_without_a_schedule_rule_nothing_out() -> None:
    assert _statuses(_run([toy(1, 10, None), toy(2, 20, None)])) == ["infeasible", "infeasible"]


times = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.booleans()), min_size=1, max_size=12)


@given(times)
def test_pruning_never_loses_the_best(given_times: list[tuple[int, int, bool]]) -> None:
    tasks = [
        toy(name, floor, floor + over if feasible else None)
        for name, (floor, over, feasible) in enumerate(given_times)
    ]
    for best in (1, 3):
        pruned, whole = (
            sorted(one.microseconds for one in _run(tasks, best=count) if one.microseconds is not None)
            for count in (best, 0)
        )
        assert pruned[:best] == whole[:best]


def test_progress_counts_up_to_the_whole_space() -> None:
    told: list[Progress] = []
    tasks = [toy(1, 30, 31), toy(2, 10, 20)]
    Drive(tasks, TOYS, best=1, progress=told.append).run(_threads)
    assert (told[0].finished, told[0].best, told[0].seconds_left) == (0, None, None)
    assert (told[-1].total, told[-1].bounded, told[-1].finished, told[-1].pruned) == (2, 2, 1, 1)
    assert told[-1].best is not None
    assert (told[-1].best.microseconds, told[-1].seconds_left) == (20, 0)


def test_a_run_goes_on_from_its_journal(tmp_path: Path) -> None:
    tasks = [toy(name, name, name + 10, str(tmp_path)) for name in range(4)]

    def interrupted(state: Progress) -> None:
        if state.finished == 2:
            raise KeyboardInterrupt

    journal = Journal(tmp_path / "journal", "toys")
    with pytest.raises(KeyboardInterrupt):
        Drive(tasks, TOYS, best=0, journal=journal, progress=interrupted).run(_threads)
    journal.close()
    again = Journal(tmp_path / "journal", "toys")
    drive = Drive(tasks, TOYS, best=0, journal=again)
    assert _statuses(drive.run(_threads)) == ["solved"] * 4
    again.close()
    assert drive.kept == 2
    lines = (tmp_path / "journal").read_text(encoding="utf-8").splitlines()
    assert sum('"status": "solved"' in line for line in lines) == 4


def test_a_finished_journal_needs_no_worker(tmp_path: Path) -> None:
    tasks = [toy(1, 10, 11), toy(2, 20, 22)]
    for pool in (_threads, None):
        journal = Journal(tmp_path / "journal", "toys")
        found = Drive(tasks, TOYS, best=1, journal=journal).run(pool or _none)
        journal.close()
        assert _statuses(found) == ["solved", "pruned"]


def _none() -> Local:
    raise AssertionError("no pool is needed")


def test_killed_processes_lose_nothing_and_the_one_to_blame_is_named(tmp_path: Path) -> None:
    tasks = [toy(name, name, name + 10, str(tmp_path), fatal=fatal) for name, fatal in enumerate((0, 1, 0, 9, 0, 0))]
    outcomes = Drive(tasks, TOYS, best=0).run(processes)
    assert [one.candidate for one in outcomes] == [task.candidate for task in tasks]
    assert _statuses(outcomes) == ["solved", "solved", "solved", "error", "solved", "solved"]
    assert outcomes[3].reason.startswith("given up after 3 tries: BrokenProcessPool: ")
    assert outcomes[3].floor_microseconds == 3


class _Losing(Executor):
    """An executor that answers one task after it was lost once, and everything else at once."""

    def __init__(self) -> None:
        self.lost = 0

    def submit(self, work, *args):  # type: ignore[no-untyped-def,override]
        future: Future[object] = Future()
        if work is not toy_bound and not self.lost:
            self.lost += 1
            future.set_exception(OSError("a worker is gone"))
        else:
            future.set_result(work(*args))
        return future


def test_a_task_that_an_executor_loses_is_done_again() -> None:
    works = Works(bound=TOYS.bound, solve=TOYS.solve)
    found = Drive([toy(1, 1, 2), toy(2, 1, 3)], works, best=0).run(lambda: Local(_Losing, 2))
    assert _statuses(found) == ["solved", "solved"]


class _Interrupted(Executor):
    """An executor that is interrupted while it starts a worker."""

    def __init__(self) -> None:
        self.started = False

    def submit(self, _work, /, *_args):  # type: ignore[no-untyped-def,override]
        arrived, tells = os.pipe()
        os.set_blocking(tells, False)
        before = signal.set_wakeup_fd(tells)
        os.kill(os.getpid(), signal.SIGINT)
        assert select.select([arrived], [], [], 60)[0]  # the thread that takes it may have to wait for a processor
        signal.set_wakeup_fd(before)
        os.close(arrived)
        os.close(tells)
        self.started = True
        return Future()


def test_an_interrupt_waits_until_a_worker_has_started_whichever_thread_takes_the_signal() -> None:
    executor, release = _Interrupted(), threading.Event()
    other = threading.Thread(target=release.wait)
    other.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            Local(lambda: executor, 1).submit(print)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
        release.set()
        other.join()
    assert executor.started

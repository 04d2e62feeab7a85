"""Where candidates are solved: processes of this machine, or a Dask cluster, both behind ``concurrent.futures``."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, ParamSpec, Protocol, TypeVar

from twillgpu.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")

CONNECT_SECONDS = 20


class Pool(Protocol):
    """An executor that can be made again when it broke."""

    def width(self) -> int:
        """Return how many candidates may be under way at a time."""

    def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Start ``work`` on a worker."""

    def renew(self) -> None:
        """Replace an executor that takes no work any more."""

    def stop(self) -> None:
        """End at once, with whatever is under way."""


@contextmanager
def _held_back() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block.

    It must not catch a process half started. Processes that start here have it blocked and leave it to this one,
    which ends them. Blocking alone is not enough: another thread may take the signal, and the main one handles it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for number in caught:
        signal.raise_signal(number)


class Local:
    """A pool over any executor of this process; ``make`` gives a new one."""

    def __init__(self, make: Callable[[], Executor], jobs: int) -> None:
        self._make, self._jobs = make, jobs
        self._others = frozenset(multiprocessing.active_children())
        self._executor = make()

    def width(self) -> int:
        """Return the number of jobs."""
        return self._jobs

    def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Start ``work`` on a worker; Ctrl-C waits until it has started."""
        with _held_back():
            return self._executor.submit(work, *args, **kwargs)

    def renew(self) -> None:
        """Make a new executor."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = self._make()

    def stop(self) -> None:
        """Cancel what waits and end the processes that this pool has started."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in self._others:
                process.terminate()
        self._executor.shutdown(wait=True)


def processes(jobs: int = 2) -> Local:
    """Return a pool of ``jobs`` processes of this machine.

    They are started afresh, never forked: solvers and threads of this process are not copied.
    """
    context = multiprocessing.get_context("spawn")
    return Local(lambda: ProcessPoolExecutor(jobs, mp_context=context, initializer=_worker), jobs)


def _worker() -> None:
    """End a worker with its parent, which may be killed: the executor would leave it waiting for ever."""
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class Cluster:
    """A pool of the workers of a Dask scheduler. Dask itself runs a task again when its worker died."""

    def __init__(self, address: str, *, seconds: float = CONNECT_SECONDS) -> None:
        """Connect to the scheduler at ``address``, such as ``tcp://10.0.0.1:8786``, within so many seconds.

        Raises ``InputError`` where Dask is not installed or nobody answers.
        """
        self._address, self._seconds = address, seconds
        self._connect()

    def _connect(self) -> None:
        where = f"--cluster {self._address}"
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise InputError(where, "Dask is not installed", "run: pip install 'twillgpu[cluster]'") from None
        try:
            self._client = distributed.Client(self._address, timeout=self._seconds, set_as_default=False)
        except (OSError, ValueError) as error:
            what = f"no scheduler answers ({type(error).__name__})"
            raise InputError(where, what, "give the address that dask scheduler prints") from None
        self._executor = self._client.get_executor(pure=False)

    def width(self) -> int:
        """Return the threads of all workers, so that new workers get work and lost ones leave none waiting."""
        threads: int = sum(self._client.nthreads().values())
        return max(1, threads)

    def submit(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Start ``work`` on a worker."""
        future: Future[R] = self._executor.submit(work, *args, **kwargs)
        return future

    def renew(self) -> None:
        """Connect again."""
        self.stop()
        self._connect()

    def stop(self) -> None:
        """Cancel what was submitted and leave the cluster, which others may use."""
        self._executor.shutdown(wait=False)
        self._client.close()

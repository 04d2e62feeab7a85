"""A warp group of a running kernel: a Python function in a thread of its own, as an iterator of steps.

Only one thread runs at a time: the machine asks for the next step and waits for it. So a run depends on the
scheduler alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from twillgpu.emulate.steps import Step


class Abandoned(BaseException):
    """Ends a thread whose block will not go on; no error of the kernel, so that nothing in it catches this."""


class Partition:
    """One group. ``switch`` is entered while the group runs."""

    def __init__(
        self,
        name: str,
        warps: int,
        body: Callable[[], None],
        switch: Callable[[Partition], AbstractContextManager[None]],
    ) -> None:
        self.name = name
        self.warps = warps
        self.iteration: int | None = None
        self.copies: list[int] = [0]
        self._body, self._switch = body, switch
        self._resume, self._posted = threading.Semaphore(0), threading.Semaphore(0)
        self._step: Step | None = None
        self._error: BaseException | None = None
        self._abandoned = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __iter__(self) -> Partition:
        return self

    def __next__(self) -> Step:
        if self._thread.ident is not None and not self._thread.is_alive():
            raise StopIteration
        with self._switch(self):
            if self._thread.ident is None:
                self._thread.start()
            else:
                self._resume.release()
            self._posted.acquire()
        if self._error is not None:
            raise self._error
        if self._step is None:
            self._thread.join()
            raise StopIteration
        return self._step

    def post(self, step: Step) -> None:
        """Hand a step to the machine and wait until it has been done; called in the group's own thread."""
        self._step = step
        self._posted.release()
        self._resume.acquire()
        if self._abandoned:
            raise Abandoned

    def close(self) -> None:
        """End the thread where it is."""
        if self._thread.ident is not None and self._thread.is_alive():
            self._abandoned = True
            self._resume.release()
            self._thread.join()

    def _run(self) -> None:
        try:
            self._body()
        except Abandoned:
            return
        except BaseException as error:  # noqa: BLE001  # handed to the machine's thread
            self._error = error
        self._step = None
        self._posted.release()

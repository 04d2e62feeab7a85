"""While the search runs: one line of progress for a person who watches, and an interrupt that takes effect."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

CLEAR = "\r\x1b[2K"
"""Back to the start of the terminal's line, and erase it."""


@contextmanager
def progress_line() -> Iterator[Callable[[str], None] | None]:
    """Give a function that shows one line of text with the seconds so far, and erase the line at the end.

    Gives ``None`` where standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    started = time.perf_counter()

    def show(text: str) -> None:
        line = f"{time.perf_counter() - started:6.1f} s  {text}"
        sys.stderr.write(CLEAR + line[: shutil.get_terminal_size().columns - 1])
        sys.stderr.flush()

    try:
        show("searching")
        yield show
    finally:
        sys.stderr.write(CLEAR)
        sys.stderr.flush()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once (status 130 in a shell), even inside the solver.

    Python's own handler would only run when the solver returns.
    """
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)

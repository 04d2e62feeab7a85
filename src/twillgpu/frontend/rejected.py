"""What Triton raises for a kernel or its launch, as an error that names the line and says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from triton.compiler.errors import CompilationError

from twillgpu.errors import InputError

_OF_THE_LAUNCH = (ValueError, TypeError, AssertionError, KeyError, IndexError)
"""What Triton raises for argument types and constants that it cannot use, before it reads the kernel."""

_REPR = re.compile(r"(\w+)\((['\"])(.*)\2\)")


@contextmanager
def explained(file: str, line: int, text: str) -> Iterator[None]:
    """Turn Triton's errors inside into ``InputError``.

    Args:
        file: name of the user's file.
        line: line of the kernel, where nothing more is known.
        text: text of the file.
    """
    try:
        yield
    except CompilationError as error:
        raise _rejected(error, file, line, text) from None
    except _OF_THE_LAUNCH as error:
        what = f"Triton rejects the launch: {type(error).__name__}: {_short(str(error))}"
        raise InputError(f"{file}:{line}", what, "correct the types and constants of the launch") from None


def _rejected(error: CompilationError, file: str, line: int, text: str) -> InputError:
    """Return Triton's message, shortened, at the innermost line of the user's file that it names."""
    message = ""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, CompilationError):
            line = _line(cause, text) or line
            message = cause.error_message or message
        else:
            message = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
        cause = cause.__cause__
    return InputError(
        f"{file}:{line}",
        f"Triton rejects the kernel: {_short(message) or type(error).__name__}",
        "correct the kernel or its launch",
    )


def _short(message: str) -> str:
    """Return the first line of a message; ``NameError('x is not defined')`` loses its quotes."""
    first = (message.strip().splitlines() or [""])[0]
    match = _REPR.fullmatch(first)
    return f"{match.group(1)}: {match.group(3)}" if match else first


def _line(error: CompilationError, text: str) -> int | None:
    at = text.find(error.src) if error.src else -1
    lineno = getattr(error.node, "lineno", None)
    return None if at < 0 or lineno is None else text.count("\n", 0, at) + int(lineno)

"""The process that runs Triton and the user's file, so that neither can disturb the program.

``python -m twillgpu.frontend.worker`` reads a request as JSON from standard input and writes the answer as JSON to
its standard output; all that the file or Triton print goes to standard error.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any

from triton.compiler.errors import CompilationError

from twillgpu.errors import InputError, TwillError, UnsupportedError
from twillgpu.frontend.binding import Bound, bind
from twillgpu.frontend.capture import Captured
from twillgpu.frontend.jit_kernels import choose
from twillgpu.frontend.launch import LoadOptions
from twillgpu.frontend.lowering import CAPABILITIES, kernel_to_generic, text_to_generic
from twillgpu.frontend.specialised import parameters_of
from twillgpu.frontend.user_module import import_file

_OF_THE_LAUNCH = (ValueError, TypeError, AssertionError, KeyError, IndexError)
"""What Triton raises for argument types and constants that it cannot use, before it reads the kernel."""

_REPR = re.compile(r"(\w+)\((['\"])(.*)\2\)")


def main() -> None:
    """Answer one request."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.read())
    with answer:
        json.dump(_answer(request), answer)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    path = Path(request["path"])
    try:
        if request["options"] is None:
            return dataclasses.asdict(Captured(text=text_to_generic(path)))
        return _capture(path, request["target"], _options(request["options"]))
    except TwillError as error:
        kind = "unsupported" if isinstance(error, UnsupportedError) else "input"
        return {"error": kind, "where": error.where, "what": error.what, "remedy": error.remedy}
    except RuntimeError as error:
        return {"error": "rejected", "where": path.name, "what": str(error)}


def _options(fields: dict[str, Any]) -> LoadOptions:
    pairs = {name: tuple((key, value) for key, value in fields[name]) for name in ("args", "constexprs")}
    return LoadOptions(**{**fields, **pairs})


def _capture(path: Path, target: str, options: LoadOptions) -> dict[str, Any]:
    capability = CAPABILITIES[target]
    user = import_file(path, capability)
    bound = bind(choose(user.module, path, target, options.kernel), path, options)
    try:
        text = kernel_to_generic(bound, capability)
    except CompilationError as error:
        raise _rejected(error, bound, path) from None
    except _OF_THE_LAUNCH as error:
        what = f"Triton rejects the launch: {type(error).__name__}: {_short(str(error))}"
        raise InputError(f"{path.name}:{bound.line}", what, "correct the types and constants of the launch") from None
    return {
        "text": text,
        "kernel": bound.function.__name__,
        "loop": bound.loop,
        "values": bound.values,
        "remarks": [*user.remarks, *bound.remarks],
        "parameters": [dataclasses.asdict(one) for one in parameters_of(bound)],
    }


def _rejected(error: CompilationError, bound: Bound, path: Path) -> InputError:
    """Return Triton's message, shortened, at the innermost line of the user's file that it names."""
    line, message = bound.line, ""
    text = path.read_text(encoding="utf-8")
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, CompilationError):
            line = _line(cause, text) or line
            message = cause.error_message or message
        else:
            message = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
        cause = cause.__cause__
    return InputError(
        f"{path.name}:{line}",
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


if __name__ == "__main__":
    try:
        main()
    except Exception:  # noqa: BLE001  # whatever Triton or the file raise: the parent reports the last line
        traceback.print_exc()
        sys.exit(1)

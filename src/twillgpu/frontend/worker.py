"""The process that runs Triton and the user's file, so that neither can disturb the program.

``python -m twillgpu.frontend.worker`` reads a request as JSON from standard input and writes the answer as JSON to
its standard output; all that the file or Triton print goes to standard error.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from twillgpu.errors import TwillError, UnsupportedError
from twillgpu.frontend.binding import bind
from twillgpu.frontend.capture import Captured
from twillgpu.frontend.jit_kernels import choose
from twillgpu.frontend.launch import LoadOptions
from twillgpu.frontend.lowering import CAPABILITIES, kernel_to_generic, text_to_generic
from twillgpu.frontend.rejected import explained
from twillgpu.frontend.specialised import parameters_of
from twillgpu.frontend.user_module import import_file


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
    with explained(path.name, bound.line, path.read_text(encoding="utf-8")):
        text = kernel_to_generic(bound, capability)
    return {
        "text": text,
        "kernel": bound.function.__name__,
        "loop": bound.loop,
        "values": bound.values,
        "remarks": [*user.remarks, *bound.remarks],
        "parameters": [dataclasses.asdict(one) for one in parameters_of(bound)],
    }


if __name__ == "__main__":
    try:
        main()
    except Exception:  # noqa: BLE001  # whatever Triton or the file raise: the parent reports the last line
        traceback.print_exc()
        sys.exit(1)

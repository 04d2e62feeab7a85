"""MLIR source locations: which line of the user's kernel an operation comes from, and for which variable.

Triton wraps a location in a name (``loc("qk"("kernel.py":31:14))``) for each assignment, and in a call site
for each inlined helper (``loc(callsite("x.py":3:4 at "kernel.py":31:14))``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePath

from twillgpu.frontend.generic import MlirModule
from twillgpu.frontend.scanner import Scanner

_LIBRARY = re.compile(r"(?:^|/)triton/(?:language|experimental|tools)/")
_NUMBER = re.compile(r"\d+")
_REFERENCE = re.compile(r"#[A-Za-z_$][\w$]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A source position: file, line (0 where unknown), and the variable assigned there (empty where unknown)."""

    file: str = ""
    line: int = 0
    name: str = ""

    @property
    def source(self) -> str:
        """``file.py:line`` without folders, or empty."""
        return f"{PurePath(self.file).name}:{self.line}" if self.line else ""


def user_frame(module: MlirModule, location: str) -> Frame:
    """Return the innermost frame of ``location`` that is outside Triton's own library.

    An operation of an inlined helper of the user gets the helper's line; one of ``tl.sum`` and the like gets
    the line of the call.
    """
    frames = _frames(module, location)
    outside = [frame for frame in frames if not _LIBRARY.search(frame.file)]
    return next(iter(outside or frames), Frame())


def _frames(module: MlirModule, location: str) -> tuple[Frame, ...]:
    """Return the frames from the innermost to the outermost; unknown locations give none."""
    if not location:
        return ()
    return _Locations(module, location).frames()


class _Locations:
    """Recursive descent over one location's text; aliases are followed."""

    def __init__(self, module: MlirModule, text: str) -> None:
        self.module = module
        self.scan = Scanner(text, where="location", remedy="give a location of MLIR's builtin kinds")

    def frames(self) -> tuple[Frame, ...]:
        scan = self.scan
        if match := scan.match(_REFERENCE):
            return _frames(self.module, self.definition(match.group(0)))
        if scan.peek('"'):
            return self.position_or_name()
        if scan.eat("callsite("):
            callee = self.frames()
            scan.expect("at")
            caller = self.frames()
            scan.expect(")")
            return callee + caller
        if scan.eat("fused"):
            return self.fused()
        scan.expect("unknown")
        return ()

    def definition(self, name: str) -> str:
        text = self.module.aliases.get(name, "")
        return text.removeprefix("loc(").removesuffix(")") if text.startswith("loc(") else ""

    def position_or_name(self) -> tuple[Frame, ...]:
        scan = self.scan
        text = scan.mlir_string("a file or a name")
        if scan.eat(":"):
            line = int(scan.token(_NUMBER, "a line number"))
            self.rest_of_range()
            return (Frame(file=text, line=line),)
        if not scan.eat("("):
            return (Frame(name=text),)
        frames = self.frames()
        scan.expect(")")
        return (replace(frames[0], name=text), *frames[1:]) if frames else (Frame(name=text),)

    def rest_of_range(self) -> None:
        while self.scan.eat(":") or self.scan.eat("to"):
            self.scan.match(_NUMBER)

    def fused(self) -> tuple[Frame, ...]:
        if self.scan.eat("<"):
            self.scan.balanced(">")
            self.scan.expect(">")
        self.scan.expect("[")
        alternatives = self.scan.items("]", self.frames)
        return next((frames for frames in alternatives if frames), ())

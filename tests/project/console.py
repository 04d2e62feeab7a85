"""Console blocks of documents: the commands in them, what they say that is printed, and the comparison."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SKIPPED = ("make ", "git ", "cd ")
"""Commands that fetch the project or create environments: ``make test`` would run this test again."""
ELLIPSIS = "..."
VARIES = (
    (re.compile(r"\d+\.\d+ s\b"), "0.00 s"),
    (re.compile(r"CP-SAT [\d.]+"), "CP-SAT 0"),
    (re.compile(r"\d+ solver calls?"), "0 solver calls"),
)
"""What differs from run to run, or with the versions of packages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A command of a document, and the lines that the document shows as its output."""

    document: str
    line: int
    command: str
    expected: tuple[str, ...]

    @property
    def place(self) -> str:
        """File and line of the command."""
        return f"{self.document}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether a test may run it."""
        return not self.command.startswith(SKIPPED)


def shown(document: Path) -> list[Shown]:
    """Return every command (after ``$``) of the console blocks of a document."""
    found: list[Shown] = []
    inside = False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            name = document.relative_to(ROOT).as_posix()
            found.append(Shown(document=name, line=number, command=line[2:], expected=()))
        elif inside and found:
            last = found.pop()
            found.append(
                Shown(document=last.document, line=last.line, command=last.command, expected=(*last.expected, line))
            )
    return found


def python_blocks(document: Path) -> list[str]:
    """Return the text of every Python block of a document."""
    return re.findall(r"^```python\n(.*?)^```", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def output(command: str, folder: Path) -> tuple[int, str]:
    """Run a command in ``folder`` with this environment's programs first; return status and output."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(  # noqa: S603  # the project's own documents
        ["bash", "-c", command],  # noqa: S607
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def missing(expected: tuple[str, ...], actual: str) -> str | None:
    """Return the first expected line that does not come in its place; ``...`` stands for any lines."""
    rest = _same(actual).splitlines()
    anywhere = False
    for line in expected:
        if line.strip() == ELLIPSIS:
            anywhere = True
            continue
        wanted = _same(line)
        if not anywhere and rest[:1] != [wanted]:
            return line
        if wanted not in rest:
            return line
        rest = rest[rest.index(wanted) + 1 :]
        anywhere = False
    return None if anywhere or not "".join(rest).strip() or not expected else f"more: {rest[0]}"


def _same(text: str) -> str:
    for pattern, instead in VARIES:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.splitlines())

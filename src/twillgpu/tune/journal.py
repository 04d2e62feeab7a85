"""The journal of a run: what was found so far, one JSON object a line, so that a run can go on after a crash."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import IO, Any

from twillgpu.errors import InputError
from twillgpu.tune.record import Candidate, Outcome

SCHEMA = "twillgpu-tune-journal/1"
FINAL = ("solved", "infeasible", "limit", "declined", "unsupported", "bounded")
"""What is kept: it follows from the question. A pruned row depends on the others, an error may pass."""


class Journal:
    """A file of outcomes, appended to line by line and flushed, so that a killed run loses what was under way only.

    ``known`` holds what was there at the start, by (candidate, digests of its files).
    """

    def __init__(self, file: Path, question: str, *, restart: bool = False) -> None:
        """Open the journal of ``question``, a text that says all that outcomes depend on.

        Raises ``InputError`` where the file is no journal, or one of another question unless ``restart`` begins it
        anew.
        """
        self.known: dict[tuple[str, tuple[str, ...]], Outcome] = {}
        self._file = file
        try:
            whole = self._read(question, restart=restart) if file.exists() else 0
            self._stream: IO[str] = file.open("a" if whole else "w", encoding="utf-8")
            if whole:
                self._stream.truncate(whole)
            else:
                self._write(_header(question))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--journal {file}", f"cannot be used ({error})", "name another file") from None

    def add(self, outcome: Outcome, digests: tuple[str, ...]) -> None:
        """Write an outcome down, if it is one that lasts."""
        if outcome.status in FINAL:
            self._write(json.dumps({"files": digests, **dataclasses.asdict(outcome)}))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _read(self, question: str, *, restart: bool) -> int:
        """Read what is there; return the bytes of whole lines to keep (a crash may have cut the last one)."""
        data = self._file.read_bytes()
        whole = data.rfind(b"\n") + 1
        lines = data[:whole].decode("utf-8").splitlines()
        if _header(question).encode().startswith(data):
            return 0
        self._check(lines[0] if lines else "", question, restart=restart)
        if restart:
            return 0
        for number, line in enumerate(lines[1:], start=2):
            self._take(line, number)
        return whole

    def _check(self, line: str, question: str, *, restart: bool) -> None:
        where = f"--journal {self._file}"
        try:
            header = json.loads(line)
        except ValueError:
            header = None
        if not isinstance(header, dict) or header.get("schema") != SCHEMA:
            raise InputError(where, "the file is no journal of this version", "name another")
        if header.get("question") != question and not restart:
            what = "it answers another question: machine, sizes, options or version differ"
            raise InputError(where, what, "name another file, or add --restart to begin it anew")

    def _take(self, line: str, number: int) -> None:
        try:
            entry = json.loads(line)
            digests = tuple(entry.pop("files"))
            outcome = outcome_of(entry)
        except (ValueError, TypeError, KeyError, AttributeError):
            what = f"line {number} is no entry of a journal"
            raise InputError(
                f"--journal {self._file}", what, "delete the line, or add --restart to begin anew"
            ) from None
        self.known[outcome.candidate.key, digests] = outcome


def _header(question: str) -> str:
    return json.dumps({"schema": SCHEMA, "question": question})


def outcome_of(entry: dict[str, Any]) -> Outcome:
    """Return the outcome that ``dataclasses.asdict`` and JSON made ``entry`` of."""
    values = tuple((str(name), value) for name, value in entry["candidate"]["values"])
    rings = tuple((str(name), int(depth)) for name, depth in entry["rings"])
    return Outcome(**{**entry, "candidate": Candidate(values=values), "rings": rings})

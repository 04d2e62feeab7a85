"""The cache: a SQLite file that several processes may use at once, and that is never worth a failed run.

Writes are single statements under SQLite's own locks, in write-ahead mode, with a timeout for those who wait. A file
that is no database is moved aside with a warning and begun anew. Whatever else goes wrong (a full disk, a folder that
may not be written, a lock that is never released) costs the caching: one warning, and nothing is found or kept.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from twillgpu.store.place import cache_folder
from twillgpu.store.record import Entry

FILE = "cache-1.sqlite"
"""The number is that of the table's form: another form has another file."""

BUSY_SECONDS = 10.0
_NAMES = tuple(one.name for one in fields(Entry))
_KINDS = {"ii_cycles": "INTEGER", "search_seconds": "REAL", "emit_seconds": "REAL", "created": "REAL"}
_COLUMNS = ", ".join(f"{name} {_KINDS.get(name, 'TEXT NOT NULL')}" for name in _NAMES[1:])
_CREATE = f"CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, {_COLUMNS})"
_SELECT = f"SELECT {', '.join(_NAMES)} FROM entries"  # noqa: S608  # names of this file's own record
_INSERT = f"INSERT OR REPLACE INTO entries VALUES ({', '.join('?' * len(_NAMES))})"  # noqa: S608  # question marks
_BROKEN = ("not a database", "malformed", "no such column", "has no column", "columns but")


@dataclass(slots=True)
class Cache:
    """The entries in ``folder``. A connection lives as long as a call, so that processes may fork in between.

    Attributes:
        folder: where the file is; made when it is needed.
        usable: false after a warning: nothing is tried again.
    """

    folder: Path = field(default_factory=cache_folder)
    usable: bool = True

    @property
    def file(self) -> Path:
        """The SQLite file."""
        return self.folder / FILE

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key, or ``None``."""
        found = self._entries(f"{_SELECT} WHERE key = ?", key)
        return found[0] if found else None

    def entries(self, prefix: str = "") -> tuple[Entry, ...]:
        """Return all entries whose key begins with ``prefix``, the newest first."""
        return self._entries(f"{_SELECT} WHERE substr(key, 1, ?) = ? ORDER BY created DESC, key", len(prefix), prefix)

    def put(self, entry: Entry) -> None:
        """Keep an entry in place of any other of its key; ``created`` is set to now."""
        self._run(_INSERT, *astuple(replace(entry, created=time.time())))

    def clear(self, prefix: str = "") -> int:
        """Remove the entries whose key begins with ``prefix``, and their files; return how many there were."""
        doomed = self.entries(prefix)
        self._run("DELETE FROM entries WHERE substr(key, 1, ?) = ?", len(prefix), prefix)
        for entry in doomed:
            with contextlib.suppress(OSError):
                self.source_file(entry).unlink(missing_ok=True)
        return len(doomed) if self.usable else 0

    def source_file(self, entry: Entry) -> Path:
        """Return where the emitted file of an entry is written."""
        return self.folder / "emitted" / f"{entry.kernel}_{entry.machine}_{entry.key[:16]}.py"

    def write_source(self, entry: Entry) -> Path:
        """Return a file that holds the entry's source: Triton reads what it compiles from a real file.

        It is in the cache folder, or where that cannot be written, in a folder of this process.
        """
        path = self.source_file(entry)
        try:
            if not _holds(path, entry.source):
                _write(path, entry.source)
        except OSError:
            path = Path(tempfile.mkdtemp(prefix="twillgpu-")) / path.name
            _write(path, entry.source)
        return path

    def _entries(self, statement: str, *values: object) -> tuple[Entry, ...]:
        if _identity(self.file) is None:
            return ()
        rows = self._run(statement, *values)
        return tuple(Entry(**dict(zip(_NAMES, row, strict=True))) for row in rows)

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        if not self.usable:
            return []
        for again in (True, False):
            seen = _identity(self.file)
            try:
                return self._tried(statement, *values)
            except (sqlite3.Error, OSError) as error:
                if again and _is_broken(error) and self._moved_aside(error, seen):
                    continue
                self._give_up(error)
                break
        return []

    def _tried(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._connected() as connection:
            return connection.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # No transaction is left open: each statement is one, and takes its lock only while it runs.
        connection = sqlite3.connect(self.file, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_CREATE)
            yield connection
        finally:
            connection.close()

    def _moved_aside(self, error: Exception, seen: tuple[int, int] | None) -> bool:
        """Move the broken file that was seen away; whether there is room for a new one."""
        if _identity(self.file) != seen:
            return True  # another process was faster
        aside = self.file.with_name(f"{FILE}.broken-{os.getpid()}-{time.time_ns()}")
        try:
            self.file.rename(aside)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(OSError):
                self.file.with_name(FILE + suffix).unlink(missing_ok=True)
        self._warn(f"{self.file}: the cache file is broken ({error}); moved to {aside.name}, a new one is begun")
        return True

    def _give_up(self, error: Exception) -> None:
        self.usable = False
        self._warn(f"{self.file}: the cache cannot be used ({error}); nothing is kept")

    @staticmethod
    def _warn(message: str) -> None:
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def shared() -> Cache:
    """Return this process's cache of the user's folder: whoever asks, a warning is given once."""
    return _shared(cache_folder())


@functools.cache
def _shared(folder: Path) -> Cache:
    return Cache(folder=folder)


def _is_broken(error: Exception) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and any(said in str(error) for said in _BROKEN)


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8", errors="replace") == text


def _write(path: Path, text: str) -> None:
    """Write a file at one blow, so that another process never reads half of it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".py")
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    Path(name).replace(path)

"""The cache: several processes at once, broken files, folders that cannot be written."""

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from twillgpu.store.cache import FILE, Cache
from twillgpu.store.place import cache_folder
from twillgpu.store.record import Entry

WRITER = """
import sys
from pathlib import Path
from twillgpu.store.cache import Cache
from twillgpu.store.record import Entry

folder, name = Path(sys.argv[1]), sys.argv[2]
cache = Cache(folder=folder)
fields = dict(kernel=name, machine="m", status="optimal", report="r")
for number in range(40):
    key = f"{name}{number:02}"
    cache.put(Entry(key=key, ii_cycles=number, schedule="s" * 5000, **fields))
    cache.put(Entry(key="shared", ii_cycles=1, schedule=name * 9000, **fields))
    assert cache.get(key).ii_cycles == number
    assert len(set(cache.get("shared").schedule)) == 1
assert cache.usable
"""


def entry(key: str = "abc123", **changes: object) -> Entry:
    made = Entry(
        key=key, kernel="gemm", machine="h100", status="optimal", ii_cycles=1024, schedule="{}", report="I = 1,024\n"
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_what_is_put_is_found_again(tmp_path: Path) -> None:
    cache = Cache(folder=tmp_path / "new" / "folder")
    assert cache.get("abc123") is None
    assert not cache.folder.exists()
    cache.put(entry(source="x = 1\n"))
    found = Cache(folder=cache.folder).get("abc123")
    assert found is not None
    assert found == entry(source="x = 1\n", created=found.created)
    assert found.created > 0
    assert cache.get("abc") is None


def test_a_second_entry_of_a_key_replaces_the_first(tmp_path: Path) -> None:
    cache = Cache(folder=tmp_path)
    cache.put(entry())
    cache.put(entry(ii_cycles=None, status="infeasible"))
    assert [one.status for one in cache.entries()] == ["infeasible"]


def test_entries_and_clearing_go_by_the_beginning_of_a_key(tmp_path: Path) -> None:
    cache = Cache(folder=tmp_path)
    for key in ("aa1", "aa2", "b%_"):
        cache.put(entry(key))
    assert {one.key for one in cache.entries("a")} == {"aa1", "aa2"}
    assert [one.key for one in cache.entries("b%")] == ["b%_"]
    assert cache.entries("_") == ()
    assert cache.clear("aa1") == 1
    assert cache.clear() == 2
    assert cache.entries() == ()


def test_clearing_removes_the_emitted_file(tmp_path: Path) -> None:
    cache = Cache(folder=tmp_path)
    made = entry(source="x = 1\n")
    cache.put(made)
    path = cache.write_source(made)
    assert path.read_text(encoding="utf-8") == "x = 1\n"
    cache.clear()
    assert not path.exists()


def test_an_emitted_file_that_somebody_changed_is_written_again(tmp_path: Path) -> None:
    cache = Cache(folder=tmp_path)
    made = entry(source="x = 1\n")
    path = cache.write_source(made)
    before = path.stat().st_mtime_ns
    assert cache.write_source(made).stat().st_mtime_ns == before
    path.write_text("x = 2\n", encoding="utf-8")
    assert cache.write_source(made).read_text(encoding="utf-8") == "x = 1\n"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", WRITER, str(tmp_path)]
    running = [
        subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True)  # noqa: S603  # our own code
        for name in ("x", "y")
    ]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert len(Cache(folder=tmp_path).entries()) == 81


@pytest.mark.parametrize("content", [b"this is no database at all, " * 40, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_broken_file_is_moved_aside_with_a_warning(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    cache = Cache(folder=tmp_path)
    with pytest.warns(RuntimeWarning, match="the cache file is broken .* a new one is begun"):
        assert cache.get("abc123") is None
    cache.put(entry())
    assert cache.get("abc123") is not None
    aside = [file for file in tmp_path.iterdir() if ".broken-" in file.name]
    assert [file.read_bytes() for file in aside] == [content]


def test_a_file_that_breaks_in_the_middle_is_moved_aside(tmp_path: Path) -> None:
    cache = Cache(folder=tmp_path)
    for number in range(50):
        cache.put(entry(f"k{number}", schedule="s" * 3000))
    text = bytearray(cache.file.read_bytes())
    text[4096:] = os.urandom(len(text) - 4096)
    cache.file.write_bytes(bytes(text))
    with pytest.warns(RuntimeWarning, match="the cache file is broken"):
        cache.entries()
    cache.put(entry())
    assert [one.key for one in cache.entries()] == ["abc123"]


def test_a_table_of_another_form_is_moved_aside(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("CREATE TABLE entries (key TEXT PRIMARY KEY, other TEXT)")
    connection.close()
    cache = Cache(folder=tmp_path)
    with pytest.warns(RuntimeWarning, match="the cache file is broken"):
        cache.put(entry())
    assert cache.get("abc123") is not None


def test_an_empty_file_is_a_new_cache(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    cache = Cache(folder=tmp_path)
    cache.put(entry())
    assert cache.get("abc123") is not None


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    cache = Cache(folder=tmp_path / "file" / "cache")
    with pytest.warns(RuntimeWarning, match="the cache cannot be used .*; nothing is kept") as caught:
        assert [cache.put(entry()), cache.put(entry())] == [None, None]  # type: ignore[func-returns-value]
    assert len(caught) == 1
    assert cache.get("abc123") is None
    assert cache.clear() == 0


READER = """
import os, sys, warnings
from pathlib import Path
from twillgpu.store.cache import Cache
from twillgpu.store.record import Entry

# Nothing is read-only to root.
if os.getuid() == 0:
    os.setuid(65534)
cache = Cache(folder=Path(sys.argv[1]))
fields = dict(key="abc123", kernel="gemm", machine="m", status="optimal", ii_cycles=1, schedule="", report="")
entry = Entry(**fields, source="x = 1")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cache.put(entry)
    assert cache.get("abc123") is None
assert len(caught) == 1, [str(one.message) for one in caught]
print(caught[0].message)
print(cache.write_source(entry).read_text())
"""


@pytest.mark.parametrize("mode", [0o555, 0o500])
def test_a_read_only_folder_costs_the_caching_only(mode: int) -> None:
    """The run goes on, and an emitted file goes to a folder of the process; so it is where nothing can be read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(mode)
        done = subprocess.run(  # noqa: S603  # our own code
            [sys.executable, "-c", READER, str(folder)], capture_output=True, text=True, check=False, cwd="/"
        )
        folder.chmod(stat.S_IRWXU)
    assert done.returncode == 0, done.stderr
    assert "the cache cannot be used" in done.stdout
    assert "x = 1" in done.stdout


@pytest.mark.parametrize("message", ["database or disk is full", "attempt to write a readonly database"])
def test_a_failing_write_costs_the_caching_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    class Failing(sqlite3.Connection):
        def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
            if statement.startswith("INSERT"):
                raise sqlite3.OperationalError(message)
            return super().execute(statement, *values)  # type: ignore[arg-type]

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, factory=Failing, **kwargs))
    cache = Cache(folder=tmp_path)
    with pytest.warns(RuntimeWarning, match=message):
        cache.put(entry())
    assert not cache.usable
    assert cache.get("abc123") is None


def test_a_lock_that_is_held_is_waited_for(tmp_path: Path) -> None:
    cache = Cache(folder=tmp_path)
    cache.put(entry())
    holder = sqlite3.connect(cache.file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    code = WRITER.replace("range(40)", "range(1)")
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), "z"])  # noqa: S603  # our own code
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1.5)
    holder.execute("COMMIT")
    holder.close()
    assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("environment", "platform", "folder"),
    [
        ({"TWILLGPU_CACHE_DIR": "/here"}, "linux", "/here"),
        ({"XDG_CACHE_HOME": "/caches"}, "linux", "/caches/twillgpu"),
        ({"XDG_CACHE_HOME": "relative"}, "linux", "~/.cache/twillgpu"),
        ({}, "linux", "~/.cache/twillgpu"),
        ({}, "darwin", "~/Library/Caches/twillgpu"),
        ({"LOCALAPPDATA": "/local"}, "win32", "/local/twillgpu"),
    ],
)
def test_the_folder(environment: dict[str, str], platform: str, folder: str) -> None:
    assert cache_folder(environment, platform) == Path(folder).expanduser()


def test_nothing_is_warned_of_in_ordinary_use(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache = Cache(folder=tmp_path)
        cache.put(entry())
        cache.entries()
        cache.clear()

"""``twillgpu cache``."""

import json
from pathlib import Path

import pytest

from twillgpu.cli import run
from twillgpu.store.cache import Cache
from twillgpu.store.listing import cache_text
from twillgpu.store.record import Entry

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("TWILLGPU_CACHE_DIR", str(tmp_path))
    found = Cache()
    assert found.folder == tmp_path
    for key, source in (("aaaa1", "x = 1\n"), ("bbbb2", "")):
        found.put(
            Entry(
                key=key,
                kernel="gemm",
                machine="h100",
                status="optimal",
                ii_cycles=1024,
                schedule='{"ii_cycles": 1024}\n',
                report="I = 1,024 cycles\n",
                source=source,
            )
        )
    return found


def test_the_list(cache: Cache, capsys: Captured) -> None:
    assert run(["cache"]) == 0
    out = capsys.readouterr().out
    assert ["aaaa1", "gemm", "h100", "1,024", "optimal", "emitted", "now", "1", "KiB"] in [
        line.split() for line in out.splitlines()
    ]
    assert f"2 entries, 1 KiB, in {cache.folder}" in out


def test_json(cache: Cache, capsys: Captured) -> None:
    assert run(["cache", "aaaa", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "twillgpu-cache/1"
    assert document["folder"] == str(cache.folder)
    (entry,) = document["entries"]
    assert (entry["key"], entry["emitted"], entry["ii_cycles"], entry["status"]) == ("aaaa1", True, 1024, "optimal")


def test_clearing_one_and_all(cache: Cache, capsys: Captured) -> None:
    assert run(["cache", "--clear", "aaaa"]) == 0
    assert "1 entry cleared" in capsys.readouterr().out
    assert [entry.key for entry in cache.entries()] == ["bbbb2"]
    assert run(["cache", "--clear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cleared"] == 1
    assert run(["cache"]) == 0
    assert capsys.readouterr().out == f"nothing is kept in {cache.folder}\n"


@pytest.mark.parametrize(
    ("part", "text"), [("report", "I = 1,024 cycles\n"), ("source", "x = 1\n"), ("schedule", '{"ii_cycles": 1024}\n')]
)
def test_one_entry_is_shown(cache: Cache, capsys: Captured, part: str, text: str) -> None:
    assert cache.usable
    assert run(["cache", "aaaa1", "--show", part]) == 0
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cache", "cccc"], "no entry has a key that begins so; list them with twillgpu cache"),
        (["cache", "--show", "report"], "it names 2 entries; give the key of one"),
        (["cache", "bbbb", "--show", "source"], "the entry has no source: it was not asked for"),
    ],
)
def test_mistakes(cache: Cache, capsys: Captured, arguments: list[str], message: str) -> None:
    assert cache.usable
    assert run(arguments) == 1
    assert message in capsys.readouterr().err


def test_ages_in_words(cache: Cache) -> None:
    (entry, *_) = cache.entries()
    for seconds, words in ((86400.0, "1 day"), (7300.0, "2 hours"), (61.0, "1 minute"), (2.5, "2 seconds")):
        assert f"  {words}  " in cache_text([entry], "here", entry.created + seconds)

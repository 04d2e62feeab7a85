"""``twillgpu verify`` on schedule files that are broken anywhere: a verdict or a message, never a traceback."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from twillgpu.cli import run

GRAPH = str(Path(__file__).parents[1] / "graph" / "data" / "register_limited.json")
VALUES: tuple[Any, ...] = (None, True, -1, 0, 1, 10**13, 1.5, "", "x", [], {}, [[]], {"name": 1})


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _places(value[key], (*path, key))


def _broken(document: Any, path: tuple[Any, ...], draw: random.Random) -> Any:
    changed = json.loads(json.dumps(document))
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    what = draw.choice(("drop", "value", "value", "more"))
    if what == "drop":
        del inner[path[-1]]
    elif what == "more" and isinstance(inner, list):
        inner.append(inner[path[-1]])
    else:
        inner[path[-1]] = draw.choice(VALUES)
    return changed


def test_no_broken_file_ends_in_a_traceback(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["schedule", GRAPH, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    draw = random.Random(1)  # noqa: S311  # not for cryptography
    places = draw.choices(list(_places(document)), k=150)
    file = tmp_path / "schedule.json"
    seen = {0: 0, 1: 0}
    for path in places:
        file.write_text(json.dumps(_broken(document, path, draw)), encoding="utf-8")
        status = run(["verify", GRAPH, str(file)])
        out, err = capsys.readouterr()
        assert status in seen, (path, err)
        assert out or err.startswith("twillgpu: "), (path, err)
        seen[status] += 1
    assert min(seen.values()) >= 10, seen


@pytest.mark.parametrize("end", [0, 1, 40, 200, 900])
def test_a_file_that_ends_early_is_a_message(capsys: pytest.CaptureFixture[str], tmp_path: Path, end: int) -> None:
    assert run(["schedule", GRAPH, "--json"]) == 0
    file = tmp_path / "schedule.json"
    file.write_text(capsys.readouterr().out[:end], encoding="utf-8")
    assert run(["verify", GRAPH, str(file)]) == 1
    assert str(file) in capsys.readouterr().err

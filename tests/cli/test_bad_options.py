"""Numbers that no option can use, and schedule files that say nothing: one line with where, what, and what to do."""

import copy
import json
from pathlib import Path

import pytest
from graphs import FIGURE_1

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("number", ["nan", "inf"])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("schedule", "--time-limit"),
        ("schedule", "--work-limit"),
        ("schedule", "--check-limit"),
        ("view", "--time-limit"),
        ("compare", "--work-limit"),
        ("explain", "--budget"),
        ("explain", "--question-work"),
        ("simulate", "--reuse"),
        ("tune", "--reuse"),
        ("tune", "--time-limit"),
    ],
)
def test_limits_are_finite_numbers(command: str, option: str, number: str, capsys: Captured) -> None:
    """NaN was taken for a limit that is never reached."""
    assert run([command, str(FIGURE_1), option, number]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert (
        err
        == f"twillgpu: Invalid value for '{option}': {number} is not a finite number; see twillgpu {command} --help\n"
    )


@pytest.mark.parametrize("command", ["schedule", "simulate"])
def test_seeds_are_what_solvers_take(command: str, capsys: Captured) -> None:
    """A larger one raised TypeError inside the solver."""
    assert run([command, str(FIGURE_1), "--seed", str(10**30)]) == 1
    assert "is not in the range 0<=x<=2147483647" in capsys.readouterr().err


def test_pictures_have_a_legible_number_of_iterations(capsys: Captured, tmp_path: Path) -> None:
    """Drawing a hundred thousand never ended."""
    file = tmp_path / "a.svg"
    assert run(["view", str(FIGURE_1), "--as", "gantt", "--iterations", "100000", "-o", str(file)]) == 1
    assert "100000 is not in the range 1<=x<=200" in capsys.readouterr().err
    assert not file.exists()


def test_division_by_zero_in_a_grid_is_called_so(capsys: Captured) -> None:
    assert run(["tune", str(FIGURE_1), "--space", "groups=1", "--grid", "1/0"]) == 1
    err = capsys.readouterr().err
    assert "division by zero" in err
    assert len(err.splitlines()) == 1


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """A sound schedule of Figure 1."""
    file = tmp_path_factory.mktemp("schedules") / "found.json"
    assert run(["schedule", str(FIGURE_1), "--json", "-o", str(file)]) == 0
    found: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(
    "case",
    [
        ("groups", [], "ops[0].group: there is no group 0; add the groups that the ops are in"),
        ("groups", {}, "groups: expected a list, found an object; write a list"),
        ("ops", None, "ops: expected a list, found null; write a list"),
        ("ii_cycles", 0, "ii_cycles: 0 is too small; write an integer of at least 1"),
        ("ii_cycles", 2.5, "ii_cycles: expected an integer, found a number with a fraction (2.5)"),
        ("ii_cycles", 10**400, "ii_cycles: the number is infinite or not a number; write a finite number"),
        ("ii_cycles", None, "ii_cycles: there is no schedule in it: none was found"),
        ("schema", 1, "schema: expected a string, found an integer (1); write a string"),
        ("frobs", 1, 'frobs: unknown key "frobs"; use one of '),
        ("stages", 0, "stages: "),
    ],
)
@pytest.mark.parametrize("command", ["verify", "view"])
def test_malformed_schedules_are_refused_by_every_reader(
    command: str, case: tuple[str, object, str], document: dict[str, object], tmp_path: Path, capsys: Captured
) -> None:
    key, value, said = case
    changed = copy.deepcopy(document) | {key: value}
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(changed), encoding="utf-8")
    given = [str(file)] if command == "verify" else ["--schedule", str(file)]
    assert run([command, str(FIGURE_1), *given]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"twillgpu: {file}: {said}")
    assert len(err.splitlines()) == 1

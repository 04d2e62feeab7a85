"""Work on toy candidates, in a module that worker processes can import: times are in the candidate's values."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from twillgpu.tune.drive import Works
from twillgpu.tune.record import Candidate, Outcome, Question, Task


def toy(name: int, floor: float, took: float | None, folder: str = "", fatal: int = 0) -> Task:
    """Return a candidate that takes ``took`` microseconds; its first ``fatal`` solving workers are killed."""
    values = (("name", name), ("floor", floor), ("took", took), ("folder", folder), ("fatal", fatal))
    question = Question(source="toy", grid=("1",))
    return Task(
        question=question,
        candidate=Candidate(values=values),
        files=("toy",),
        digests=(str(name),),
        blocks=1,
        trips=1,
    )


def toy_bound(task: Task) -> tuple[Outcome, object]:
    values = dict(task.candidate.values)
    floor = float(values["floor"] or 0)
    return Outcome(candidate=task.candidate, status="bounded", floor_microseconds=floor), task.candidate.key


def toy_solve(task: Task, prepared: object) -> Outcome:
    assert prepared in (None, task.candidate.key)
    values = dict(task.candidate.values)
    if values["folder"]:
        _recorded(Path(str(values["folder"])), int(values["name"] or 0), int(values["fatal"] or 0))
    took = values["took"]
    if took is None:
        return Outcome(candidate=task.candidate, status="infeasible", reason="toy")
    return Outcome(candidate=task.candidate, status="solved", microseconds=float(took), seconds=0.01)


def _recorded(folder: Path, name: int, fatal: int) -> None:
    """Note this attempt in a file of its own; die as a worker does that runs out of memory."""
    before = len(list(folder.glob(f"{name}.*")))
    (folder / f"{name}.{before}.{os.getpid()}").touch()
    if before < fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)


TOYS = Works(bound=toy_bound, solve=toy_solve)

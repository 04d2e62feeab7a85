"""The journal: what it keeps, and what it refuses."""

from pathlib import Path

import pytest
from toy_works import toy

from twillgpu.errors import InputError
from twillgpu.tune.journal import Journal
from twillgpu.tune.record import Outcome

FIRST, SECOND = toy(1, 1.0, 2.0), toy(2, 1.5, 3.0)
FOUND = Outcome(candidate=FIRST.candidate, status="solved", microseconds=2.0, rings=(("k", 3),))


def _written(file: Path) -> None:
    journal = Journal(file, "which")
    journal.add(FOUND, FIRST.digests)
    journal.add(Outcome(candidate=SECOND.candidate, status="error", reason="it may pass"), SECOND.digests)
    journal.close()


def test_what_was_found_is_there_again_and_errors_are_not(tmp_path: Path) -> None:
    _written(tmp_path / "j")
    again = Journal(tmp_path / "j", "which")
    again.close()
    assert again.known == {(FIRST.candidate.key, FIRST.digests): FOUND}


def test_a_line_that_a_crash_has_cut_is_dropped_and_writing_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "j"
    _written(file)
    file.write_bytes(file.read_bytes() + b'{"files": ["2"], "cand')
    again = Journal(file, "which")
    again.add(Outcome(candidate=SECOND.candidate, status="limit"), SECOND.digests)
    again.close()
    last = Journal(file, "which")
    last.close()
    assert [outcome.status for outcome in last.known.values()] == ["solved", "limit"]


def test_an_empty_file_becomes_a_journal(tmp_path: Path) -> None:
    (tmp_path / "j").touch()
    _written(tmp_path / "j")
    assert (tmp_path / "j").read_text(encoding="utf-8").startswith('{"schema"')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("my notes\n", "the file is no journal of this version"),
        ("my notes", "the file is no journal of this version"),
        ('{"schema": "twillgpu-tune-journal/1", "question": "other"}\n', "it answers another question"),
        ('{"schema": "twillgpu-tune-journal/1", "question": "which"}\nnotes\n', "line 2 is no entry of a journal"),
        ('{"schema": "twillgpu-tune-journal/1", "question": "which"}\n{"files": []}\n', "line 2 is no entry"),
    ],
)
def test_another_file_is_left_alone(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "j"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Journal(file, "which")
    assert file.read_text(encoding="utf-8") == content


def test_another_question_or_a_damaged_journal_may_be_begun_anew_and_other_files_may_not(tmp_path: Path) -> None:
    file = tmp_path / "j"
    _written(file)
    with file.open("a", encoding="utf-8") as stream:
        stream.write("damage\n")
    again = Journal(file, "another", restart=True)
    again.close()
    assert again.known == {}
    assert file.read_text(encoding="utf-8").count("\n") == 1
    (tmp_path / "notes").write_text("mine\n", encoding="utf-8")
    with pytest.raises(InputError, match="the file is no journal"):
        Journal(tmp_path / "notes", "another", restart=True)
    assert (tmp_path / "notes").read_text(encoding="utf-8") == "mine\n"


def test_a_header_that_a_crash_has_cut_is_written_again(tmp_path: Path) -> None:
    file = tmp_path / "j"
    _written(file)
    file.write_bytes(file.read_bytes()[:20])
    _written(file)
    assert len(file.read_text(encoding="utf-8").splitlines()) == 2


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be used"):
        Journal(tmp_path / "no" / "j", "which")

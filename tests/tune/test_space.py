"""From options to candidates and tasks."""

from dataclasses import replace
from pathlib import Path

import pytest

from twillgpu.errors import InputError
from twillgpu.tune.record import Axis, Question
from twillgpu.tune.space import check_question, parse_axis, product, tasks_of

QUESTION = Question(source="kernel.py", grid=("seq_len / BLOCK_M", "heads"), shape=(("seq_len", 256), ("heads", 2)))


def test_axes_and_their_product() -> None:
    axes = [parse_axis("BLOCK_M=64, 128"), parse_axis("subtile=none,default,64"), parse_axis("registers=0")]
    assert axes[1] == Axis(name="subtile", values=(0, None, 64))
    found = product(axes)
    assert len(found) == 6
    assert found[1].values == (("BLOCK_M", 64), ("subtile", None), ("registers", 0))
    assert len({candidate.key for candidate in found}) == 6


def test_a_constexpr_may_have_any_value() -> None:
    assert parse_axis("CAUSAL=True,False").values == (True, False)
    assert parse_axis("KIND=fp16,1.5,None").values == ("fp16", 1.5, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BLOCK_M", "this is no axis"),
        ("BLOCK_M=", "this is no axis"),
        ("BLOCK_M=64,,128", "this is no axis"),
        ("1=2", "this is no axis"),
        ("BLOCK_M=64,64", "a value is given twice"),
        ("groups=none", "'none' is no number; use numbers, or default"),
        ("subtile=all", "'all' is no number; use numbers, none, or default"),
        ("groups=0", "'0' is no number"),
    ],
)
def test_an_axis_that_is_none(text: str, message: str) -> None:
    with pytest.raises(InputError, match="--space") as refused:
        parse_axis(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([], "there is nothing to choose from"),
        (["A=1", "A=2"], "the axis is given twice"),
        (["A=" + ",".join(map(str, range(150))), "B=" + ",".join(map(str, range(150)))], "22,500 candidates"),
    ],
)
def test_a_space_that_is_none(axes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        product([parse_axis(axis) for axis in axes])


def test_tasks_and_declined_candidates() -> None:
    question = replace(QUESTION, where=("BLOCK_M > 32",), trips="seq_len // 64")
    tasks, declined = tasks_of(question, product([parse_axis("BLOCK_M=32,64,96,512")]))
    assert [(task.blocks, task.trips) for task in tasks] == [(8, 4)]
    assert [(one.candidate.text, one.reason) for one in declined] == [
        ("BLOCK_M=32", "BLOCK_M > 32 does not hold"),
        ("BLOCK_M=96", "256 is no multiple of 96"),
        ("BLOCK_M=512", "256 is no multiple of 512"),
    ]


def test_a_candidates_files_are_found_by_its_values(tmp_path: Path) -> None:
    (tmp_path / "tile_96.json").write_text("{}", encoding="utf-8")
    question = Question(source="a.py", grid=("1",), graphs=str(tmp_path / "tile_{BLOCK_M}.json"))
    tasks, _ = tasks_of(question, product([parse_axis("BLOCK_M=64,96")]))
    assert [len(task.files) for task in tasks] == [1, 2]
    assert tasks[1].digests[0] == ""
    assert len(tasks[1].digests[1]) == 64


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (replace(QUESTION, where=("BLOCK_N > 1",)), "--where: BLOCK_N in"),
        (replace(QUESTION, trips="seqlen"), "did you mean 'seq_len'?"),
        (replace(QUESTION, source="tile_{BLOCK_K}.json"), "{BLOCK_K} is no axis"),
        (replace(QUESTION, source="tile_{BLOCK_M.json"), "is no file name with {NAME} in it"),
    ],
)
def test_a_question_with_unknown_names(changed: Question, message: str) -> None:
    with pytest.raises(InputError) as refused:
        check_question(changed, [parse_axis("BLOCK_M=64")])
    assert message in str(refused.value)

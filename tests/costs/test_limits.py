"""Limits below the machine's, and what cannot fit it: messages with the op and both numbers."""

from typing import Any

import pytest
from cost_graphs import graph, op, priced, small, value

from twillgpu.errors import InputError
from twillgpu.graph.record import DepGraph, Op, Resident
from twillgpu.machine.load import load
from twillgpu.machine.record import Groups, Machine, Registers

ONE = graph((op("a"),))


def said(found: DepGraph, machine: Machine | None = None, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        priced(found, machine, **options)
    return str(caught.value)


def test_limits_narrow_the_machine() -> None:
    problem = priced(ONE, max_groups=1, max_warps=4, registers=40)
    assert problem.groups == Groups(max=1, warps=(1, 4), max_warps=4)
    assert problem.registers is not None
    assert problem.registers.per_thread == 40


def test_widths_above_the_limit_of_warps_go() -> None:
    assert priced(graph((op("a", warps=1),)), max_warps=3).groups == Groups(max=2, warps=(1,), max_warps=3)


def test_zero_registers_means_no_limit() -> None:
    assert priced(ONE, registers=0).registers is None


def test_a_register_limit_where_the_machine_has_none() -> None:
    machine = small(registers={"per_thread": 64, "per_sm": 8192})
    assert priced(ONE, load("toy"), registers=40).registers == Registers(
        per_thread=40, per_sm=40 * 32 * 32, quota_min=24
    )
    assert machine.registers is not None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"max_groups": 3},
            "--max-groups: 3 is out of range: there are at most 2 groups on machine small; give 1 to 2",
        ),
        (
            {"max_groups": 0},
            "--max-groups: 0 is out of range: there are at most 2 groups on machine small; give 1 to 2",
        ),
        (
            {"max_warps": 9},
            "--warps: 9 is out of range: there are at most 8 warps in a block on machine small; give 1 to 8",
        ),
        (
            {"registers": 65},
            (
                "--registers: 65 is out of range: a thread has 24 to 64 registers on machine small; "
                "give 24 to 64, or 0 for no limit"
            ),
        ),
        (
            {"registers": 16},
            (
                "--registers: 16 is out of range: a thread has 24 to 64 registers on machine small; "
                "give 24 to 64, or 0 for no limit"
            ),
        ),
    ],
)
def test_a_limit_above_the_machine(options: dict[str, Any], expected: str) -> None:
    assert said(ONE, **options) == expected


def test_fewer_warps_than_the_narrowest_group() -> None:
    machine = small(groups={"max": 2, "warps": [4], "max_warps": 8})
    assert said(ONE, machine, max_warps=3) == (
        "--warps: 3 warps are fewer than the narrowest group of machine small has (4); give at least 4"
    )


def test_an_op_wider_than_every_group() -> None:
    wide = Op(name="a", source="k.py:7", warps=8, cost=op("a").cost)
    assert said(graph((wide,))) == (
        "op a (k.py:7): it needs 8 warps, the widest group of machine small has 4; "
        "split it (sub-tiles), or launch with fewer warps"
    )


def test_an_op_bigger_than_the_memory() -> None:
    # 1001 bytes round up to 1008; of 1000 bytes 200 are in use outside the loop
    found = graph((op("tile", result=value("smem", 1001)),))
    assert said(found) == (
        "op tile: its value needs 1008 bytes of smem, machine small has 1000; use a tile of at most 1000 bytes"
    )
    found = graph((op("tile", result=value("smem", 801)),), fixed=(("smem", 200),))
    assert said(found) == (
        "op tile: its value needs 816 bytes of smem, machine small has 1000 of which 200 are in use outside the "
        "loop; use a tile of at most 800 bytes"
    )


def test_a_memory_that_the_machine_does_not_have() -> None:
    assert said(graph((op("acc", result=value("tmem")),))) == (
        "op acc: its value is in tmem, machine small has only smem; choose a machine that has tmem"
    )
    assert said(graph((op("a"),), fixed=(("tmem", 4),))) == (
        "graph g: fixed_bytes: machine small has no memory 'tmem'; did you mean 'smem'?"
    )


def test_memories_are_unlimited_where_the_machine_lists_none() -> None:
    assert priced(graph((op("acc", result=value("tmem", 1 << 30)),)), load("toy")).memories == ()


def test_fixed_bytes_beyond_the_memory() -> None:
    assert said(graph((op("a"),), fixed=(("smem", 1001),))) == (
        "graph g: 1001 bytes of smem are in use outside the loop, machine small has 1000; "
        "use smaller tiles outside the loop"
    )


def test_a_value_of_more_registers_than_a_thread_has() -> None:
    # 61 registers x 512 bytes; 64 per thread, 4 reserved
    assert said(graph((op("acc", result=value(size=61 * 512)),))) == (
        "op acc: its value needs 61 registers in each thread of 4 warps (and 4 are reserved), a thread has 64; "
        "use a smaller tile, sub-tiles or more warps, or allow more registers"
    )


def test_a_resident_of_more_registers_than_a_thread_has() -> None:
    held = Resident(name="q", registers_per_thread=61, users=("a",))
    assert said(graph((op("a"),), residents=(held,))) == (
        "resident q: it needs 61 registers per thread for the whole loop (and 4 are reserved), a thread has 64; "
        "keep it in shared memory, use a smaller tile, or more warps"
    )

"""The machine in any order that its schedulers choose finds what the one symbolic run finds."""

import pytest
import warp_programs as warp

from twillgpu.emulate.machine import Machine, Outcome
from twillgpu.emulate.schedulers import Scheduler, schedulers
from twillgpu.emulate.steps import (
    Action,
    Arrive,
    BarrierCopy,
    Block,
    Commit,
    Drain,
    Label,
    Step,
    Touch,
    Wait,
    Work,
)
from twillgpu.emulate.symbolic_check import check_trips
from twillgpu.emulate.unroll import Unroller
from twillgpu.lower.record import Arrive as LowerArrive
from twillgpu.lower.record import Fence, WarpProgram
from twillgpu.lower.record import Wait as LowerWait

ALL = schedulers(2, range(12))


def _run(program: WarpProgram, trips: tuple[int, ...], scheduler: Scheduler) -> Outcome:
    unroller = Unroller(program)
    scripts = tuple(unroller.scripts(trips))
    return Machine(Block(groups=unroller.groups, barriers=unroller.barriers, scripts=scripts), scheduler).run()


@pytest.mark.parametrize("scheduler", ALL, ids=lambda scheduler: scheduler.name)
@pytest.mark.parametrize(
    "program",
    [warp.producer_consumer(2, consumers=2), warp.staged(2), warp.handover(2), warp.aliased()],
    ids=["ring", "staged", "handover", "aliased"],
)
def test_sound_programs_are_sound_in_every_order(program: WarpProgram, scheduler: Scheduler) -> None:
    outcome = _run(program, (3, 0, 4), scheduler)
    assert (outcome.races, outcome.hazards, outcome.deadlock) == ((), (), None)


@pytest.mark.parametrize("scheduler", ALL, ids=lambda scheduler: scheduler.name)
def test_a_race_is_found_in_whatever_order_the_run_took(scheduler: Scheduler) -> None:
    for program in (
        warp.edit(warp.producer_consumer(2), "consumer0", warp.without(LowerWait)),
        warp.edit(warp.handover(), "softmax", warp.without(Fence)),
    ):
        assert not check_trips(program, (3,)).sound
        assert _run(program, (3,), scheduler).races


@pytest.mark.parametrize("scheduler", ALL, ids=lambda scheduler: scheduler.name)
def test_a_deadlock_is_found_in_whatever_order_the_run_took(scheduler: Scheduler) -> None:
    program = warp.edit(warp.producer_consumer(1), "consumer0", warp.without(LowerArrive))
    deadlock = _run(program, (3,), scheduler).deadlock
    assert deadlock is not None
    assert "group producer waits: wait empty" in str(deadlock)


def _label(text: str) -> Label:
    return Label("one", text, "", 0, None)


def _nothing() -> None:
    pass


def _numbers(scheduler: Scheduler, *, ordered: bool) -> list[int]:
    """Run two asynchronous increments of one number; return what a reader finds."""
    memory, found, held = [0], [0], [0]

    def read() -> None:
        held[0] = memory[0]

    def write() -> None:
        memory[0] = held[0] + 1

    def look() -> None:
        found[0] = memory[0]

    place = Touch("smem", 0, 4, "number", 0)
    add = Work(_label("add"), "tcgen05", (place,), (place,), action=Action(read, write))
    script: list[Step] = [Work(_label("fill"), "simt", (), (place,)), add, add]
    script += [Commit(_label("commit"), 0, 0, "tcgen05")] if ordered else [Arrive(_label("arrive"), 0, 0)]
    script += [Wait(_label("wait"), 0, 0), Work(_label("look"), "simt", (place,), action=Action(look, _nothing))]
    barrier = BarrierCopy(name="done", copy=0, copies=1, arrivals=1)
    Machine(Block(groups=("one",), barriers=(barrier,), scripts=(script,)), scheduler).run()
    return found


def test_a_commit_arrives_when_all_work_before_it_is_complete() -> None:
    assert {_numbers(scheduler, ordered=True)[0] for scheduler in ALL} == {2}


def test_a_software_arrival_does_not_wait_for_the_engine() -> None:
    assert len({_numbers(scheduler, ordered=False)[0] for scheduler in ALL}) > 1


def test_a_drain_waits_for_reads_or_for_completion() -> None:
    done: list[str] = []

    def run(reads_only: bool) -> list[str]:
        done.clear()
        place = Touch("smem", 0, 4, "tile", 0)
        store = Work(
            _label("store"),
            "tma_store",
            (place,),
            action=Action(lambda: done.append("read"), lambda: done.append("written")),
        )
        look = Work(_label("look"), "simt", action=Action(lambda: done.append("looked"), _nothing))
        script: list[Step] = [
            Work(_label("fill"), "simt", (), (place,)),
            store,
            Drain(_label("drain"), "tma_store", 0, reads_only),
            look,
        ]
        Machine(Block(groups=("one",), barriers=(), scripts=(script,)), schedulers(1, ())[0]).run()
        return list(done)

    assert run(True) == ["read", "looked", "written"]
    assert run(False) == ["read", "written", "looked"]

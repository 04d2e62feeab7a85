"""Times of small programs, derived by hand: an arrival is seen 10 cycles later and costs 3, a wait costs 2."""

from collections.abc import Iterable

import pytest
from timed_programs import (
    MACHINE,
    arrive,
    barrier,
    commit,
    execute,
    group,
    options,
    producer_consumer,
    program,
    tiny,
    wait,
)

from problems import Dep, Node, problem, use
from twillgpu.errors import InputError, TwillError
from twillgpu.lower.record import Drain, Instruction, WarpProgram
from twillgpu.simulate.record import Event, Latency, Trace
from twillgpu.simulate.simulate import simulate, steady_state

LOAD = Node(name="load", uses=(use("tma", 20),), issue=5, latency=100, variable=True)
READ = Node(name="read", uses=(use("alu", 30),))


def once(made: WarpProgram, *nodes: Node, deps: Iterable[Dep] = ()) -> Trace:
    return simulate(made, tiny(*nodes, deps=tuple(deps)), MACHINE, options(trips=(1,)))


def event(trace: Trace, op: str, iteration: int = 0, kind: str = "op") -> Event:
    return next(one for one in trace.events if (one.op, one.iteration, one.kind) == (op, iteration, kind))


def test_one_copy_of_a_buffer_runs_load_and_use_one_after_the_other() -> None:
    """Expect 3, load 100, use 30, hop 10: the tile is loaded again 143 cycles later."""
    found = steady_state(producer_consumer(1), tiny(LOAD, READ), MACHINE, options())
    assert (found.cycles, found.period) == (143, 1)
    assert {one.reason: one.cycles for one in found.critical} == {
        "latency: load": 100,
        "issue: read": 30,
        "barrier hop: ready": 10,
        "arrive instruction: full": 3,
    }


def test_two_copies_overlap_them() -> None:
    found = steady_state(producer_consumer(2), tiny(LOAD, READ), MACHINE, options())
    assert (found.cycles, found.period) == (143 / 2, 2)


def test_enough_copies_leave_the_consumer_busy_all_the_time() -> None:
    """A wait that is ready 2, use 30, arrive 3."""
    found = steady_state(producer_consumer(5), tiny(LOAD, READ), MACHINE, options())
    assert (found.cycles, found.period) == (35, 1)
    assert not [one for one in found.stalls if one.group == "consumer"]
    assert dict(found.utilisation)["alu"] == pytest.approx(30 / 35)


def test_the_stall_of_a_group_names_its_barrier() -> None:
    found = steady_state(producer_consumer(1), tiny(LOAD, READ), MACHINE, options())
    stalls = {(one.group, one.reason): one.cycles for one in found.stalls}
    # The producer: 143 less expect 3, issue 5, wait 2. The consumer: 143 less use 30, arrive 3, wait 2.
    assert stalls == {("producer", "barrier ready"): 133, ("consumer", "barrier full"): 108}


def test_a_load_that_takes_longer_delays_its_reader() -> None:
    slow = options(latency=Latency(cycles=250))
    assert steady_state(producer_consumer(1), tiny(LOAD, READ), MACHINE, slow).cycles == 293


def test_instructions_behind_one_that_waits_for_its_operand_wait_too() -> None:
    made = program([group("one", [execute("a"), execute("b"), execute("c")])])
    nodes = [
        Node(name="a", uses=(use("alu", 4),), latency=50),
        Node(name="b", uses=(use("fma", 5),)),
        Node(name="c", uses=(use("mufu", 10),)),
    ]
    trace = once(made, *nodes, deps=[Dep(tail="a", head="b")])
    found = {one.op: (one.start_cycle, one.end_cycle, one.stall, one.stall_cycles) for one in trace.events}
    assert found == {"a": (0, 4, "", 0), "b": (50, 55, "result of a", 46), "c": (55, 65, "", 0)}


def test_a_result_of_the_iteration_before_is_waited_for() -> None:
    made = program([group("one", [execute("a")])])
    node = Node(name="a", uses=(use("alu", 4),), latency=50)
    found = steady_state(made, tiny(node, deps=[Dep(tail="a", head="a", distance=1)]), MACHINE, options())
    assert found.cycles == 50


def test_two_groups_that_want_one_unit_take_turns() -> None:
    made = program([group("first", [execute("a")]), group("second", [execute("b")])])
    trace = once(made, Node(name="a", uses=(use("alu", 20),)), Node(name="b", uses=(use("alu", 20),)))
    second = event(trace, "b")
    assert (second.start_cycle, second.end_cycle) == (20, 40)
    assert (second.stall, second.stall_cycles, second.why) == ("unit alu", 20, "unit")


def test_shares_of_a_unit_may_be_held_at_once_and_not_beyond_its_capacity() -> None:
    made = program([group(name, [execute(name)]) for name in "abc"])
    nodes = [
        Node(name="a", uses=(use("issue", 100, amount=1),)),
        Node(name="b", uses=(use("issue", 20, amount=7),)),
        Node(name="c", uses=(use("issue", 20, amount=7),)),
    ]
    trace = simulate(made, problem(nodes, units={"issue": 8}), MACHINE, options(trips=(1,)))
    assert [event(trace, name).start_cycle for name in "abc"] == [0, 0, 20]


def test_an_engine_works_in_order_and_arrives_when_it_has_completed() -> None:
    """Each takes the tensor core for 40 cycles and completes after 50: the second at 40 + 50."""
    issue: list[Instruction] = [execute("a", "tcgen05"), execute("b", "tcgen05"), commit("done")]
    made = program([group("mma", issue, 1), group("reader", [wait("done")])], barriers=[barrier("done")])
    nodes = [Node(name=name, uses=(use("tensor", 40),), issue=5, latency=50) for name in "ab"]
    trace = once(made, *nodes)
    first, second = event(trace, "a"), event(trace, "b")
    assert (first.start_cycle, first.work_start_cycle, first.work_end_cycle) == (0, 0, 50)
    assert (second.start_cycle, second.end_cycle, second.work_start_cycle, second.work_end_cycle) == (5, 10, 40, 90)
    waited = event(trace, "done", kind="wait")
    assert (waited.start_cycle, waited.end_cycle, waited.stall, waited.stall_cycles) == (0, 90, "barrier done", 88)


def test_a_drain_waits_for_all_but_the_newest() -> None:
    loop: list[Instruction] = [
        execute("a", "wgmma"),
        execute("b", "wgmma"),
        Drain(engine="wgmma", pending=1),
        execute("c"),
    ]
    nodes = [Node(name=name, uses=(use("tensor", 40),), issue=5, latency=50) for name in "ab"]
    trace = once(program([group("one", loop)]), *nodes, Node(name="c", uses=(use("alu", 1),)))
    assert event(trace, "c").start_cycle == 50
    drain = next(one for one in trace.events if one.kind == "drain")
    assert (drain.stall, drain.stall_cycles) == ("drain wgmma", 40)


def test_an_arrival_comes_after_the_stores_before_it() -> None:
    """The store is in memory at 60, the arrival is seen 10 later."""
    write: list[Instruction] = [execute("store", writes="tile"), arrive("full")]
    made = producer_consumer(1)
    made = program([group("writer", write), group("reader", [wait("full")])], made.rings, [barrier("full")])
    trace = once(made, Node(name="store", uses=(use("alu", 20),), latency=60))
    assert event(trace, "full", kind="arrive").end_cycle == 23
    assert event(trace, "full", kind="wait").end_cycle == 70


def test_random_latencies_follow_from_the_seed() -> None:
    def cycles(seed: int) -> int:
        chosen = options(trips=(40,), latency=Latency(kind="heavy"), seed=seed)
        return simulate(producer_consumer(2), tiny(LOAD, READ), MACHINE, chosen).cycles

    assert cycles(1) == cycles(1)
    assert cycles(1) != cycles(2)


def test_no_iterations_take_no_time() -> None:
    assert simulate(producer_consumer(2), tiny(LOAD, READ), MACHINE, options(trips=(0,))).cycles == 0


def test_tiles_of_a_persistent_block_follow_each_other() -> None:
    trace = simulate(producer_consumer(2), tiny(LOAD, READ), MACHINE, options(trips=(3, 2)))
    assert [one.tile for one in trace.events if one.op == "read"] == [0, 0, 0, 1, 1]


def test_a_program_that_cannot_go_on_is_refused() -> None:
    made = program([group("one", [wait("never")])], barriers=[barrier("never")])
    with pytest.raises(TwillError, match="the program cannot go on: one at wait never; twillgpu emulate says why"):
        once(made, READ)


def test_trip_counts_are_checked() -> None:
    with pytest.raises(InputError, match=r"\(-1,\) are no trip counts; give one from 0 on"):
        simulate(producer_consumer(1), tiny(LOAD, READ), MACHINE, options(trips=(-1,)))


def test_a_loop_without_instructions_has_no_steady_state() -> None:
    with pytest.raises(InputError, match="no group has anything to do in the loop"):
        steady_state(program([group("idle", [])]), tiny(READ), MACHINE, options())

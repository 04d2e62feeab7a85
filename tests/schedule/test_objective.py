"""After the interval, the secondary objectives in their order: no schedule of the same interval is better."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from hypothesis import HealthCheck, assume, given, settings
from searching import groups, optimal, searched

from exhaustive import schedules
from problems import Dep, Node, in_registers, problem, problems, use
from twillgpu.costs.record import LegalPair, Problem
from twillgpu.machine.record import Groups, Registers
from twillgpu.schedule.measure import measured
from twillgpu.schedule.record import SearchOptions, SearchResult

DECIDED = ("mixed", "handoff", "barriers", "warps", "groups", "stages")
"""The objectives that the solver decides; registers and length follow from the polish."""
STAGES = 2
ENOUGH = 3000
"""Schedules of one interval that are compared at most."""

# a -> b pays 3 to cross, b -> c pays 1 (values in registers); three groups at most.
CHAIN = problem(
    [
        Node(name="a", uses=(use("x", 2),), value=in_registers(8), handoff=3),
        Node(name="b", uses=(use("y", 2),), value=in_registers(8), handoff=1),
        Node(name="c", uses=(use("z", 2),)),
    ],
    [Dep(tail="a", head="b"), Dep(tail="b", head="c")],
    groups=Groups(max=3, warps=(1, 4), max_warps=12),
)


def apart(first: str, second: str) -> LegalPair:
    return LegalPair(rule="tiny_rule", relation="apart", first=first, second=second)


def objective(result: SearchResult) -> dict[str, int]:
    assert result.status == "optimal"
    assert result.objective_proved
    return dict(result.objective)


def test_ops_stay_together_where_nothing_speaks_for_groups() -> None:
    result = searched(CHAIN)
    assert objective(result) | {"length": 0, "registers": 0} == {
        "mixed": 0,
        "handoff": 0,
        "barriers": 0,
        "warps": 1,
        "groups": 1,
        # 2 + 2 + 2 cycles at interval 2.
        "stages": 3,
        "length": 0,
        "registers": 0,
    }


def test_the_cheaper_hand_off_is_cut() -> None:
    # a and c apart: b goes with a, for 1, not with c, for 3.
    schedule = optimal(replace(CHAIN, legality=(apart("a", "c"),)))
    assert groups(schedule) == {"a": 0, "b": 0, "c": 1}


def path(deps: list[Dep], *, wide: str = "") -> Problem:
    """Return four ops of which a and b, b and c, c and d must be apart: two groups are a c and b d, nothing else.

    Three groups leave more choice: a may be with d. Units ask for 4 cycles, so that a hand-off of 3 fits a stage.
    """
    nodes = [
        Node(
            name=name, uses=(use(name, 4),), issue=0, value=in_registers(8), handoff=3, warps=4 if name in wide else 1
        )
        for name in "abcd"
    ]
    return problem(
        nodes,
        deps,
        groups=Groups(max=4, warps=(1, 4), max_warps=16),
        legality=(apart("a", "b"), apart("b", "c"), apart("c", "d")),
        barrier=0,
    )


def first(*names: str) -> SearchOptions:
    """Return options with these objectives before all others."""
    others = (name for name in SearchOptions().objective if name not in names)
    return SearchOptions(objective=(*names, *others))


def test_less_hand_off_beats_fewer_groups() -> None:
    # a's value to d: kept in one group with three groups, handed over for 3 with two.
    tiny = path([Dep(tail="a", head="d")])
    result = searched(tiny)
    assert {name: objective(result)[name] for name in ("handoff", "groups")} == {"handoff": 0, "groups": 3}
    result = searched(tiny, first("groups"))
    assert {name: objective(result)[name] for name in ("handoff", "groups")} == {"handoff": 3, "groups": 2}


def test_fewer_barriers_beat_fewer_groups() -> None:
    # The same with an order that costs no cycles to cross, but a barrier.
    tiny = path([Dep(tail="a", head="d", kind="order")])
    result = searched(tiny)
    assert {name: objective(result)[name] for name in ("barriers", "groups")} == {"barriers": 0, "groups": 3}
    result = searched(tiny, first("groups"))
    assert {name: objective(result)[name] for name in ("barriers", "groups")} == {"barriers": 1, "groups": 2}


def test_fewer_warps_beat_fewer_groups() -> None:
    # a and d need 4 warps: in two groups each group does, 8; with a and d in one, 4 + 1 + 1.
    tiny = path([], wide="ad")
    result = searched(tiny, first("warps", "groups"))
    assert {name: objective(result)[name] for name in ("warps", "groups")} == {"warps": 6, "groups": 3}
    result = searched(tiny, first("groups", "warps"))
    assert {name: objective(result)[name] for name in ("warps", "groups")} == {"warps": 8, "groups": 2}


def test_fewer_groups_beat_fewer_stages() -> None:
    """Interval 4 by m. b may only wait in the cycle in which busy does not issue, the fourth, if they are together.

    Then it ends at 3 + 2, in a second stage; in a group without busy it ends at 1 + 2.
    """
    tiny = problem(
        [
            Node(name="m", uses=(use("x", 4),), issue=0),
            Node(name="busy", uses=(use("y", 3),)),
            Node(name="a", latency=1),
            Node(name="b", latency=2),
        ],
        [Dep(tail="a", head="b", blocking=True)],
        groups=Groups(max=2, warps=(1, 4), max_warps=8),
    )
    result = searched(tiny)
    assert {name: objective(result)[name] for name in ("groups", "stages")} == {"groups": 1, "stages": 2}
    result = searched(tiny, first("stages"))
    assert {name: objective(result)[name] for name in ("groups", "stages")} == {"groups": 2, "stages": 1}


def test_loads_by_themselves_beat_less_hand_off() -> None:
    # c beside the load saves its hand-off of 3 and mixes.
    tiny = problem(
        [
            Node(name="load", uses=(use("x", 4),), variable=True, value=in_registers(8), handoff=3),
            Node(name="c"),
        ],
        [Dep(tail="load", head="c")],
        groups=Groups(max=2, warps=(1, 4), max_warps=8),
    )
    result = searched(tiny)
    assert {name: objective(result)[name] for name in ("mixed", "handoff")} == {"mixed": 0, "handoff": 3}
    result = searched(tiny, first("handoff"))
    assert {name: objective(result)[name] for name in ("mixed", "handoff")} == {"mixed": 1, "handoff": 0}


def test_the_smallest_interval_comes_before_every_objective() -> None:
    # In one group 5 cycles, in two 4: two groups although fewer are wanted first.
    tiny = problem(
        [Node(name="busy", uses=(use("x", 4),)), Node(name="a", latency=1), Node(name="b", latency=1)],
        [Dep(tail="a", head="b", blocking=True)],
        groups=Groups(max=2, warps=(1, 4), max_warps=8),
    )
    result = searched(tiny, first("groups"))
    assert (result.lower_bound_cycles, objective(result)["groups"]) == (4, 2)


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=3))
def test_no_schedule_of_brute_force_is_better(tiny: Problem) -> None:
    result = searched(tiny, SearchOptions(max_stages=STAGES))
    assume(result.status == "optimal" and result.lower_bound_cycles <= 10)
    assert result.schedule is not None
    every = islice(schedules(tiny, result.schedule.ii_cycles, STAGES), ENOUGH)
    best = min((measured(tiny, schedule, DECIDED) for schedule in every), default=None)
    assert best is not None
    found = measured(tiny, result.schedule, DECIDED)
    assert found == best if result.objective_proved else found >= best


def test_registers_bind_before_the_objective() -> None:
    # All in one group would hold 24 + 24 registers of 40: two groups, although one would do otherwise.
    tiny = problem(
        [
            Node(name="a", latency=4, value=in_registers(24)),
            Node(name="b", latency=4, value=in_registers(24)),
            Node(name="m", uses=(use("x", 4),)),
        ],
        registers=Registers(per_thread=40, per_sm=65536),
        groups=Groups(max=2, warps=(1, 4), max_warps=8),
    )
    assert objective(searched(tiny))["groups"] == 2

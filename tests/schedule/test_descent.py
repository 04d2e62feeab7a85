"""From a partition to better ones near it: the best move first, only legal ones, as long as schedules follow."""

from __future__ import annotations

from dataclasses import replace

from problems import Dep, Node, in_registers, problem
from twillgpu.costs.record import LegalPair, Problem, RuleOptions
from twillgpu.machine.record import Groups
from twillgpu.schedule.descent import descend

ORDER = ("mixed", "handoff", "barriers", "warps", "groups")
Partition = dict[str, int]

# a -> b costs 3 to cross, b -> c 1, c -> d 2.
CHAIN = problem(
    [
        Node(name="a", value=in_registers(8), handoff=3),
        Node(name="b", value=in_registers(8), handoff=1),
        Node(name="c", value=in_registers(8), handoff=2),
        Node(name="d"),
    ],
    [Dep(tail="a", head="b"), Dep(tail="b", head="c"), Dep(tail="c", head="d")],
    groups=Groups(max=3, warps=(1, 4), max_warps=12),
)
SPREAD = {"a": 0, "b": 1, "c": 2, "d": 0}


class Asked:
    """Records what is asked, and accepts what ``accepts`` says."""

    def __init__(self, *refused: Partition, limit: int = 99) -> None:
        self.refused = refused
        self.limit = limit
        self.seen: list[Partition] = []
        self.taken: list[Partition] = []

    def feasible(self, groups: Partition) -> bool:
        self.seen.append(groups)
        if groups in self.refused:
            return False
        self.taken.append(groups)
        return True

    def spent(self) -> bool:
        return len(self.seen) >= self.limit


def down(tiny: Problem, start: Partition, asked: Asked) -> Asked:
    descend(tiny, start, ORDER, asked.feasible, asked.spent)
    return asked


def test_the_best_move_comes_first() -> None:
    # b and c exchange a value, so they may move together: to a and d, which leaves no hand-off.
    asked = down(CHAIN, SPREAD, Asked())
    assert asked.seen == [dict.fromkeys("abcd", 0)]


def test_it_goes_on_from_the_better_partition() -> None:
    # All in one group refused: a and b to c leaves the 2 of c to d; then c to d leaves the 1 of b to c.
    asked = down(CHAIN, SPREAD, Asked(dict.fromkeys("abcd", 0)))
    assert asked.taken == [{"a": 0, "b": 0, "c": 0, "d": 1}, {"a": 0, "b": 0, "c": 1, "d": 1}]


def test_a_move_without_a_schedule_is_passed_over_and_not_asked_again() -> None:
    refused = ({"a": 0, "b": 0, "c": 1, "d": 0}, {"a": 0, "b": 0, "c": 0, "d": 0})
    asked = down(CHAIN, SPREAD, Asked(*refused))
    assert asked.taken
    assert not any(groups in refused for groups in asked.taken)
    for groups in refused:
        assert asked.seen.count(groups) <= 1


def test_nothing_better_asks_nothing() -> None:
    assert down(CHAIN, dict.fromkeys("abcd", 0), Asked()).seen == []


def test_it_stops_when_the_effort_is_spent() -> None:
    assert len(down(CHAIN, SPREAD, Asked(limit=1)).seen) == 1
    assert down(CHAIN, SPREAD, Asked(limit=0)).seen == []


def pair(relation: str) -> LegalPair:
    return LegalPair(rule="tiny_rule", relation="apart" if relation == "apart" else "together", first="a", second="c")


def test_ops_that_must_be_apart_or_together_are() -> None:
    apart = down(replace(CHAIN, legality=(pair("apart"),)), SPREAD, Asked())
    assert apart.taken
    assert all(groups["a"] != groups["c"] for groups in apart.seen)
    together = down(replace(CHAIN, legality=(pair("together"),)), {"a": 0, "b": 1, "c": 0, "d": 1}, Asked())
    assert together.taken
    assert all(groups["a"] == groups["c"] for groups in together.seen)


def test_loads_stay_in_group_0() -> None:
    loads = problem(
        [Node(name="load", variable=True), Node(name="b"), Node(name="c")],
        [Dep(tail="load", head="b"), Dep(tail="b", head="c")],
        groups=CHAIN.groups,
    )
    asked = down(loads, {"load": 0, "b": 0, "c": 1}, Asked())
    assert asked.taken[-1] == {"load": 0, "b": 1, "c": 1}
    assert all(groups["load"] == 0 for groups in asked.seen)
    iff = replace(loads, rules=RuleOptions(variable_latency="iff"))
    asked = down(iff, {"load": 0, "b": 1, "c": 2}, Asked())
    assert asked.seen == [{"load": 0, "b": 1, "c": 1}]


def test_every_candidate_is_better_than_what_came_before() -> None:
    from_two = down(CHAIN, {"a": 0, "b": 1, "c": 1, "d": 1}, Asked())
    assert from_two.seen == [dict.fromkeys("abcd", 0)]

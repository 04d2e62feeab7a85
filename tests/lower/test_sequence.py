"""Prologue, loop and epilogue of small groups, derived by hand."""

from __future__ import annotations

from collections.abc import Callable

from twillgpu.lower.record import Arrive, BarrierUse, Drain, Execute, Instance, Iteration
from twillgpu.lower.sequence import Draft, Item, Observe, Regions, expand


def _work(name: str, engine: str = "simt") -> Callable[[Iteration], tuple[Draft, ...]]:
    return lambda iteration: (
        Execute(op=name, members=(name,), engine=engine, iteration=iteration),  # type: ignore[arg-type]
    )


def _observe(name: str) -> Callable[[Iteration], tuple[Draft, ...]]:
    use = BarrierUse(
        barrier="free", instance=Instance(scope="iteration", iteration=Iteration(anchor="loop", offset=0))
    )
    return lambda iteration: (
        Observe(engine="wgmma", op=name, iteration=iteration, reads_only=False),
        Arrive(use=use),
    )


def _said(region: tuple[object, ...]) -> list[str]:
    found = []
    for one in region:
        if isinstance(one, Execute) and one.iteration is not None:
            found.append(f"{one.op} {one.iteration.anchor} {one.iteration.offset:+d} >= {one.at_least}")
        elif isinstance(one, Drain):
            found.append(f"drain {one.pending} >= {one.at_least}")
    return found


def _two_stages() -> Regions:
    return expand(
        [
            Item(stage=0, position=(0, 0, "a"), build=_work("a")),
            Item(stage=1, position=(1, 0, "b"), build=_work("b")),
        ],
        2,
    )


def test_one_stage_needs_no_prologue_and_no_epilogue() -> None:
    regions = expand([Item(stage=0, position=(0, 0, "a"), build=_work("a"))], 1)
    assert (regions.prologue, regions.epilogue) == ((), ())
    assert _said(regions.loop) == ["a loop +0 >= 0"]


def test_two_stages_start_one_iteration_early_and_end_one_late() -> None:
    # Step 0: a(0), if there is an iteration 0. Steps t = 1 .. trips - 1: a(t), b(t - 1). Then b(trips - 1), which was
    # not done before as soon as there is one iteration.
    regions = _two_stages()
    assert _said(regions.prologue) == ["a first +0 >= 1"]
    assert _said(regions.loop) == ["a loop +0 >= 0", "b loop -1 >= 0"]
    assert _said(regions.epilogue) == ["b last -1 >= 1"]


def test_three_stages_with_fewer_iterations_than_stages() -> None:
    # Stages 0 and 2. Step 0: a(0); step 1: a(1) from two iterations on. The loop begins at t = 2. The epilogue does
    # c(trips - 2), which exists from two iterations on, and c(trips - 1).
    regions = expand(
        [
            Item(stage=0, position=(0, 0, "a"), build=_work("a")),
            Item(stage=2, position=(1, 0, "c"), build=_work("c")),
        ],
        3,
    )
    assert _said(regions.prologue) == ["a first +0 >= 1", "a first +1 >= 2"]
    assert _said(regions.epilogue) == ["c last -2 >= 2", "c last -1 >= 1"]


def _executed(regions: Regions, trips: int) -> list[tuple[str, int]]:
    found = []
    steps = [(one, 0) for one in regions.prologue]
    steps += [(one, t) for t in range(regions.stages - 1, trips) for one in regions.loop]
    steps += [(one, 0) for one in regions.epilogue]
    for one, t in steps:
        if isinstance(one, Execute) and one.iteration is not None and trips >= one.at_least:
            base = {"first": 0, "loop": t, "last": trips}[one.iteration.anchor]
            found.append((one.op, base + one.iteration.offset))
    return found


def test_every_op_is_executed_once_per_iteration_for_any_trip_count() -> None:
    stages = (0, 2, 1, 3, 0)
    items = [Item(stage=stage, position=(at, 0, ""), build=_work(str(at))) for at, stage in enumerate(stages)]
    regions = expand(items, 4)
    for trips in range(9):
        wanted = sorted((str(at), number) for at in range(len(stages)) for number in range(trips))
        assert sorted(_executed(regions, trips)) == wanted


def test_a_drain_leaves_what_was_issued_after_its_target_on_every_path() -> None:
    # a(i) and b(i) are issued in turn; a(i) is observed right after b(i): b(i) may be under way. In the epilogue of
    # stage 1, a(trips - 1) is observed when nothing newer than b(trips - 1) was issued.
    items = [
        Item(stage=0, position=(0, 0, "a"), build=_work("a", "wgmma")),
        Item(stage=1, position=(1, 0, "x"), build=_observe("a")),
        Item(stage=0, position=(2, 0, "b"), build=_work("b", "wgmma")),
    ]
    regions = expand(items, 2)
    # In the loop a(t), then a(t - 1) is observed: b(t - 1) and a(t) are newer. In the epilogue only b(trips - 1) is.
    assert _said(regions.loop) == ["a loop +0 >= 0", "drain 2 >= 0", "b loop +0 >= 0"]
    assert _said(regions.epilogue) == ["drain 1 >= 1"]
    assert regions.outstanding == ("wgmma",)


def test_what_is_observed_completely_is_not_outstanding() -> None:
    items = [
        Item(stage=0, position=(0, 0, "a"), build=_work("a", "wgmma")),
        Item(stage=0, position=(1, 0, "x"), build=_observe("a")),
    ]
    assert expand(items, 1).outstanding == ()

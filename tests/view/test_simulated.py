"""A simulated run as a chart: what holds units, what groups do, and where they stand still."""

from simulated_run import TRACE

from twillgpu.view.simulated import OUTSIDE, simulated_chart


def test_lanes_are_the_units_in_use_and_the_groups() -> None:
    chart = simulated_chart(TRACE)
    assert [(lane.name, lane.kind) for lane in chart.lanes] == [
        ("tma", "unit"), ("issue", "unit"), ("alu", "unit"), ("producer", "group"), ("consumer", "group"),
    ]  # fmt: skip
    assert (chart.stop, chart.steady) == (86, False)


def test_bars_are_the_events() -> None:
    lanes = {lane.name: lane.bars for lane in simulated_chart(TRACE).lanes}
    assert [(bar.op, bar.start, bar.stop, bar.iteration, bar.what) for bar in lanes["producer"]] == [
        ("setup", 0, 4, OUTSIDE, "op"),
        ("load", 4, 9, 0, "op"),
        ("stall: unit tma", 9, 24, OUTSIDE, "stall"),
        ("load", 24, 29, 1, "op"),
    ]
    assert [(bar.op, bar.start, bar.height) for bar in lanes["issue"]] == [("read", 24, 2), ("read", 56, 2)]
    assert [bar.what for bar in lanes["consumer"]] == ["wait", "op", "wait", "op"]

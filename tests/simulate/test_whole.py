"""From a block to a launch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from timed_programs import MACHINE, TILE, options, producer_consumer, tiny

from problems import Node, use
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel, KernelOp, KernelValue, Loop, TileType
from twillgpu.lower.record import WarpProgram
from twillgpu.machine.record import Figure, Machine
from twillgpu.simulate.arguments import trips_of
from twillgpu.simulate.figures import BLOCK_START, LAUNCH
from twillgpu.simulate.record import KernelTime
from twillgpu.simulate.simulate import simulate, steady_state
from twillgpu.simulate.whole import Launch, kernel_time

PROBLEM = tiny(
    Node(name="load", uses=(use("tma", 20),), issue=5, latency=100, variable=True),
    Node(name="read", uses=(use("alu", 30),)),
)
INTEGER = TileType(space="scalar", dtype="i32")


def chip(**more: float) -> Machine:
    """Return the tiny machine ten times on a chip of 100 MHz."""
    values = {"chip.sms": 10.0, "chip.clock_mhz": 100.0} | {name.replace("__", "."): at for name, at in more.items()}
    figures = (Figure(path=path, value=at, unit="", source="a test", confidence="G") for path, at in values.items())
    return replace(MACHINE, figures=tuple(figures))


def timed(launch: Launch, machine: Machine | None = None, made: WarpProgram | None = None) -> KernelTime:
    made, machine = made or producer_consumer(1), machine or chip()
    steady = steady_state(made, PROBLEM, machine, options())
    return kernel_time(made, PROBLEM, machine, steady, launch=launch, options=options())[0]


def test_blocks_run_in_waves() -> None:
    """21 blocks on 10 SMs are three waves."""
    found = timed(Launch(trips=8, blocks=21))
    block = simulate(producer_consumer(1), PROBLEM, chip(), options(trips=(8,))).cycles
    assert (found.waves, found.sms, found.block_cycles, found.binding) == (3, 10, block, "simulation")
    assert found.microseconds == pytest.approx(3 * (block + BLOCK_START.value) / 100 + LAUNCH.value)


def test_without_blocks_every_sm_has_one() -> None:
    assert timed(Launch(trips=1)).blocks == 10


@pytest.mark.parametrize("trips", [97, 150, 211])
def test_a_long_loop_goes_on_at_the_pace_of_the_steady_state(trips: int) -> None:
    whole = simulate(producer_consumer(2), PROBLEM, chip(), options(trips=(trips,))).cycles
    assert timed(Launch(trips=trips), made=producer_consumer(2)).block_cycles == whole


def test_short_loops_are_simulated_whole() -> None:
    none, one = (timed(Launch(trips=trips)) for trips in (0, 1))
    assert none.block_cycles == 0
    assert one.block_cycles == 143 + 2


def loading(made: WarpProgram) -> WarpProgram:
    """Give the kernel a load of 8,192 bytes in its loop, and a store of as much after it."""
    tile = KernelValue(name="x", type=replace(TILE, space="registers"))
    load = KernelOp(name="x", opcode="tt.descriptor_load", operands=("d",), results=(tile,))
    store = KernelOp(name="store", opcode="tt.descriptor_store", operands=("d", "x"))
    descriptor = KernelValue(name="d", type=TileType(space="descriptor", shape=(64, 64), dtype="f16"))
    kernel = replace(
        made.kernel, arguments=(descriptor,), loop=replace(made.kernel.loop, body=(load,)), after=(store,)
    )
    return replace(made, kernel=kernel)


def test_the_path_to_l2_may_bind() -> None:
    """Ten iterations and a store move 11 x 8,192 bytes."""
    machine = chip(global__bytes_per_cycle=16)
    found = timed(Launch(trips=10), machine, loading(producer_consumer(5)))
    assert (found.loop_bytes, found.block_bytes) == (8192, 11 * 8192)
    assert (found.path_cycles, found.binding) == (11 * 512, "path to L2")
    assert found.microseconds == pytest.approx((11 * 512 + BLOCK_START.value) / 100 + LAUNCH.value)


def test_hbm_binds_where_its_bytes_serve_too_few_accesses() -> None:
    """Each SM has 2 bytes per cycle: 45,056 cycles, or half of them where each byte serves two accesses."""
    machine, made = chip(global__hbm_bytes_per_cycle=2), loading(producer_consumer(5))
    left_out, once, often = (timed(Launch(trips=10, reuse=reuse), machine, made) for reuse in (None, 2, 1000))
    assert once.binding == "HBM"
    assert once.microseconds == pytest.approx(45056 / 2 / 100 + LAUNCH.value)
    assert left_out.binding == often.binding == "simulation"
    assert left_out.reuse_needed == pytest.approx(450.56 / (left_out.microseconds - LAUNCH.value))


def test_a_machine_without_a_chip_has_no_launch() -> None:
    with pytest.raises(InputError, match=r"it has no chip\.sms; choose a real machine"):
        timed(Launch(trips=1), MACHINE)


def kernel_of(upper: str) -> Kernel:
    constants = {"zero": 0, "step": 64}
    before = [
        KernelOp(
            name=name,
            opcode="arith.constant",
            results=(KernelValue(name=name, type=INTEGER),),
            attributes=(("value", f"{value} : i32"),),
        )
        for name, value in constants.items()
    ]
    loop = Loop(
        name="loop",
        induction=KernelValue(name="i", type=INTEGER),
        lower="zero",
        upper=upper,
        step="step",
        trip_count=None,
        carried=(),
        body=(),
    )
    arguments = (KernelValue(name="K", type=INTEGER), KernelValue(name="M", type=INTEGER))
    return Kernel(
        name="k", target="sm_90a", num_warps=4, arguments=arguments, before=tuple(before), loop=loop, after=()
    )


def test_the_trip_count_follows_from_arguments() -> None:
    assert trips_of(kernel_of("K"), {"K": 1000}) == 16
    assert trips_of(kernel_of("K"), {"K": 0}) == 0


def test_arguments_that_do_not_say_the_trip_count() -> None:
    with pytest.raises(InputError, match="the trip count of loop does not follow from M; set every argument"):
        trips_of(kernel_of("K"), {"M": 1})
    with pytest.raises(InputError, match="kernel k has no such argument; did you mean 'K'"):
        trips_of(kernel_of("K"), {"KK": 1})

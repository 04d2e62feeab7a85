"""From cycles per iteration to time and TFLOP/s, with every figure that goes into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twillgpu.costs.record import Problem
from twillgpu.graph.record import DepGraph
from twillgpu.machine.record import Machine
from twillgpu.schedule.record import Schedule
from twillgpu.view.text import number, section, wrap
from twillgpu.view.traffic import traffic_lines

CHIP = ("chip.sms", "chip.clock_mhz")
CEILING = ("chip.practical_tflops_16bit", "tensor.flop_per_cycle_16bit")
ROUNDING = 1.01
"""Occupancies are whole cycles: a rate this much above that of 16-bit products still is one of theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Rates of the loop's steady state on the whole chip, one block on every SM.

    Attributes:
        sms, clock_mhz: the chip as the machine file states it.
        iteration_nanoseconds: one period.
        model_tflops: at the stated clock, ``None`` where the work of an iteration is not known.
        ceiling_tflops: what the tensor cores sustain in practice (power limits) on 16-bit inputs, ``None`` where
            the machine has no such figure or the loop's products run faster than 16-bit ones.
    """

    sms: int
    clock_mhz: float
    iteration_nanoseconds: float
    model_tflops: float | None
    ceiling_tflops: float | None

    @property
    def practical_tflops(self) -> float | None:
        """The smaller one of model and ceiling: a power limit does not slow a loop that stays below it."""
        if self.model_tflops is None or self.ceiling_tflops is None:
            return None
        return min(self.model_tflops, self.ceiling_tflops)


def predict(machine: Machine, problem: Problem, schedule: Schedule) -> Prediction | None:
    """Return the prediction, or ``None`` for a machine without SM count and clock.

    model = flop per iteration / I x clock x SMs; practical = min(model, ceiling).
    """
    figures = {figure.path: figure.value for figure in machine.figures}
    if not all(path in figures for path in CHIP):
        return None
    sms, clock_mhz = (figures[path] for path in CHIP)
    model = problem.flop_per_iteration / schedule.ii_cycles * clock_mhz * sms / 1e6
    return Prediction(
        sms=int(sms),
        clock_mhz=clock_mhz,
        iteration_nanoseconds=schedule.ii_cycles / clock_mhz * 1e3,
        model_tflops=model if problem.flop_per_iteration else None,
        ceiling_tflops=_ceiling(figures, problem),
    )


def _ceiling(figures: Mapping[str, float], problem: Problem) -> float | None:
    if not all(path in figures for path in CEILING):
        return None
    ceiling, peak = (figures[path] for path in CEILING)
    held = sum(use.cycles for op in problem.ops for use in op.uses if use.unit == "tensor")
    return None if problem.flop_per_iteration > ROUNDING * peak * held else ceiling


def prediction_section(machine: Machine, graph: DepGraph, problem: Problem, schedule: Schedule) -> list[str]:
    """Predicted time and TFLOP/s, with the stated clock and the practical ceiling; traffic of global memory."""
    prediction = predict(machine, problem, schedule)
    lines = [] if prediction is None else _rates(prediction, problem)
    return section("Prediction", lines + traffic_lines(machine, graph, schedule))


def _rates(prediction: Prediction, problem: Problem) -> list[str]:
    lines = wrap(
        f"one iteration: {prediction.iteration_nanoseconds:,.0f} ns at {number(prediction.clock_mhz)} MHz "
        "(steady state; prologue, epilogue and launch are not in it)"
    )
    if prediction.model_tflops is not None:
        lines += wrap(
            f"{prediction.model_tflops:,.0f} TFLOP/s by the model: {number(problem.flop_per_iteration)} FLOP per "
            f"iteration, one block on each of {prediction.sms} SMs"
        )
    if prediction.practical_tflops is not None and prediction.ceiling_tflops is not None:
        lines += wrap(
            f"{prediction.practical_tflops:,.0f} TFLOP/s in practice: the tensor cores sustain "
            f"{number(prediction.ceiling_tflops)} TFLOP/s on 16-bit matrix products under power limits"
        )
    return lines

"""From cycles per iteration to time and TFLOP/s, with every figure that goes into it."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.costs.record import Problem
from twillgpu.machine.record import Machine
from twillgpu.schedule.record import Schedule
from twillgpu.view.text import number, section, wrap

CHIP = ("chip.sms", "chip.clock_mhz")
CEILING = ("chip.practical_tflops_16bit", "tensor.flop_per_cycle_16bit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Rates of the loop's steady state on the whole chip, one block on every SM.

    Attributes:
        sms, clock_mhz: the chip as the machine file states it.
        iteration_nanoseconds: one period.
        model_tflops: at the stated clock, ``None`` where the work of an iteration is not known.
        practical_tflops: the same, scaled by what the tensor cores sustain in practice against their rate at the
            stated clock (power limits), ``None`` where the machine has no such figure.
        ceiling_tflops: that practical ceiling for 16-bit inputs.
    """

    sms: int
    clock_mhz: float
    iteration_nanoseconds: float
    model_tflops: float | None
    practical_tflops: float | None
    ceiling_tflops: float | None


def predict(machine: Machine, problem: Problem, schedule: Schedule) -> Prediction | None:
    """Return the prediction, or ``None`` for a machine without SM count and clock.

    model = flop per iteration / I x clock x SMs; practical = model x ceiling / (peak FLOP per cycle x clock x SMs).
    """
    figures = {figure.path: figure.value for figure in machine.figures}
    if not all(path in figures for path in CHIP):
        return None
    sms, clock_mhz = (figures[path] for path in CHIP)
    cycles_per_microsecond = clock_mhz * sms
    model = problem.flop_per_iteration / schedule.ii_cycles * cycles_per_microsecond / 1e6
    ceiling, practical = None, None
    if all(path in figures for path in CEILING):
        ceiling, peak = (figures[path] for path in CEILING)
        practical = model * ceiling / (peak * cycles_per_microsecond / 1e6)
    return Prediction(
        sms=int(sms),
        clock_mhz=clock_mhz,
        iteration_nanoseconds=schedule.ii_cycles / clock_mhz * 1e3,
        model_tflops=model if problem.flop_per_iteration else None,
        practical_tflops=practical if problem.flop_per_iteration else None,
        ceiling_tflops=ceiling,
    )


def prediction_section(machine: Machine, problem: Problem, schedule: Schedule) -> list[str]:
    """Predicted time and TFLOP/s, with the stated clock and the practical ceiling."""
    prediction = predict(machine, problem, schedule)
    if prediction is None:
        return []
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
            f"{prediction.practical_tflops:,.0f} TFLOP/s in practice, as the tensor cores sustain "
            f"{number(prediction.ceiling_tflops)} TFLOP/s on 16-bit matrix products under power limits"
        )
    return section("Prediction", lines)

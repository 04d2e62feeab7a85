"""``twillgpu compare``: the optimum beside the schedules that people and compilers make today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from twillgpu.baselines.compare import compare
from twillgpu.baselines.record import Comparison
from twillgpu.cli_options import KERNEL, LIMITS, OUTPUT, Values, source_options, with_options
from twillgpu.cli_output import Output
from twillgpu.cli_progress import interruptible, progress_line
from twillgpu.cli_schedule import SEARCH, search_options
from twillgpu.cli_source import EXIT, priced_for
from twillgpu.inputs import Priced, load_source
from twillgpu.view.comparison import comparison_text
from twillgpu.view.records import record_json

SCHEMA = "twillgpu-comparison/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """The JSON document: what was compared, and the comparison."""

    source: str
    comparison: Comparison


@click.command("compare")
@click.argument("source", metavar="SOURCE")
@with_options(KERNEL, LIMITS, SEARCH, OUTPUT)
def command(source: str, **values: Any) -> int:  # noqa: ANN401  # whatever click parsed
    """Compare the optimal schedule of a loop with baselines, under the same rules and costs.

    SOURCE is what schedule takes. Baselines: sequential order, load pipelining, producer and consumer warps, the
    hand-made schedules of attention kernels, iterative and swing modulo scheduling. Every schedule passes the
    verifier.

    Exit status: 0 the optimum is proved, 1 a mistake in the input, 2 proved infeasible, 3 a limit was reached before
    a proof (the comparison is still printed).
    """
    output = Output(file=values["file"], force=values["force"])
    priced = _priced(source, values)
    with interruptible(), progress_line() as progress:
        found = compare(priced.problem, search_options(values), progress)
    if values["as_json"]:
        output.deliver(record_json(_Document(source=source, comparison=found), schema=SCHEMA))
    else:
        output.deliver(comparison_text(_heading(priced), found))
    return EXIT[found.optimum.status]


def _priced(source: str, values: Values) -> Priced:
    loaded = load_source(source, values["machine"], source_options(values))
    return priced_for(loaded, values)


def _heading(priced: Priced) -> str:
    loaded = priced.loaded
    title = f" ({loaded.machine.title})" if loaded.machine.title else ""
    what = f"graph {loaded.graph.name} from {loaded.source}"
    if loaded.kernel is not None:
        what = f"kernel {loaded.kernel.name}, loop at {loaded.kernel.loop.source or loaded.kernel.loop.name}"
    return f"{what}, on {loaded.machine.name}{title}"

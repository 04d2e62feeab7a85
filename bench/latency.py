"""How the pace of a loop suffers as loads take longer: rings at the model's floor, and at the depth that is chosen.

Prints a table and writes ``bench/out/latency.json``: cycles per iteration by the simulator, for loads that take 1 to
10 times what an idle chip takes, on the examples (``docs/simulation.md`` discusses them). About a minute.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import twillgpu
from twillgpu.inputs import Priced
from twillgpu.lower.lower import lower
from twillgpu.lower.record import WarpProgram
from twillgpu.schedule.record import Buffer, Schedule
from twillgpu.simulate.record import Latency, SimulationOptions
from twillgpu.simulate.simulate import steady_state
from twillgpu.verify import check
from twillgpu.verify.record import Verified
from twillgpu.view.text import number, table

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
OUT = HERE / "out" / "latency.json"
SCALES = (1, 1.5, 2, 3, 4, 5, 7, 10)
CASES = (("gemm", "h100"), ("gemm", "b200"), ("attention_fwd", "h100"), ("attention_fwd", "b200"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One program at all latencies: cycles per iteration for each of ``scales``."""

    example: str
    machine: str
    depths: str
    rings: tuple[tuple[str, int], ...]
    ii_cycles: int
    scales: tuple[float, ...]
    cycles: tuple[float, ...]


def rows(example: str, machine: str) -> Iterator[Row]:
    """Yield the study of one example: its load rings at the floor, and as chosen."""
    priced = twillgpu.load_problem(EXAMPLES / f"{example}.py", machine)
    schedule = twillgpu.find_schedule(priced).result.schedule
    if schedule is None:
        return
    loads = {op.name for op in priced.problem.ops if op.variable_latency}
    for depths, chosen in (("floor", _at_floor(schedule, loads)), ("chosen", schedule)):
        program = _program(priced, chosen)
        yield Row(
            example=example,
            machine=machine,
            depths=depths,
            rings=tuple((ring.name, ring.depth) for ring in chosen.buffers if ring.name in loads),
            ii_cycles=schedule.ii_cycles,
            scales=SCALES,
            cycles=tuple(_pace(program, priced, scale) for scale in SCALES),
        )


def _at_floor(schedule: Schedule, loads: set[str]) -> Schedule:
    def shallow(ring: Buffer) -> Buffer:
        return replace(ring, depth=ring.depth_floor) if ring.name in loads else ring

    return replace(schedule, buffers=tuple(shallow(ring) for ring in schedule.buffers))


def _program(priced: Priced, schedule: Schedule) -> WarpProgram:
    verdict = check(priced.problem, schedule)
    if not isinstance(verdict, Verified) or priced.loaded.kernel is None:
        raise SystemExit(f"{priced.loaded.source}: the schedule is not sound: {verdict}")
    return lower(priced.loaded.kernel, priced.loaded.graph, verdict)


def _pace(program: WarpProgram, priced: Priced, scale: float) -> float:
    options = SimulationOptions(latency=Latency(scale=scale))
    return steady_state(program, priced.problem, priced.loaded.machine, options).cycles


def main() -> None:
    """Run the study."""
    found = [row for example, machine in CASES for row in rows(example, machine)]
    header = ("example", "machine", "rings", "I", *(f"x{scale:g}" for scale in SCALES))
    body = [
        (
            row.example,
            row.machine,
            f"{row.depths} " + "/".join(str(depth) for _, depth in row.rings),
            number(row.ii_cycles),
            *(f"{cycles:,.0f}" for cycles in row.cycles),
        )
        for row in found
    ]
    print("\n".join(table(header, body, right=range(3, len(header)))))
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

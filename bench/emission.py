"""What the compiler makes of each example on each chip: a table, and ``bench/out/emission.json``.

``python bench/emission.py [EXAMPLE:MACHINE ...]`` finds the schedule, emits it, compiles it with the Triton that is
installed, and lets feedback run. Results of other runs in the JSON file are kept.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import twillgpu
from twillgpu.emit.record import Emission, GroupCode, Round
from twillgpu.errors import TwillError
from twillgpu.view.text import table

ROOT = Path(__file__).parent.parent
OUT = Path(__file__).parent / "out" / "emission.json"
EXAMPLES = ("gemm", "attention_fwd", "attention_bwd", "rms_norm")
MACHINES = ("h100", "b200")
HEAD = (
    "example", "machine", "Triton", "I before", "I after", "rounds", "clean", "compile s", "SMEM B", "TMEM",
    "live/setmaxnreg", "spills", "waits", "order",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One example on one chip; ``why`` says why there is nothing to show, or why it is not clean."""

    example: str
    machine: str
    triton: str = ""
    before_cycles: int = 0
    after_cycles: int = 0
    rounds: int = 0
    clean: bool = False
    compile_seconds: float = 0.0
    smem_bytes: int = 0
    tmem_columns: int = 0
    live: str = ""
    spills: str = ""
    waits: str = ""
    order: str = ""
    seconds: float = 0.0
    why: str = ""


def measured(example: str, machine: str) -> Row:
    """Search, emit, compile, refine."""
    begun = time.perf_counter()
    try:
        priced = twillgpu.load_problem(ROOT / "examples" / f"{example}.py", machine)
        run = twillgpu.find_schedule(priced)
        emission = twillgpu.emit_source(priced, run.result, twillgpu.EmitOptions(check=True))
    except TwillError as error:
        return Row(example=example, machine=machine, why=str(error), seconds=time.perf_counter() - begun)
    return _row(example, machine, emission, time.perf_counter() - begun)


def _row(example: str, machine: str, emission: Emission, seconds: float) -> Row:
    best = next(one for one in emission.rounds if one.number == emission.best)
    compiled = best.compiled
    if compiled is None:
        return Row(example=example, machine=machine, why=emission.conclusion, seconds=seconds)
    serious = "; ".join(f"{one.rule} {one.group}".strip() for one in best.findings if one.serious)
    return Row(
        example=example,
        machine=machine,
        triton=compiled.triton,
        before_cycles=emission.rounds[0].ii_cycles,
        after_cycles=best.ii_cycles,
        rounds=len(emission.rounds),
        clean=emission.clean,
        compile_seconds=round(compiled.seconds, 1),
        smem_bytes=compiled.smem_bytes,
        tmem_columns=compiled.tmem_columns,
        live=" ".join(f"{code.live_registers}/{code.maxreg}" for code in compiled.groups),
        spills=" ".join(_spills(code) for code in compiled.groups),
        waits=" ".join(str(code.loop.waits if code.loop is not None else 0) for code in compiled.groups),
        order=_order(best),
        seconds=round(seconds, 1),
        why="" if emission.clean else f"{serious} ({emission.conclusion})",
    )


def _spills(code: GroupCode) -> str:
    """Return spill instructions in the main loop; with ``r`` where they only reload what was made before it."""
    if code.loop is None:
        return "0"
    return f"{code.loop.spills}{'r' if code.loop.spills and not code.loop.stores else ''}"


def _order(best: Round) -> str:
    return "broken" if any(one.rule == "order" for one in best.findings) else "kept"


def main(wanted: list[str]) -> None:
    """Measure what is named, or everything; keep what the file has of other examples and versions of Triton."""
    kept = json.loads(OUT.read_text("utf-8")) if OUT.is_file() else []
    pairs = [one.split(":") for one in wanted] or [[example, machine] for machine in MACHINES for example in EXAMPLES]
    for example, machine in pairs:
        row = asdict(measured(example, machine))
        key = (example, machine, row["triton"])
        kept = [one for one in kept if (one["example"], one["machine"], one["triton"]) != key] + [row]
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
        print(json.dumps(row), flush=True)
    print("\n".join(table(HEAD, [_cells(one) for one in kept], width=200)))


def _cells(row: dict[str, object]) -> list[str]:
    keys = (
        "example", "machine", "triton", "before_cycles", "after_cycles", "rounds", "clean", "compile_seconds",
        "smem_bytes", "tmem_columns", "live", "spills", "waits", "order",
    )  # fmt: skip
    return [
        f"{row[key]:,}" if isinstance(row[key], int) and not isinstance(row[key], bool) else str(row[key])
        for key in keys
    ]


if __name__ == "__main__":
    main(sys.argv[1:])

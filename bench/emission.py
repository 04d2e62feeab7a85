"""What the compiler makes of each example on each chip: a table, and ``bench/out/emission.json``.

``python bench/emission.py [EXAMPLE:MACHINE[:CHANGES] ...]`` finds the schedule, emits it, compiles it with the Triton
that is installed, and lets feedback run. CHANGES are constexprs (``HEAD_DIM=64,BLOCK_N=64``) and ``rows=0`` for no
sub-tiles; ``--variants`` stands for the shapes of ``VARIANTS``. Results of other runs in the JSON file are kept.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import twillgpu
from twillgpu.emit.record import Emission, GroupCode, Round
from twillgpu.errors import TwillError
from twillgpu.frontend.launch import parse_options
from twillgpu.inputs import SourceOptions
from twillgpu.view.text import table

ROOT = Path(__file__).parent.parent
OUT = Path(__file__).parent / "out" / "emission.json"
EXAMPLES = ("gemm", "attention_fwd", "attention_bwd", "rms_norm")
MACHINES = ("h100", "b200")
VARIANTS = (
    "gemm:h100:BLOCK_N=64", "gemm:h100:BLOCK_N=128", "attention_fwd:h100:HEAD_DIM=64",
    "attention_fwd:h100:BLOCK_N=64",
    "attention_fwd:h100:HEAD_DIM=64,BLOCK_N=64", "attention_bwd:h100:HEAD_DIM=64", "attention_bwd:h100:rows=0",
    "attention_bwd:h100:HEAD_DIM=64,rows=0",
)  # fmt: skip
HEAD = (
    "example", "machine", "Triton", "I before", "I after", "rounds", "clean", "compile s", "SMEM B", "TMEM",
    "live/setmaxnreg", "spills", "waits", "order",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One example on one chip, with changes of its shape; ``why`` says why there is nothing to show, or why it is
    not clean.
    """

    example: str
    machine: str
    changes: str = ""
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


def measured(example: str, machine: str, changes: str = "") -> Row:
    """Search, emit, compile, refine."""
    begun = time.perf_counter()
    try:
        priced = twillgpu.load_problem(ROOT / "examples" / f"{example}.py", machine, options=source_options(changes))
        run = twillgpu.find_schedule(priced)
        emission = twillgpu.emit_source(priced, run.result, twillgpu.EmitOptions(check=True))
    except TwillError as error:
        seconds = time.perf_counter() - begun
        return Row(example=example, machine=machine, changes=changes, why=str(error), seconds=seconds)
    return replace(_row(example, machine, emission, time.perf_counter() - begun), changes=changes)


def source_options(changes: str) -> SourceOptions:
    """Return the options of ``NAME=VALUE,...``: constexprs, and ``rows`` of a sub-tile."""
    given = dict(change.split("=") for change in changes.split(",") if change)
    rows = given.pop("rows", None)
    constexprs = tuple(f"{name}={value}" for name, value in given.items())
    load = parse_options(kernel=None, args=(), constexprs=constexprs, num_warps=None, config=None, loop=None)
    return SourceOptions(load=load, rows=None if rows is None else int(rows))


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
    named = [one for name in wanted for one in (VARIANTS if name == "--variants" else (name,))]
    for name in named or [f"{example}:{machine}" for machine in MACHINES for example in EXAMPLES]:
        row = asdict(measured(*name.split(":")))
        kept = [one for one in kept if _key(one) != _key(row)] + [row]
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
        print(json.dumps(row), flush=True)
    print("\n".join(table(HEAD, [_cells(one) for one in kept], width=200)))


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return row["example"], row["machine"], row.get("changes", ""), row["triton"]


def _cells(row: dict[str, object]) -> list[str]:
    keys = (
        "example", "machine", "triton", "before_cycles", "after_cycles", "rounds", "clean", "compile_seconds",
        "smem_bytes", "tmem_columns", "live", "spills", "waits", "order",
    )  # fmt: skip
    row = {**row, "example": " ".join(filter(None, (str(row["example"]), str(row.get("changes", "")))))}
    return [
        f"{row[key]:,}" if isinstance(row[key], int) and not isinstance(row[key], bool) else str(row[key])
        for key in keys
    ]


if __name__ == "__main__":
    main(sys.argv[1:])

"""Check and time the emitted kernels on a GPU, beside Triton, PyTorch and cuBLAS: a table and ``bench/out/gpu.json``.

    python bench/gpu.py                           # on a machine with a GPU, PyTorch and Triton
    python bench/gpu.py --prepare --machine h100  # anywhere: emit the kernels, print what is predicted of them
    python bench/gpu.py --rehearse                # anywhere: the whole way with emulated launches, not measured

Every kernel and implementation runs in a process of its own, so that a hang or an illegal access costs one row. Exit
status: 0 measured, 1 a result is wrong, 3 nothing was measured, because there is no GPU (or PyTorch, or Triton).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from gpu_plan import (
    HEADS,
    HERE,
    IMPLEMENTATIONS,
    LENGTHS,
    OUT,
    PREPARED,
    TOKENS,
    Job,
    Prepared,
    Row,
    extent,
    predicted,
    skipped,
)

MACHINES = {90: "h100", 100: "b200"}
"""Machine by compute capability, save the H200, which differs in its memory."""

ALSO = {"h200": "h100"}
"""Machines whose kernels run on another one as well: where none were made for it, these are taken."""

BUDGET_SECONDS = 300.0
ROW_SECONDS, START_SECONDS = 30.0, 45.0
"""What a row may take, and what loading PyTorch and compiling may take in addition before the first."""

PREPARE_SECONDS = 150.0
REHEARSED_LENGTHS, REHEARSAL_SECONDS = (256,), 900.0
"""What a rehearsal runs: every block size of the examples divides the length; emulated launches take seconds."""

NOTHING, WRONG = 3, 1
SCHEMA = "twillgpu-gpu-bench/2"
HEAD = ("kernel", "length", "by", "outcome", "ms", "TFLOP/s", "predicted ms", "predicted", "error")


@dataclass(slots=True, kw_only=True)
class Runner:
    """Runs the processes of a measurement within a budget of seconds; ``script`` is replaced in tests.

    ``rehearse`` is the machine that a rehearsal stands for, empty for a measurement.
    """

    budget: float = BUDGET_SECONDS
    rehearse: str = ""
    script: Path = HERE / "gpu_one.py"
    row_seconds: float = ROW_SECONDS
    start_seconds: float = START_SECONDS
    begun: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.budget - (time.monotonic() - self.begun)

    def probe(self) -> dict[str, Any]:
        """Return what the machine has, or why nothing can be measured."""
        try:
            done = subprocess.run(  # noqa: S603  # our own script
                [sys.executable, str(self.script), "probe", *filter(None, (self.rehearse,))],
                capture_output=True,
                text=True,
                timeout=min(self.start_seconds, max(self.left, 1)),
                check=False,
                env=_environment(),
            )
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            return {"missing": "PyTorch does not answer"}
        except (ValueError, IndexError):
            said = done.stderr.strip().splitlines()
            return {"missing": f"PyTorch cannot be loaded: {said[-1] if said else done.returncode}"}
        return found

    def rows(self, job: Job) -> Iterator[Row]:
        """Yield a row for each length of a job; after one that ends its process, the rest gets a new one.

        No row is begun that the one before says there is no time for: the lengths ascend.
        """
        needed = 1.0
        while job.lengths:
            done = []
            if self.left >= needed:
                for row in self._process(job):
                    done.append(row.length)
                    needed = max(1.0, row.seconds)
                    yield row
                    if self.left < needed:
                        break
            job = replace(job, lengths=tuple(one for one in job.lengths if one not in done))
            if self.left < needed:
                left = f"{max(self.left, 0):.0f} s of the budget of {self.budget:g} s"
                yield from skipped(job, f"{left} are left, and it takes {needed:.0f} s or more")
                return

    def _process(self, job: Job) -> Iterator[Row]:
        """Yield the rows of one process, and one for the length at which it ended without an answer."""
        process = subprocess.Popen(  # noqa: S603  # our own script
            [sys.executable, str(self.script), json.dumps(asdict(job))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        lines: Queue[str | None] = Queue()
        errors: list[str | None] = []
        reader = Thread(target=_forward, args=(process.stdout, lines.put), daemon=True)
        listener = Thread(target=_forward, args=(process.stderr, errors.append), daemon=True)
        reader.start()
        listener.start()
        try:
            allowed = self.start_seconds
            for length in job.lengths:
                allowed += self.row_seconds
                row = self._next(job, length, lines, min(allowed, max(self.left, 1)))
                if row is None:
                    listener.join(timeout=5)
                    said = [text.strip() for text in errors if text is not None and text.strip()]
                    reason = f"the process ended: {said[-1]}" if said else "the process ended"
                    row = replace(skipped(job, reason, "crashed")[0], length=length)
                yield row
                if row.outcome in ("failed", "crashed", "timeout"):
                    return
                allowed = 0.0
        finally:
            process.kill()
            # A process that hangs in the driver may not end at once: it must not hold up the others.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
                reader.join(timeout=5)
                listener.join(timeout=5)

    @staticmethod
    def _next(job: Job, length: int, lines: Queue[str | None], seconds: float) -> Row | None:
        """Return the next row of a process, one that says ``timeout``, or ``None`` where the process ended.

        A line that is no row is what some library printed: it is passed over.
        """
        ends = time.monotonic() + seconds
        while True:
            try:
                line = lines.get(timeout=max(ends - time.monotonic(), 0.01))
                return None if line is None else Row(**json.loads(line))
            except Empty:
                reason = f"no answer within {seconds:.0f} s"
                return replace(skipped(job, reason, "timeout")[0], length=length)
            except (ValueError, TypeError):
                continue


def _forward(stream: Any, put: Any) -> None:  # noqa: ANN401  # a pipe and what takes its lines
    """Hand on each line of a stream, and ``None`` at its end."""
    with stream:
        for text in stream:
            put(text)
    put(None)


def _environment() -> dict[str, str]:
    paths = os.pathsep.join(filter(None, (str(HERE.parent / "src"), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": paths}


def prepare(machine: str, ops: Sequence[str], folder: Path, seconds: float) -> None:
    """Emit kernels within so many seconds, each in a process of its own, as many at a time as there are cores.

    What has not changed since it was emitted is not made again. A kernel that there is too little time to check is
    there unchecked: the first of its sources is written before it is compiled.
    """
    ends, waiting, running = time.monotonic() + seconds, list(ops), list[tuple[subprocess.Popen[bytes], float]]()
    cores = os.cpu_count() or 1
    while waiting or running:
        while waiting and len(running) < cores:
            left = max(ends - time.monotonic(), 1.0)
            allowed = left * min(1.0, cores / (len(waiting) + len(running)))
            command = [
                sys.executable,
                str(HERE / "gpu_prepare.py"),
                waiting.pop(0),
                machine,
                str(folder),
                str(allowed),
            ]
            process = subprocess.Popen(command, env=_environment(), stderr=subprocess.DEVNULL)  # noqa: S603  # ours
            running.append((process, time.monotonic() + allowed))
        for process, until in running:
            if time.monotonic() > until:
                process.kill()
        running = [one for one in running if one[0].poll() is None]
        time.sleep(0.1)


def prepared(op: str, machine: str, folder: Path) -> Prepared:
    """Return what was prepared of a kernel, or why nothing was."""
    for name in filter(None, (machine, ALSO.get(machine))):
        file = folder / f"{op}-{name}.json"
        if file.is_file():
            return Prepared(**json.loads(file.read_text(encoding="utf-8")))
    reason = f"no emitted kernel for {machine}: run bench/gpu.py --prepare --machine {machine} where ortools is"
    return Prepared(op=op, machine=machine, target="", reason=reason)


def measure(
    runner: Runner, device: dict[str, Any], ops: Sequence[str], lengths: tuple[int, ...], folder: Path
) -> Iterator[Row]:
    """Yield every row: the emitted kernels first, so that a small budget is theirs."""
    machine = machine_of(device)
    known = {op: prepared(op, machine, folder) for op in ops} if machine else {}
    jobs = [
        (op, by) for place in range(max(map(len, IMPLEMENTATIONS.values()))) for op in ops for by in _at(op, place)
    ]
    for op, by in jobs:
        target = known[op].target if op in known else ""
        job = Job(op=op, implementation=by, lengths=lengths, target=target, rehearse=runner.rehearse)
        reason = _inapplicable(by, device, known.get(op))
        if reason:
            yield from skipped(job, reason)
            continue
        if by == "twill":
            job = replace(job, emitted=str(folder / known[op].file))
        for row in runner.rows(job):
            yield _with_prediction(row, known.get(op), device["sms"], runner) if by in ("twill", "dropin") else row


def machine_of(device: dict[str, Any]) -> str:
    """Return the name of the machine that stands for a device, empty for one that nothing is emitted for."""
    if "machine" in device:
        return str(device["machine"])
    if device["capability"] == 90 and "H200" in device["name"].split():
        return "h200"
    return MACHINES.get(device["capability"], "")


def _at(op: str, place: int) -> tuple[str, ...]:
    return IMPLEMENTATIONS[op][place : place + 1]


def _inapplicable(by: str, device: dict[str, Any], known: Prepared | None) -> str:
    """Return why an implementation cannot run here; empty where it may."""
    if by not in ("twill", "dropin"):
        return ""
    if known is None:
        return f"nothing is emitted for compute capability {device['capability'] // 10}.{device['capability'] % 10}"
    return known.reason


def _with_prediction(row: Row, known: Prepared | None, sms: int, runner: Runner | None = None) -> Row:
    if known is None or not known.sizes:
        return row
    size = (row.length, 1) if runner is not None and runner.rehearse else (TOKENS, HEADS)
    milliseconds, tflops = predicted(known, extent(row.op, row.length, known.sizes, *size), sms)
    return replace(row, predicted_milliseconds=milliseconds, predicted_tflops=tflops)


def foreseen(known: Prepared, lengths: tuple[int, ...]) -> list[Row]:
    """Return what is predicted of an emitted kernel on its own machine, where nothing is measured."""
    job = Job(op=known.op, implementation="twill", lengths=lengths, target=known.target)
    return [_with_prediction(row, known, known.sms) for row in skipped(job, "predicted only")]


def line(row: Row) -> tuple[str, ...]:
    """Return one line of the table."""

    def shown(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    return (
        row.op,
        str(row.length),
        row.implementation,
        row.outcome,
        shown(row.milliseconds, ".3f"),
        shown(row.tflops, ".0f"),
        shown(row.predicted_milliseconds, ".3f"),
        shown(row.predicted_tflops, ".0f"),
        row.reason or shown(row.relative_error, ".1e"),
    )


def show(rows: Sequence[Row]) -> None:
    """Print the table, by kernel and length."""
    order = {by: place for names in IMPLEMENTATIONS.values() for place, by in enumerate(names)}
    lines = [line(row) for row in sorted(rows, key=lambda row: (row.op, row.length, order[row.implementation]))]
    sizes = [max(len(one[column]) for one in (HEAD, *lines)) for column in range(len(HEAD) - 1)]
    for one in (HEAD, *lines):
        cells = (cell.ljust(size) for cell, size in zip(one, sizes, strict=False))
        print("  ".join((*cells, one[-1])).rstrip())


def main(arguments: Sequence[str], runner: Runner | None = None) -> int:
    """Run the measurement; return the exit status."""
    options = _parsed(arguments)
    if options.prepare:
        return _only_prepare(options)
    runner = runner or Runner(budget=options.budget, rehearse=options.machine if options.rehearse else "")
    if runner.rehearse:
        runner.row_seconds = runner.budget
    device = runner.probe()
    if "missing" in device:
        print(f"nothing was measured: {device['missing']}")
        return NOTHING
    print(f"{device['name']}, PyTorch {device['torch']}, Triton {device['triton']}", flush=True)
    machine = machine_of(device)
    missing = [op for op in options.ops if machine and prepared(op, machine, options.folder).reason]
    prepare(machine, missing, options.folder, min(PREPARE_SECONDS, runner.left / 2))
    rows = []
    for row in measure(runner, device, options.ops, options.lengths, options.folder):
        rows.append(row)
        print("  ".join(line(row)), file=sys.stderr, flush=True)
    show(rows)
    if runner.rehearse:
        print("The times are made up, the results are real: nothing was measured.")
    _write(options.output, runner, device, rows)
    return WRONG if any(row.outcome == "wrong" for row in rows) else 0


def _only_prepare(options: argparse.Namespace) -> int:
    prepare(options.machine, options.ops, options.folder, options.budget)
    found = [prepared(op, options.machine, options.folder) for op in options.ops]
    for one in found:
        made = f"I = {one.ii_cycles}, {one.status}, {one.file}{'; ' * bool(one.remark)}{one.remark}"
        print(f"{one.op} for {options.machine}: {one.reason or made}")
    show([row for one in found if one.file for row in foreseen(one, options.lengths)])
    return 0 if all(one.file for one in found) else WRONG


def _write(output: Path, runner: Runner, device: dict[str, Any], rows: Sequence[Row]) -> None:
    document = {
        "schema": SCHEMA,
        "device": device,
        "measured": not runner.rehearse,
        "budget_seconds": runner.budget,
        "seconds": round(runner.budget - runner.left, 1),
        "rows": [asdict(row) for row in rows],
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--budget", type=float, help="seconds in all (default: 300; of a rehearsal 900)")
    parser.add_argument("--ops", nargs="+", choices=list(IMPLEMENTATIONS), default=list(IMPLEMENTATIONS))
    parser.add_argument("--lengths", nargs="+", type=int, help="sequence lengths, matrix sizes, ascending")
    parser.add_argument("--prepare", action="store_true", help="only emit the kernels, and print predictions")
    parser.add_argument("--rehearse", action="store_true", help="the whole way with emulated launches on a CPU")
    parser.add_argument("--machine", default="h100", help="with --prepare, --rehearse: h100 (default) or b200")
    parser.add_argument("--folder", type=Path, default=PREPARED, help="where emitted kernels are")
    parser.add_argument("--output", type=Path, help="default: bench/out/gpu.json, of a rehearsal gpu_rehearsal.json")
    options = parser.parse_args(arguments)
    if options.budget is None:
        options.budget = REHEARSAL_SECONDS if options.rehearse else BUDGET_SECONDS
    lengths = REHEARSED_LENGTHS if options.rehearse else LENGTHS
    options.lengths = tuple(sorted(options.lengths or lengths))
    options.output = options.output or OUT / ("gpu_rehearsal.json" if options.rehearse else "gpu.json")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

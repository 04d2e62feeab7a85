"""``twillgpu verify``: a schedule against every rule, by expanding its iterations; no solver."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from twillgpu.cli_options import KERNEL, LIMITS, OUTPUT, price_options, source_options, with_options
from twillgpu.cli_output import Output
from twillgpu.inputs import carried_limits, load_source, price_loaded, read_text
from twillgpu.schedule.jsonform import hash_mismatches, read_schedule_file
from twillgpu.verify import RULES, Violation, check
from twillgpu.verify.record import Verified
from twillgpu.view.records import record_json
from twillgpu.view.verdict import verdict_text

MISTAKE = 1
SCHEMA = "twillgpu-verdict/1"


@click.command("verify")
@click.argument("source", metavar="SOURCE")
@click.argument("schedule", metavar="SCHEDULE")
@with_options(KERNEL, LIMITS, OUTPUT)
def command(source: str, schedule: str, **values: Any) -> int:  # noqa: ANN401  # whatever click parsed
    """Check a schedule against every rule, with no solver involved.

    SOURCE is what was scheduled (graph JSON, or a kernel), SCHEDULE what schedule --json printed or anybody wrote
    in that form. Give the same machine and limits as to schedule.

    Exit status: 0 sound, 1 a rule is broken (each violation is printed under the name of its rule).
    """
    output = Output(file=values["file"], force=values["force"])
    found = read_schedule_file(read_text(Path(schedule)), schedule)
    loaded = load_source(source, values["machine"], source_options(values))
    priced = price_loaded(loaded, price_options(values, carried_limits(loaded)))
    verdict = check(priced.problem, found.schedule, max_stages=found.stages)
    violations = () if isinstance(verdict, Verified) else verdict
    notes = hash_mismatches(priced.problem, found.schedule)
    if values["as_json"]:
        output.deliver(record_json(_Verdict(sound=not violations, notes=notes, violations=violations), schema=SCHEMA))
    else:
        output.deliver(verdict_text(found.schedule, tuple(rule.__name__ for rule in RULES), violations, notes))
    return MISTAKE if violations else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """The JSON document: whether every rule holds, doubts, and each violation with its rule."""

    sound: bool
    notes: tuple[str, ...]
    violations: tuple[Violation, ...]

"""``twillgpu verify``: a schedule against every rule, by expanding its iterations; no solver."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import click

from twillgpu.api import load_schedule
from twillgpu.cli_options import KERNEL, LIMITS, OUTPUT, source_options, with_options
from twillgpu.cli_output import Output
from twillgpu.cli_source import priced_for
from twillgpu.costs.record import PriceOptions
from twillgpu.inputs import load_source
from twillgpu.schedule.jsonform import hash_mismatches
from twillgpu.schedule.jsonlimits import limit_entries
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
    in that form. Give the same kernel options and machine as to schedule. Limits and rules are those that SCHEDULE
    records, unless options say otherwise.

    Exit status: 0 sound, 1 a rule is broken (each violation is printed under the name of its rule).
    """
    output = Output(file=values["file"], force=values["force"])
    found = load_schedule(schedule)
    priced = priced_for(load_source(source, values["machine"], source_options(values)), values, found)
    verdict = check(priced.problem, found.schedule, max_stages=found.stages)
    violations = () if isinstance(verdict, Verified) else verdict
    notes = hash_mismatches(priced.problem, found.schedule) + _other_limits(found.limits, priced.limits)
    if values["as_json"]:
        output.deliver(record_json(_Verdict(sound=not violations, notes=notes, violations=violations), schema=SCHEMA))
    else:
        output.deliver(verdict_text(found.schedule, tuple(rule.__name__ for rule in RULES), violations, notes))
    return MISTAKE if violations else 0


def _other_limits(recorded: PriceOptions | None, used: PriceOptions) -> tuple[str, ...]:
    """Return a sentence for each limit or rule that is not the one under which the schedule was made."""
    if recorded is None:
        return ()
    before, now = limit_entries(recorded), limit_entries(used)
    return tuple(
        f"{key} is {_shown(now[key])} here, the schedule was made with {_shown(before[key])}"
        for key in now
        if now[key] != before[key]
    )


def _shown(value: object) -> str:
    return "the machine's own" if value is None else json.dumps(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """The JSON document: whether every rule holds, doubts, and each violation with its rule."""

    sound: bool
    notes: tuple[str, ...]
    violations: tuple[Violation, ...]

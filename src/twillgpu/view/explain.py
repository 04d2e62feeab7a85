"""The explanation of an interval as text and as one JSON document."""

from __future__ import annotations

import json

from twillgpu.explain.record import RULE, Explanation, Family, Forced, Relaxed, Row, Way
from twillgpu.schedule.record import Attempt
from twillgpu.view.claim import bounds_section, claim_section
from twillgpu.view.explain_summary import summary
from twillgpu.view.explain_words import family_words, joined, set_words, step_words, unit_words, way_words
from twillgpu.view.record import Run
from twillgpu.view.records import plain
from twillgpu.view.text import number, plural, section, table, wrap

SCHEMA = "twillgpu-explanation/1"
SHOWN_SETS = 4
SHOWN_RANGES = 6


def explanation_json(run: Run, explanation: Explanation) -> str:
    """Return the explanation as one JSON document; ``summary`` is what the text begins with."""
    body = plain(explanation)
    document = {"schema": SCHEMA, "summary": summary(run, explanation), "rules": dict(RULE)}
    return json.dumps(document | (body if isinstance(body, dict) else {}), indent=2) + "\n"


def explanation_text(run: Run, explanation: Explanation) -> str:
    """Return the explanation as plain text that ends in a newline: the summary first, then what it rests on."""
    title = f" ({run.machine.title})" if run.machine.title else ""
    name = run.kernel.name if run.kernel is not None else run.graph.name
    lines = [
        *wrap(f"{name} on {run.machine.name}{title}: what limits it", indent=""),
        "",
        *wrap(summary(run, explanation)),
        *claim_section(run.result),
        *bounds_section(run.result),
        *_forced(run, explanation),
        *_ways(run, explanation),
        *_table(explanation),
        *_critical(explanation),
        *_tried(explanation),
        *_effort(explanation),
    ]
    return "\n".join(lines) + "\n"


def _forced(run: Run, explanation: Explanation) -> list[str]:
    lines, hidden = [], max(0, len(explanation.forced) - SHOWN_RANGES)
    if hidden:
        first, last = explanation.forced[0], explanation.forced[hidden - 1]
        lines += wrap(f"I = {number(first.first_cycles)} to {number(last.last_cycles)}: more of the bounds above")
    for forced in explanation.forced[hidden:]:
        lines += wrap(f"{_span(forced)}: {_why(forced, run, explanation.result.max_stages)}", hang="  ")
    return section("Why no smaller interval: each of these alone forces it", lines)


def _span(forced: Forced) -> str:
    first, last = number(forced.first_cycles), number(forced.last_cycles)
    return f"I = {first}" if first == last else f"I = {first} to {last}"


def _why(forced: Forced, run: Run, stages: int) -> str:
    if not forced.sets:
        return "refuted by the search; the time or the work ended before it was known which rules force it"
    if forced.bounds:
        pairs = zip(forced.bounds, forced.sets, strict=True)
        parts = [f"bound {name} {_needs(name, one)}".rstrip() for name, one in pairs]
    else:
        parts = [set_words(one, run.problem, stages) for one in forced.sets]
    shown = "; or ".join(parts[:SHOWN_SETS])
    if len(parts) > SHOWN_SETS:
        shown += f"; or {plural(len(parts) - SHOWN_SETS, 'smaller bound' if forced.bounds else 'other set')}"
    if not forced.minimal:
        shown += " (perhaps less: not all questions were answered)"
    elif not forced.complete:
        shown += " (there may be other sets)"
    return shown


def _needs(name: str, families: tuple[Family, ...]) -> str:
    """Return the rules of a bound's set beyond the one that its name says."""
    plain_name = {"register file": "register_file"}.get(name, name)
    rest = [one for one in families if plain_name not in (one.name, one.kind)]
    return f"(with {', '.join(one.name or one.kind for one in rest)})" if rest else ""


def _ways(run: Run, explanation: Explanation) -> list[str]:
    asked = [way for way in explanation.ways if way.least is not None or way.most is not None]
    lines = [line for way in asked for line in wrap(f"- {way_words(way, run.problem)}", hang="  ")]
    names = [_names(way, run, explanation) for way in explanation.ways if way not in asked]
    if names:
        lines += wrap(f"- not asked, time ended: {'; '.join(names)}", hang="  ")
    return section("What would help, found by solving, the easiest first", lines)


def _names(way: Way, run: Run, explanation: Explanation) -> str:
    stages = explanation.result.max_stages
    return joined([family_words(one, run.problem, stages) for one in way.families])


def _table(explanation: Explanation) -> list[str]:
    rows = [(_capacity(row.family), _amount(row), *(_cell(cell) for cell in row.cells)) for row in explanation.rows]
    if not rows:
        return []
    header = ("capacity", "now", "+25 %", "+50 %", "+100 %")
    note = (
        "= the smallest possible; A..B not settled: B is found (or today's), less than A is excluded; ? not asked, "
        "time ended. A unit is raised by making it faster."
    )
    return section("I if there were more of a capacity", [*table(header, rows, right=(1, 2, 3, 4)), *wrap(note)])


def _capacity(family: Family) -> str:
    names = {"registers": "registers per thread", "register_file": "register file"}
    return family.name or names.get(family.kind, family.kind)


def _amount(row: Row) -> str:
    return "" if row.family.kind == "unit" else number(row.amount)


def _cell(cell: Relaxed | None) -> str:
    if cell is None:
        return "?"
    if cell.infeasible:
        return "none"
    if cell.upper_cycles is None:
        return f">= {number(cell.lower_cycles)}"
    if cell.proved:
        return f"= {number(cell.upper_cycles)}"
    return f"{number(cell.lower_cycles)}..{number(cell.upper_cycles)}"


def _critical(explanation: Explanation) -> list[str]:
    lines = []
    if explanation.unit is not None:
        unit = explanation.unit
        shares = f" / {unit.capacity} shares" if unit.capacity > 1 else ""
        cycles = f"{plural(unit.bound_cycles, 'cycle')}{_share(explanation, unit.bound_cycles)}"
        lines += wrap(f"unit {unit.unit}: {unit_words(unit)}{shares} = {cycles}", hang="  ")
    if explanation.circuit is not None:
        circuit = explanation.circuit
        path = " -> ".join(step_words(step.op, step.source, step.latency_cycles) for step in circuit.steps)
        over = f" over {circuit.distance} iterations" if circuit.distance > 1 else ""
        lines += wrap(
            f"circuit {path} -> {circuit.steps[0].op}: {plural(circuit.latency_cycles, 'cycle')}{over}"
            f"{_share(explanation, circuit.bound_cycles)}",
            hang="  ",
        )
    return section("Critical unit and circuit, cycles per iteration", lines)


def _share(explanation: Explanation, cycles: int) -> str:
    schedule = explanation.result.schedule
    return f", {cycles / schedule.ii_cycles:.0%} of I" if schedule is not None else ""


def _tried(explanation: Explanation) -> list[str]:
    result = explanation.result
    rows = [_attempt(attempt) for attempt in result.attempts if attempt.purpose != "explain"]
    binding = result.bounds.binding if result.bounds.bounds else None
    if binding is not None and binding.cycles > 1:
        rows.insert(0, (f"1 to {number(binding.cycles - 1)}", "", "", "bound", f"below the bound of {binding.name}"))
    header = ("I up to", "slots", "of", "question", "answer")
    return section("Intervals tried, in order", table(header, rows, right=(0, 1, 2)))


def _attempt(attempt: Attempt) -> tuple[str, str, str, str, str]:
    cycles = number(attempt.slots * attempt.slot_cycles)
    answers = {"optimal": "schedule found", "feasible": "schedule found", "unknown": "limit reached"}
    refuted = attempt.purpose == "refute" or attempt.slot_cycles == 1
    answer = answers.get(attempt.outcome, "refuted" if refuted else "no schedule in these slots")
    within = f", at most {plural(attempt.stages, 'stage')}"
    return cycles, str(attempt.slots), str(attempt.slot_cycles), attempt.purpose, answer + within


def _effort(explanation: Explanation) -> list[str]:
    allowed = number(explanation.options.time_budget_seconds)
    calls = plural(explanation.questions, "solver call")
    lines = [f"  {calls} about changed problems, {explanation.seconds:.2f} s of {allowed} of processor time"]
    if explanation.ways or explanation.rows:
        lines += wrap("every schedule found for a changed problem passed the independent verifier")
    if not explanation.complete:
        lines += wrap("the time ended first: what is open is marked above; more: --budget SECONDS")
    return section("Effort", lines)

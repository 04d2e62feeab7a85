"""What the verifier found, as text."""

from __future__ import annotations

from collections.abc import Sequence

from twillgpu.schedule.record import Schedule
from twillgpu.verify.record import Violation
from twillgpu.view.text import number, plural, wrap


def verdict_text(
    schedule: Schedule, rules: Sequence[str], violations: Sequence[Violation], notes: Sequence[str]
) -> str:
    """Return the verdict: the rules that hold, or each violation under the name of its rule.

    ``notes`` are printed first: doubts that are no violations (another version of the graph or machine).
    """
    lines = [line for note in notes for line in wrap(f"note: {note}", indent="", hang="  ")]
    if not violations:
        lines.append(f"sound: I = {plural(schedule.ii_cycles, 'cycle')}, {plural(len(schedule.ops), 'op')}")
        lines += wrap(f"all {len(rules)} rules hold: {', '.join(rules)}")
        return "\n".join(lines) + "\n"
    broken = {violation.rule for violation in violations}
    lines.append(f"not sound: {plural(len(violations), 'violation')} of {plural(len(broken), 'rule')}")
    for violation in violations:
        subjects = f" ({', '.join(violation.subjects)})" if violation.subjects else ""
        lines += wrap(f"{violation.rule}{subjects}: {violation.message}", hang="  ")
    held = len(rules) - len(broken)
    lines.append(f"{number(held)} of {len(rules)} rules hold")
    return "\n".join(lines) + "\n"

"""Why an interval is refuted: which rules, left out one at a time, would make it possible."""

from __future__ import annotations

from dataclasses import replace

from twillgpu.schedule.core import Question
from twillgpu.schedule.model import answer
from twillgpu.schedule.solved import Effort

FAMILIES: tuple[tuple[str, frozenset[str], str], ...] = (
    ("register_limit", frozenset({"register_limit"}), "more registers"),
    ("memory_capacity", frozenset({"memory_capacity"}), "more SMEM or TMEM"),
    ("concurrency", frozenset({"concurrency"}), "waits that do not hold up their group"),
    ("cross_warp_spill", frozenset({"cross_warp_spill"}), "free hand-over between groups"),
    ("legality", frozenset({"legality"}), "lifting the legality rules"),
    ("capacity", frozenset({"capacity"}), "more units"),
)
"""Rule families: name, rules left out, and what leaving them out stands for."""


def families(question: Question, effort: Effort) -> tuple[str, ...]:
    """Return the families each of which alone, left out, makes ``question`` satisfiable."""
    return tuple(
        name
        for name, rules, _ in FAMILIES
        if answer(replace(question, without=rules), (), effort).outcome in ("optimal", "feasible")
    )


def reason(forced_by: tuple[str, ...], stages: int) -> str:
    """Return the reason in words."""
    within = "1 stage" if stages == 1 else f"{stages} stages"
    if not forced_by:
        return f"no schedule of at most {within}; no single rule forces it"
    hints = {name: hint for name, _, hint in FAMILIES}
    parts = [f"{name} (possible with {hints[name]})" for name in forced_by]
    return f"no schedule of at most {within}; forced by " + ", ".join(parts)

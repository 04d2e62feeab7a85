"""Which limit ended a search before its proof, and what to try."""

from __future__ import annotations

from twillgpu.schedule.record import SearchResult
from twillgpu.view.text import number

MORE = 5
"""How much more effort is suggested."""


PAPER_PROVES = (
    "the paper's method proves its interval in its own units; in cycles only the bound above is proved, unless a "
    "unit is one cycle and each solver ended in time"
)


def limit_reached(result: SearchResult) -> str:
    """Return one sentence for a result that is ``feasible`` or ``limit``."""
    options = result.options
    if result.limit == "time" or result.seconds >= options.time_limit_seconds:
        limit, more = number(options.time_limit_seconds), number(MORE * options.time_limit_seconds)
        return f"stopped at the time limit of {limit} s; try --time-limit {_plain(more)}"
    if result.method == "paper":
        return PAPER_PROVES
    if _within_gap(result):
        return (
            f"the gap is within the {options.gap:.1%} at which no finer slots are tried; a larger --resolution "
            f"(here {options.resolution}) may close it"
        )
    units = _plain(number(MORE * options.work_limit))
    longer = MORE * options.work_limit > options.time_limit_seconds
    more = f"--work-limit {units}" + (f" --time-limit {units}" if longer else "")
    if result.limit == "work":
        return f"stopped at the work limit of {number(options.work_limit)} units; try {more}"
    spent = f"{number(round(result.work, 1))} of {number(options.work_limit)} units used"
    return f"a solver call stopped at its own limit ({spent}); try another --seed or --resolution"


def _within_gap(result: SearchResult) -> bool:
    found = result.schedule
    return found is not None and found.ii_cycles <= result.lower_bound_cycles * (1 + result.options.gap)


def _plain(text: str) -> str:
    return text.replace(",", "")

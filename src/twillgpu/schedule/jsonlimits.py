"""Limits and rules under which a schedule was made, as entries of ``search.options`` in a schedule document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from twillgpu.costs.record import Columns, Concurrency, PriceOptions, RuleOptions, VariableLatency
from twillgpu.graph.document import Cursor

LIMITS = ("max_groups", "max_warps", "registers", "concurrency", "variable_latency", "cross_group", "lift", "columns")
"""Keys of the entries; ``null`` for a limit is the machine's own."""


def limit_entries(options: PriceOptions) -> dict[str, object]:
    """Return the entries of ``options``, one for each of ``LIMITS``."""
    return {
        "max_groups": options.max_groups,
        "max_warps": options.max_warps,
        "registers": options.registers,
        "concurrency": options.rules.concurrency,
        "variable_latency": options.rules.variable_latency,
        "cross_group": options.rules.cross_group,
        "lift": list(options.lift),
        "columns": options.columns,
    }


def recorded_limits(cursor: Cursor) -> PriceOptions | None:
    """Return the options that a document records, defaults for missing entries; ``None`` where it has no entry.

    Raises ``InputError`` with the path for an entry of another form.
    """
    known: Mapping[str, Cursor] = {key: cursor.child(key) for key in LIMITS if cursor.has(key)}
    if not known:
        return None
    usual = RuleOptions()
    rules = RuleOptions(
        concurrency=cast("Concurrency", _choice(known, "concurrency", Concurrency) or usual.concurrency),
        variable_latency=cast(
            "VariableLatency", _choice(known, "variable_latency", VariableLatency) or usual.variable_latency
        ),
        cross_group=known["cross_group"].flag() if "cross_group" in known else usual.cross_group,
    )
    return PriceOptions(
        rules=rules,
        max_groups=_limit(known, "max_groups", low=1),
        max_warps=_limit(known, "max_warps", low=1),
        registers=_limit(known, "registers", low=0),
        lift=tuple(item.name() for item in known["lift"].items()) if "lift" in known else (),
        columns=cast("Columns", _choice(known, "columns", Columns) or "free"),
    )


def _choice(known: Mapping[str, Cursor], key: str, names: object) -> str | None:
    return known[key].choice(get_args(names)) if key in known else None


def _limit(known: Mapping[str, Cursor], key: str, *, low: int) -> int | None:
    return known[key].integer(low=low) if key in known and known[key].value is not None else None

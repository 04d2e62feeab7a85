"""Options that several commands share, and what they mean to the stages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from twillgpu.costs.record import PriceOptions, RuleOptions

Values = dict[str, Any]
"""What click parsed: option name to value, checked by the option's type."""
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

POSITIVE = click.IntRange(min=1)

OUTPUT: tuple[Decorator, ...] = (
    click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output."),
    click.option("-o", "file", metavar="FILE", type=click.Path(path_type=Path), help="Write the answer to FILE."),
    click.option("--force", is_flag=True, help="Overwrite FILE."),
)

LIMITS: tuple[Decorator, ...] = (
    click.option("--machine", metavar="NAME|FILE", help="Machine name (twillgpu machines) or .toml file."),
    click.option("--warps", type=POSITIVE, metavar="N", help="At most N warps in the block."),
    click.option(
        "--registers", type=click.IntRange(min=0), metavar="N", help="At most N registers per thread; 0: unlimited."
    ),
    click.option("--max-groups", type=POSITIVE, metavar="N", help="At most N warp groups."),
    click.option("--no-cross-group", is_flag=True, help="No value in registers is handed to another group."),
    click.option(
        "--concurrency",
        type=click.Choice(["issue", "paper"]),
        default="issue",
        show_default=True,
        help="Window during which a blocking op may not start in the group of another one: its issue time, or its "
        "longest use of a unit, as in the paper.",
    ),
    click.option(
        "--variable-latency",
        type=click.Choice(["designated", "iff", "free"]),
        default="designated",
        show_default=True,
        help="Ops of variable latency sit in the first group; sit there alone (iff, as in the paper); or anywhere.",
    ),
    click.option("--lift", multiple=True, metavar="RULE", help="Do not apply this legality rule. May be repeated."),
)


def with_options(*groups: tuple[Decorator, ...]) -> Decorator:
    """Return one decorator that adds every option of ``groups``, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorate


def price_options(values: Values) -> PriceOptions:
    """Return the limits and rules that the options of ``LIMITS`` ask for."""
    return PriceOptions(
        rules=RuleOptions(
            concurrency=values["concurrency"],
            variable_latency=values["variable_latency"],
            cross_group=not values["no_cross_group"],
        ),
        max_groups=values["max_groups"],
        max_warps=values["warps"],
        registers=values["registers"],
        lift=values["lift"],
    )

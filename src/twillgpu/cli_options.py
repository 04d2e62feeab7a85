"""Options that several commands share, and what they mean to the stages."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from twillgpu.costs.record import PriceOptions
from twillgpu.errors import InputError
from twillgpu.frontend.launch import parse_options
from twillgpu.inputs import SourceOptions
from twillgpu.schedule.paper.record import UNITS, PaperOptions
from twillgpu.schedule.record import SearchOptions

Values = dict[str, Any]
"""What click parsed: option name to value, checked by the option's type."""
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

POSITIVE = click.IntRange(min=1)
SEED = click.IntRange(min=0, max=2**31 - 1)
"""Seeds that every solver takes."""


class Finite(click.FloatRange):
    """A number in a range that is neither infinite nor NaN: limits are compared, and written as JSON."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401  # click's signature
        """Return the number; click names the option where it is refused."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


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
    click.option(
        "--cross-group/--no-cross-group",
        default=None,
        help="Whether values in registers may be handed to another group; default: they may.",
    ),
    click.option(
        "--concurrency",
        type=click.Choice(["issue", "paper"]),
        help="Window during which a blocking op may not start in the group of another one: its issue time, or its "
        "longest use of a unit, as in the paper. Default: issue.",
    ),
    click.option(
        "--variable-latency",
        type=click.Choice(["designated", "iff", "free"]),
        help="Ops of variable latency sit in the first group; sit there alone (iff, as in the paper); or anywhere. "
        "Default: designated.",
    ),
    click.option(
        "--columns",
        type=click.Choice(["free", "fixed"]),
        help="Share tensor memory wherever lifetimes allow (free, the default), or keep each operand that software "
        "stores in the columns of the product that it is made from (fixed: P over S).",
    ),
    click.option("--lift", multiple=True, metavar="RULE", help="Do not apply this legality rule. May be repeated."),
)


PAPER: tuple[Decorator, ...] = (
    click.option(
        "--method",
        type=click.Choice(["default", "paper"]),
        default="default",
        help="default: clauses and bounds (docs/search.md); paper: normalised costs, an integer program and SMT, as "
        "published (docs/paper.md). It also makes --concurrency paper and --variable-latency iff the defaults.",
    ),
    click.option(
        "--literal", is_flag=True, help="With --method paper: leave out everything that the paper does not state."
    ),
    click.option(
        "--units",
        type=click.IntRange(min=0),
        metavar="U",
        help="With --method paper: bound on the sum of the normalised costs; 0: slots of --resolution, rounded up, "
        f"instead. Default: {UNITS}.",
    ),
    click.option(
        "--warps-as",
        type=click.Choice(["paper", "groups"]),
        help="With --method paper: ops are assigned to equal warps, or to warp groups with widths and quotas. "
        "Default: groups; with --literal, paper.",
    ),
    click.option(
        "--integer-solver",
        type=click.Choice(["highs", "scip"]),
        help="With --method paper: solver of the integer program. Default: highs.",
    ),
)


def parse_rows(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Return the rows of a sub-tile: a positive number, 0 for ``none``, ``None`` where nothing is given."""
    if value is None or value == "none":
        return 0 if value else None
    if not value.isdecimal() or int(value) == 0:
        raise click.BadParameter(f"{value!r} is neither a positive number nor none", param=param)
    return int(value)


KERNEL: tuple[Decorator, ...] = (
    click.option("--kernel", metavar="NAME", help="The @triton.jit function, where a file has several."),
    click.option(
        "--arg",
        "args",
        multiple=True,
        metavar="NAME=TYPE",
        help="An argument's type, as q='*fp16'. May be repeated.",
    ),
    click.option(
        "--const", "consts", multiple=True, metavar="NAME=VALUE", help="Value of a tl.constexpr. May be repeated."
    ),
    click.option("--num-warps", type=POSITIVE, metavar="N", help="Warps of a block."),
    click.option("--config", type=POSITIVE, metavar="K", help="Which @triton.autotune configuration, from 1."),
    click.option("--loop", type=POSITIVE, metavar="K", help="Which loop of the kernel, from 1."),
    click.option(
        "--subtile",
        callback=parse_rows,
        metavar="ROWS|none",
        help="Split the tile into parts of so many rows; default: the rows of the target's tensor core.",
    ),
)


def with_options(*groups: tuple[Decorator, ...]) -> Decorator:
    """Return one decorator that adds every option of ``groups``, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorate


def price_options(values: Values, carried: PriceOptions) -> PriceOptions:
    """Return the limits and rules that the options of ``LIMITS`` ask for, ``carried`` ones where an option is not
    given.
    """
    rules = {name: values[name] for name in ("concurrency", "variable_latency", "cross_group")}
    limits = {name: values[name] for name in ("max_groups", "registers", "columns")}
    return replace(
        carried,
        rules=replace(carried.rules, **_given(rules)),
        lift=values["lift"] or carried.lift,
        **_given({"max_warps": values["warps"], **limits}),
    )


def _given(values: Values) -> Values:
    return {name: value for name, value in values.items() if value is not None}


def source_options(values: Values) -> SourceOptions:
    """Return the choice of kernel that the options of ``KERNEL`` make."""
    load = parse_options(
        kernel=values["kernel"],
        args=values["args"],
        constexprs=values["consts"],
        num_warps=values["num_warps"],
        config=values["config"],
        loop=values["loop"],
    )
    return SourceOptions(load=load, rows=values["subtile"])


def with_paper_rules(values: Values) -> Values:
    """Return the options with the paper's variants of the rules where its method is asked for and none is given."""
    if values["method"] != "paper":
        return values
    rules = {"concurrency": "paper", "variable_latency": "iff"}
    return values | {name: values[name] or variant for name, variant in rules.items()}


def method_options(values: Values, search: SearchOptions) -> SearchOptions | PaperOptions:
    """Return the options of the method asked for.

    Raises:
        InputError: an option of the paper's method is given without it.
    """
    given = _given({name: values[name] for name in ("units", "warps_as", "integer_solver")})
    if values["method"] == "paper":
        return PaperOptions(search=search, literal=values["literal"], **given)
    for name in (*given, *(["literal"] if values["literal"] else [])):
        option = "--" + name.replace("_", "-")
        raise InputError(option, "it is an option of the paper's method", "add --method paper, or leave it out")
    return search

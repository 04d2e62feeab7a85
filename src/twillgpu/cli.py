"""The command ``twillgpu``: sub-commands loaded on demand, exit statuses, and one message per mistake.

Exit status: 0 done, 1 the user's mistake, 2 proved infeasible, 3 a limit was reached before a proof, 130
interrupted.
"""

from __future__ import annotations

import importlib
import io
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn, cast

import click

from twillgpu import __version__
from twillgpu.errors import TwillError
from twillgpu.installation import versions

_FORMAT = warnings.formatwarning
MISTAKE = 1
INTERRUPTED = 130

COMMANDS = MappingProxyType(
    {
        "schedule": ("twillgpu.cli_schedule", "Find the optimal schedule of a loop and report it."),
        "emit": ("twillgpu.cli_emit", "Emit the schedule as runnable Gluon, compiled and checked without a GPU."),
        "explain": ("twillgpu.cli_explain", "Say what limits a loop, and the least change that would help."),
        "compare": ("twillgpu.cli_compare", "Compare the optimum with the schedules in use today."),
        "view": ("twillgpu.cli_view", "Draw the schedule: charts, tables, graph, trace, an interactive report."),
        "verify": ("twillgpu.cli_verify", "Check a schedule against every rule, without the solver."),
        "emulate": ("twillgpu.cli_emulate", "Run the warp program on the CPU: numbers, races, deadlocks, proofs."),
        "simulate": ("twillgpu.cli_simulate", "Predict the time of the warp program, cycle by cycle."),
        "tune": ("twillgpu.cli_tune", "Choose tile, sub-tiling, groups and registers for a problem's sizes."),
        "certificate": ("twillgpu.cli_certificate", "Check a certificate from scratch."),
        "cache": ("twillgpu.cli_cache", "List or clear the schedules and emitted kernels that were kept."),
        "machines": ("twillgpu.cli_machines", "List the known machines, or show one with its sources."),
        "doctor": ("twillgpu.cli_doctor", "Say what is installed, what is missing, and what needs it."),
        "completion": ("twillgpu.cli_completion", "Print the completion script of a shell."),
    }
)
"""Where each sub-command is, and its line in the help: the modules behind it are imported only when it runs."""


class LazyGroup(click.Group):
    """A group whose sub-commands are imported when they are used, so that help and mistakes are fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of the sub-commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's
        """Import and return one sub-command, ``None`` for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        return cast("click.Command", module.command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's
        """Write the list of sub-commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _version(ctx: click.Context, _option: click.Parameter, value: object) -> None:
    """Print the version, and those of the solvers and of Triton."""
    if not value or ctx.resilient_parsing:
        return
    click.echo(f"twillgpu {__version__}")
    for package, version in versions():
        click.echo(f"  {package} {version}")
    ctx.exit()


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show versions.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Find, prove and report the optimal software pipeline and warp specialization of a GPU kernel.

    Exit status: 0 done, 1 a mistake in the input, 2 proved infeasible, 3 a limit was reached before a proof.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> NoReturn:
    """Run the command line of this process and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _plain_warning
    sys.exit(run(sys.argv[1:]))


def _plain_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning as the command says everything: no place in its own source."""
    own = issubclass(category, RuntimeWarning) and Path(filename).is_relative_to(Path(__file__).parent)
    return f"twillgpu: {message}\n" if own else _FORMAT(message, category, filename, lineno, line)


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status; a mistake gives one message on standard error."""
    try:
        status = cli.main(args=list(arguments), prog_name="twillgpu", standalone_mode=False)
    except TwillError as error:
        return _complain(str(error))
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "twillgpu"
        return _complain(f"{error.format_message().rstrip('.')}; see {command} --help")
    except click.ClickException as error:
        return _complain(error.format_message())
    except click.Abort:
        click.echo("twillgpu: interrupted", err=True)
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def _complain(message: str) -> int:
    click.echo(f"twillgpu: {message}", err=True)
    return MISTAKE

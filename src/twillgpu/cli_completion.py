"""``twillgpu completion``: the line that switches on completion in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell: bash, zsh or fish.

    For bash: eval "$(twillgpu completion bash)", also as a line of ~/.bashrc. For zsh: the same with zsh. For fish:
    twillgpu completion fish | source
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(ctx.find_root().command, {}, "twillgpu", "_TWILLGPU_COMPLETE").source())

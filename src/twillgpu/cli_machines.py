"""``twillgpu machines``: the known machines, and where each figure of one comes from."""

from __future__ import annotations

import json
from pathlib import Path

import click

from twillgpu.cli_output import Output
from twillgpu.machine.load import load, names
from twillgpu.machine.text import to_mapping
from twillgpu.view.machines import machine_text, machines_text


@click.command("machines")
@click.argument("machine", metavar="[NAME|FILE.toml]", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("-o", "file", metavar="FILE", type=click.Path(path_type=Path), help="Write to FILE.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def command(machine: str | None, file: Path | None, *, as_json: bool, force: bool) -> None:
    """List the known machines, or show one: units, memories, rates, each figure with its source and confidence."""
    output = Output(file=file, force=force)
    if machine is not None:
        shown = load(machine)
        output.deliver(
            json.dumps(to_mapping(shown), indent=2) + "\n" if as_json else machine_text(shown, width=output.width)
        )
        return
    known = tuple(load(name) for name in names())
    documents = [to_mapping(one) for one in known]
    output.deliver(json.dumps({"machines": documents}, indent=2) + "\n" if as_json else machines_text(known))

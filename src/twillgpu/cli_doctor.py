"""``twillgpu doctor``: what is installed, what is missing, and what works without it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from twillgpu import __version__
from twillgpu.cli_output import Output
from twillgpu.installation import Finding, findings


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("-o", "file", metavar="FILE", type=click.Path(path_type=Path), help="Write to FILE.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def command(file: Path | None, *, as_json: bool, force: bool) -> None:
    """Say what is installed, what is missing, and what does not work without it.

    Nothing that is missing is an error: scheduling from graph JSON and TTGIR in generic form needs none of it.
    """
    found = findings()
    output = Output(file=file, force=force)
    if as_json:
        document = {"twillgpu": __version__, "findings": [asdict(finding) for finding in found]}
        output.deliver(json.dumps(document, indent=2) + "\n")
        return
    output.deliver("".join(f"{line}\n" for line in _lines(found)))


def _lines(found: tuple[Finding, ...]) -> list[str]:
    wide = max(len(finding.name) for finding in found)
    lines = [f"{'twillgpu':<{wide}}  {__version__}"]
    for finding in found:
        lines.append(f"{finding.name:<{wide}}  {finding.version or 'missing'}")
        lines.append(f"{'':<{wide}}  {finding.purpose}")
        if finding.version is None:
            lines.append(f"{'':<{wide}}  to get it: {finding.remedy}")
    return lines

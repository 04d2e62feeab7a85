"""``twillgpu certificate check``: a certificate from scratch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from twillgpu.certify.jsonform import read_certificate, write_certificate
from twillgpu.certify.recheck import recheck
from twillgpu.certify.record import Certificate, Outcome
from twillgpu.cli_certify import LIMIT
from twillgpu.cli_options import KERNEL, OUTPUT, Values, source_options, with_options
from twillgpu.cli_output import Output
from twillgpu.cli_progress import interruptible, progress_line
from twillgpu.errors import InputError
from twillgpu.graph.document import parse
from twillgpu.inputs import load_source, price_loaded, read_text
from twillgpu.schedule.jsonlimits import recorded_limits
from twillgpu.view.certificate import certificate_text

EXIT: dict[Outcome, int] = {"confirmed": 0, "contradicted": 1, "open": 3}


@click.group("certificate")
def command() -> None:
    """Check a certificate that schedule --certificate wrote."""


@command.command("check")
@click.argument("certificate", metavar="FILE")
@click.argument("source", metavar="[SOURCE]", required=False)
@click.option("--machine", metavar="NAME|FILE", help="The machine, where SOURCE is given.")
@with_options(KERNEL, (LIMIT,), OUTPUT)
def check(certificate: str, source: str | None, **values: Any) -> int:  # noqa: ANN401  # whatever click parsed
    """Check FILE from scratch: its hashes, its evidence (beside it), and every claim once more.

    The certificate holds the problem and the schedule, so nothing else is needed. Where SOURCE is given, too (with
    the kernel options and the machine of schedule), the problem must be the one that SOURCE gives.

    Exit status: 0 every claim is confirmed, 1 it is refused (where and why), 3 a check reached its limit.
    """
    output = Output(file=values["file"], force=values["force"])
    path = Path(certificate)
    claimed = read_certificate(read_text(path), certificate)
    if source is not None:
        _check_source(claimed, certificate, source, values)
    with interruptible(), progress_line() as progress:
        found = recheck(claimed, certificate, path.parent, seconds=values["check_limit"], progress=progress)
    document = write_certificate(found) if values["as_json"] else certificate_text(found, width=output.width)
    output.deliver(document)
    return EXIT[found.outcome]


def _check_source(certificate: Certificate, file: str, source: str, values: Values) -> None:
    """Insist that ``source`` gives the problem that was certified, under the limits recorded."""
    recorded = recorded_limits(parse(certificate.document, file).child("search").child("options"))
    problem = price_loaded(load_source(source, values["machine"], source_options(values)), recorded).problem
    if problem.sha256 != certificate.hashes["problem"]:
        raise InputError(
            f"{file}: hashes.problem",
            f"{source} gives another problem: {problem.sha256[:12]}..., not {certificate.hashes['problem'][:12]}...",
            "give the source, machine and kernel options that were certified",
        )

"""Options of ``twillgpu schedule`` that ask for a certificate, and what they do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

import twillgpu
from twillgpu.certify.jsonform import write_certificate
from twillgpu.certify.record import Certificate
from twillgpu.cli_options import Decorator, Finite, Values
from twillgpu.cli_output import Output
from twillgpu.errors import InputError, TwillError
from twillgpu.inputs import Priced
from twillgpu.view.record import Run

CERTIFICATE = "certificate.json"

SECONDS = 60.0

LIMIT: Decorator = click.option(
    "--check-limit",
    type=Finite(min=0, min_open=True),
    metavar="SECONDS",
    default=SECONDS,
    help=f"Wall limit of each check of a certificate; one that reaches it is open. Default: {SECONDS:g}.",
)

CERTIFY: tuple[Decorator, ...] = (
    click.option(
        "--certify",
        is_flag=True,
        help="Check every claim by something other than the search: verifier, arithmetic, a second solver and "
        "encoding, a proof checker.",
    ),
    click.option(
        "--certificate",
        "certificate_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Write the certificate to FILE (JSON); implies --certify.",
    ),
    click.option(
        "--evidence",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Write formulas (SMT-LIB 2, DIMACS) and DRAT proofs into DIR, beside or below the certificate; without "
        "--certificate, that goes to DIR/certificate.json. Implies --certify.",
    ),
    LIMIT,
)


def _below(folder: Path, file: Path) -> str:
    """Return the path of the folder from the certificate's, with a slash at the end unless it is the same."""
    try:
        path = folder.resolve().relative_to(file.parent.resolve()).as_posix()
    except ValueError:
        raise InputError(
            f"--evidence {folder}",
            f"does not lie below {file.parent}",
            "name one beside or below the certificate",
        ) from None
    return "" if path == "." else f"{path}/"


class Wanted:
    """What the options ask for. The checks of files run before any work is done.

    Raises:
        InputError: a file exists, a folder cannot be made, or the options do not fit each other.
    """

    def __init__(self, values: Values) -> None:
        self._folder: Path | None = values["evidence"]
        file: Path | None = values["certificate_file"]
        self._prefix = ""
        self._seconds: float = values["check_limit"]
        self._force: bool = values["force"]
        self.asked = bool(values["certify"] or file or self._folder)
        if self.asked and values.get("method", "clauses") == "paper":
            raise InputError("--certify", "checks what the default method claims", "leave --method paper out")
        if self._folder is not None:
            self._make_folder(self._folder)
            file = file or self._folder / CERTIFICATE
            self._prefix = _below(self._folder, file)
        self._output = self._target(file)

    def _target(self, file: Path | None) -> Output | None:
        if file is None:
            return None
        try:
            return Output(file=file, force=self._force)
        except InputError as error:
            raise InputError(f"--certificate {file}", error.what, error.remedy) from None

    def _make_folder(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"--evidence {folder}", "is a file", "name a folder")
        if folder.is_dir() and any(folder.iterdir()) and not self._force:
            raise InputError(f"--evidence {folder}", "the folder is not empty", "name another, or add --force")
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"--evidence {folder}", f"cannot be made ({error.strerror})", "name another") from None

    def certificate(self, priced: Priced, run: Run, progress: Callable[[str], None] | None) -> Certificate:
        """Check every claim of a run, and write the certificate where it is wanted.

        Raises:
            TwillError: a check contradicts the search, which is a defect of one of them.
        """
        found = twillgpu.certify_schedule(
            priced, run, seconds=self._seconds, folder=self._folder, prefix=self._prefix, progress=progress
        )
        if self._output is not None:
            self._output.deliver(write_certificate(found))
        for claim in found.claims:
            if claim.outcome == "contradicted":
                detail = next(check.detail for check in claim.checks if check.outcome == "contradicted")
                raise TwillError(
                    "certificate",
                    f"{claim.text}: contradicted: {detail}",
                    "this is a defect of twillgpu: please report it with the output of --emit graph",
                )
        return found

"""Certificates of the examples: is every claim confirmed, and in what time?

python bench/certify.py [EXAMPLE:MACHINE...] [--check-limit SECONDS]    default: every example on h100 and b200

One line per pair, as a table of docs/certificates.md. Seconds are of the wall clock, those of the checks added up.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import twillgpu
from twillgpu.certify.record import Certificate
from twillgpu.view.record import Run

EXAMPLES = Path(__file__).parents[1] / "examples"
MACHINES = ("h100", "b200")
HEAD = (
    "example",
    "machine",
    "I",
    "bound",
    "search s",
    "claims",
    "refutations",
    "outcome",
    "checks s",
    "longest check",
)


def row(example: str, machine: str, seconds: float) -> tuple[str, ...]:
    """Search, certify, and return what came of it."""
    priced = twillgpu.load_problem(EXAMPLES / f"{example}.py", machine)
    run = twillgpu.find_schedule(priced)
    certificate = twillgpu.certify_schedule(priced, run, seconds=seconds)
    return (example, machine, *_found(run), *_checked(certificate))


def _found(run: Run) -> tuple[str, ...]:
    result = run.result
    interval = f"{result.schedule.ii_cycles:,}" if result.schedule is not None else "none"
    return interval, f"{result.bounds.binding.cycles:,}", f"{result.seconds:.1f}"


def _checked(certificate: Certificate) -> Iterator[str]:
    checks = [check for claim in certificate.claims for check in claim.checks]
    longest = max(checks, key=lambda check: check.seconds)
    yield str(len(certificate.claims))
    yield str(sum(claim.kind == "refutation" for claim in certificate.claims))
    yield certificate.outcome
    yield f"{sum(check.seconds for check in checks):.1f}"
    yield f"{longest.by.partition(' (')[0]} {longest.seconds:.1f}"


def main() -> None:
    """Print the table, each line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", metavar="EXAMPLE:MACHINE")
    parser.add_argument("--check-limit", type=float, default=60.0, metavar="SECONDS")
    given = parser.parse_args()
    every = [f"{file.stem}:{machine}" for file in sorted(EXAMPLES.glob("*.py")) for machine in MACHINES]
    for cells in (HEAD, ("---",) * len(HEAD)):
        print("|", " | ".join(cells), "|")
    for pair in given.pairs or every:
        example, _, machine = pair.partition(":")
        print("|", " | ".join(row(example, machine, given.check_limit)), "|", flush=True)


if __name__ == "__main__":
    main()

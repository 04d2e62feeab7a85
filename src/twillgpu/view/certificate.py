"""A certificate as text: every claim, and under it every check with what it said."""

from __future__ import annotations

from twillgpu.certify.record import Certificate, Check, Claim
from twillgpu.view.text import wrap

INDENT = "  "


def certificate_text(certificate: Certificate, *, width: int) -> str:
    """Return the summary of a certificate, at most ``width`` columns wide."""
    lines = [f"certificate: {certificate.outcome}"]
    for claim in certificate.claims:
        lines += _claim(claim, width)
    return "\n".join(lines) + "\n"


def _claim(claim: Claim, width: int) -> list[str]:
    lines = wrap(f"{claim.outcome}: {claim.text}", hang=INDENT, width=width)
    for check in claim.checks:
        lines += wrap(_check(check), indent=2 * INDENT, hang=INDENT, width=width)
    if claim.evidence:
        files = ", ".join(item.file for item in claim.evidence)
        lines += wrap(f"evidence: {files}", indent=2 * INDENT, hang=INDENT, width=width)
    return lines


def _check(check: Check) -> str:
    return f"{check.outcome}: {check.by}: {check.how}: {check.detail} ({check.seconds:.1f} s)"

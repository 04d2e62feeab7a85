"""Certificate JSON (``twillgpu-certificate/1``): one document that holds the problem, the answer, and every check.

The document closes with the hash of all the rest, so that a change anywhere is noticed before anything is believed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Literal as Choice
from typing import cast

from twillgpu.certify.record import Certificate, Check, Claim, Evidence, Outcome
from twillgpu.graph.document import Cursor, parse

SCHEMA = "twillgpu-certificate/1"
OUTCOMES = ("confirmed", "contradicted", "open")
KINDS = ("schedule", "bound", "refutation")
_KEYS = ("schema", "source", "outcome", "hashes", "versions", "claims", "graph", "schedule", "sha256")


def write_certificate(certificate: Certificate) -> str:
    """Return the certificate as JSON text."""
    document: dict[str, object] = {
        "schema": SCHEMA,
        "source": certificate.source,
        "outcome": certificate.outcome,
        "hashes": certificate.hashes,
        "versions": certificate.versions,
        "claims": [{**asdict(claim), "outcome": claim.outcome} for claim in certificate.claims],
        "graph": json.loads(certificate.graph),
        "schedule": json.loads(certificate.document),
    }
    document["sha256"] = _digest(document)
    return json.dumps(document, indent=1) + "\n"


def _digest(document: dict[str, object]) -> str:
    rest = {key: value for key, value in document.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_certificate(text: str, where: str) -> Certificate:
    """Return the certificate that ``text`` holds; ``where`` is its file, for messages.

    Raises:
        InputError: with the path of whatever is malformed, or where the hash shows that the text was changed.
    """
    root = parse(text, where)
    schema = root.child("schema")
    if isinstance(root.value, dict) and root.has("schema") and schema.value != SCHEMA:
        raise schema.fail(f"this reader knows {SCHEMA!r}, not {schema.value!r}", "give what --certificate wrote")
    root.object(_KEYS)
    document = cast("dict[str, object]", root.value)
    if root.child("sha256").text() != _digest(document):
        raise root.child("sha256").fail(
            "the contents are not those that were certified", "certify again, or ask for the file as it was written"
        )
    return Certificate(
        source=root.child("source").text(),
        graph=json.dumps(document["graph"]),
        document=json.dumps(document["schedule"]),
        claims=tuple(_claim(item) for item in root.child("claims").items()),
        hashes=_texts(root.child("hashes"), ("graph", "machine", "problem")),
        versions=_texts(root.child("versions"), ("twillgpu",)),
    )


def _texts(cursor: Cursor, required: tuple[str, ...]) -> dict[str, str]:
    names = cursor.value if isinstance(cursor.value, dict) else {}
    cursor.object(required, tuple(names))
    return {name: cursor.child(name).text() for name in names}


def _claim(cursor: Cursor) -> Claim:
    cursor.object((*Claim.__dataclass_fields__, "outcome"))
    cursor.child("outcome").choice(OUTCOMES)
    return Claim(
        kind=cast('Choice["schedule", "bound", "refutation"]', cursor.child("kind").choice(KINDS)),
        text=cursor.child("text").text(),
        first_cycles=cursor.child("first_cycles").integer(low=1),
        last_cycles=cursor.child("last_cycles").integer(low=1),
        slots=cursor.child("slots").integer(),
        slot_cycles=cursor.child("slot_cycles").integer(low=1),
        bound=cursor.child("bound").text(),
        checks=tuple(_check(item) for item in cursor.child("checks").items()),
        evidence=tuple(_evidence(item) for item in cursor.child("evidence").items()),
    )


def _check(cursor: Cursor) -> Check:
    cursor.object(Check.__dataclass_fields__)
    seconds = cursor.child("seconds").value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise cursor.child("seconds").wrong("a number")
    return Check(
        by=cursor.child("by").text(),
        how=cursor.child("how").text(),
        outcome=cast("Outcome", cursor.child("outcome").choice(OUTCOMES)),
        detail=cursor.child("detail").text(),
        seconds=seconds,
        independent=cursor.child("independent").flag(),
    )


def _evidence(cursor: Cursor) -> Evidence:
    cursor.object(Evidence.__dataclass_fields__)
    file = cursor.child("file").name()
    if file.startswith("/") or "\\" in file or ".." in file.split("/"):
        raise cursor.child("file").fail(
            f"{file!r} does not lie below the certificate", "name a file below its folder"
        )
    return Evidence(file=file, sha256=cursor.child("sha256").text(), shows=cursor.child("shows").text())

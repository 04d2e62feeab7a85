"""A hash of what a priced problem says, whatever graph and machine file it came from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace

from twillgpu.costs.record import Problem


def problem_digest(problem: Problem) -> str:
    """Return the SHA-256 of the ops, edges, limits and rules of ``problem``.

    Names of the graph and the machine, positions in the source, kinds (for reports only), the trip count and the
    hashes of the files are left out: a kernel and the graph that ``--emit graph`` made of it are the same problem.
    """
    ops = tuple(replace(op, kind="", source="") for op in problem.ops)
    plain = replace(
        problem,
        name="",
        machine="",
        ops=ops,
        trip_count=None,
        flop_per_iteration=0,
        graph_sha256="",
        machine_sha256="",
        sha256="",
    )
    text = json.dumps(asdict(plain), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def with_digest(problem: Problem) -> Problem:
    """Return the problem with ``sha256`` set."""
    return replace(problem, sha256=problem_digest(problem))

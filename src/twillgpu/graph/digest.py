"""A hash of what a graph says."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace

from twillgpu.graph.record import DepGraph


def with_digest(graph: DepGraph) -> DepGraph:
    """Return the graph with ``sha256`` set to the hash of its content.

    The machine is left out: it has a hash of its own, and one graph may be scheduled for several machines.
    """
    content = asdict(replace(graph, sha256="", machine=None))
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return replace(graph, sha256=hashlib.sha256(text.encode()).hexdigest())

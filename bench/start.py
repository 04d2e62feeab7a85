"""Seconds from the start of a process to the first question to the solver: ``bench/start.py GRAPH STARTED``."""

from __future__ import annotations

import sys
import time

import twillgpu


def seconds_to_search(graph: str, started: float) -> float:
    """Load and price a graph file, load the search, and return the seconds since ``started`` (Unix time)."""
    problem = twillgpu.load_problem(graph)
    search = twillgpu.find_schedule
    assert callable(search)  # noqa: S101  # the search and its solver are imported by now
    assert problem.problem.ops  # noqa: S101
    return time.time() - started


if __name__ == "__main__":
    print(seconds_to_search(sys.argv[1], float(sys.argv[2])))

"""Options of the search: defaults in the help, and what a time limit alone means."""

import pytest
from click.testing import CliRunner

from twillgpu.cli_schedule import command, search_options

NOTHING = {"stages": None, "resolution": None, "time_limit": None, "work_limit": None, "seed": None}


@pytest.mark.parametrize(
    ("given", "seconds", "work"),
    [
        ({}, 300, 20),
        ({"time_limit": 5}, 5, 20),
        ({"time_limit": 600}, 600, 600),
        ({"time_limit": 600, "work_limit": 7}, 600, 7),
        ({"work_limit": 50}, 300, 50),
    ],
)
def test_a_time_limit_alone_raises_the_work_limit(given: dict[str, float], seconds: float, work: float) -> None:
    options = search_options(NOTHING | given)
    assert (options.time_limit_seconds, options.work_limit) == (seconds, work)


@pytest.mark.parametrize(
    "text",
    [
        "Default: one more than the critical path needs, from 3 to 32.",
        "Slots per iteration in the coarse search. Default: 34.",
        "Stop after so long. Default: 300.",
        "(about a second each). Default: 20.",
        "Seed of the solver. Default: 0.",
        "(.kernel)",
    ],
)
def test_the_help_says_the_defaults(text: str) -> None:
    shown = CliRunner().invoke(command, ["--help"]).output
    assert text in " ".join(shown.split())

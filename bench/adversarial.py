"""Breaks programs and schedules, and prints how many of them the checkers refuse.

``python bench/adversarial.py [--programs N] [--mutants N] [--good N] [--schedules N] [--jobs N]`` prints the tables
of ``docs/adversarial.md`` and writes the numbers to ``bench/out/adversarial.json``. It ends with status 1 where a
checker accepted what is unsafe, or refused what is good.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
for folder in ("tests", "tests/lower", "tests/adversarial"):
    sys.path.insert(0, str(ROOT / folder))

import campaign  # noqa: E402  # beside the tests
import schedule_campaign  # noqa: E402
import whole  # noqa: E402

OUT = ROOT / "bench" / "out"
HELP = {
    "programs": "programs to break",
    "mutants": "mutants of each",
    "runs": "orders of each block that the oracle tries",
    "good": "further good programs",
    "schedules": "schedules to break",
    "jobs": "processes",
}


def main() -> int:
    """Run everything and return the exit status."""
    options = _options()
    started = time.perf_counter()
    wanted = whole.Wanted(
        programs=options.programs,
        mutants=options.mutants,
        runs=options.runs,
        good=options.good,
        schedules=options.schedules,
        jobs=options.jobs,
    )
    tally, schedules = whole.run(wanted, lambda line: print(line, file=sys.stderr, flush=True))
    document = _document(tally, schedules, time.perf_counter() - started)
    OUT.mkdir(exist_ok=True)
    (OUT / "adversarial.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print("\n".join(_lines(tally, schedules, document["seconds"])))
    return 1 if tally.accepted or tally.false_alarms or schedules.accepted or schedules.false_alarms else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    for name, words in HELP.items():
        parser.add_argument(f"--{name}", type=int, default=getattr(whole.ALL, name), help=words)
    return parser.parse_args()


def _document(tally: campaign.Tally, schedules: schedule_campaign.Tally, seconds: float) -> dict[str, Any]:
    rows = sorted({kind for kind, _, _ in tally.verdicts})
    return {
        "programs": tally.programs,
        "good_programs": tally.good,
        "mutants": tally.mutants,
        "classes": {kind: _cells(tally.verdicts, kind) for kind in rows},
        "oracle_saw": dict(tally.shown),
        "harmless_refused": dict(tally.reasons),
        "unsafe_accepted": tally.accepted,
        "false_alarms": tally.false_alarms,
        "structural": tally.structural,
        "oracle_seconds": round(tally.oracle_seconds, 1),
        "checker_seconds": round(tally.checker_seconds, 1),
        "schedules": {
            "mutants": schedules.mutants,
            "good": schedules.good,
            "classes": {
                kind: _cells(schedules.verdicts, kind) for kind in sorted({row[0] for row in schedules.verdicts})
            },
            "unsafe_accepted": schedules.accepted,
            "false_alarms": schedules.false_alarms,
        },
        "seconds": round(seconds, 1),
    }


def _cells(verdicts: Counter[tuple[str, str, str]], kind: str) -> list[int]:
    return [verdicts[kind, truth, verdict] for truth in ("unsafe", "harmless") for verdict in ("refused", "accepted")]


def _lines(tally: campaign.Tally, schedules: schedule_campaign.Tally, seconds: float) -> list[str]:
    head = [
        "| class | unsafe, refused | unsafe, accepted | harmless, refused | harmless, accepted |",
        "|---|---|---|---|---|",
    ]
    lines = [f"{tally.mutants} mutants of {tally.programs} programs", *head, *_rows(tally.verdicts)]
    lines += ["", f"oracle saw: {dict(tally.shown)}", f"harmless, refused: {dict(tally.reasons)}"]
    lines += [
        f"good programs: {tally.good}, false alarms: {len(tally.false_alarms)}",
        *tally.accepted,
        *tally.false_alarms,
    ]
    lines += [f"oracle {tally.oracle_seconds:.0f} s, checker {tally.checker_seconds:.0f} s", ""]
    lines += [f"{schedules.mutants} schedules out of {schedules.good}", *head, *_rows(schedules.verdicts)]
    return [*lines, *schedules.accepted, *schedules.false_alarms, "", f"{seconds:.0f} s in all"]


def _rows(verdicts: Counter[tuple[str, str, str]]) -> list[str]:
    kinds = sorted({kind for kind, _, _ in verdicts})
    rows = [f"| {kind} | {' | '.join(map(str, _cells(verdicts, kind)))} |" for kind in kinds]
    total = [sum(_cells(verdicts, kind)[place] for kind in kinds) for place in range(4)]
    return [*rows, f"| all | {' | '.join(map(str, total))} |"]


if __name__ == "__main__":
    sys.exit(main())

"""A simulation as one JSON document: the report's figures, and every event by name."""

from __future__ import annotations

import json

from twillgpu.simulate.record import Event
from twillgpu.view.records import Plain, plain
from twillgpu.view.trace import Simulation

SCHEMA = "twillgpu-simulation/1"


def simulation_json(found: Simulation) -> str:
    """Return the document, ending in a newline. Times are in cycles from the start of the block."""
    document: dict[str, Plain] = {
        "schema": SCHEMA,
        "kernel": found.kernel,
        "machine": found.machine,
        "options": plain(found.trace.options),
        "steady": plain(found.steady),
        "causes": plain(found.causes),
        "time": plain(found.time),
        "remarks": plain(found.trace.remarks),
        "cycles": found.trace.cycles,
        "groups": plain(found.trace.groups),
        "units": plain(found.trace.units),
        "events": [_event(event) for event in found.trace.events],
    }
    return json.dumps(document, indent=1) + "\n"


def _event(event: Event) -> Plain:
    return {name: plain(value) for name, value in event._asdict().items()}

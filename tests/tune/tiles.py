"""Graph JSON of made-up tiles on H100: a product, an exponential and a load, whose costs follow from the tile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tile(rows: int, columns: int, *, machine: str = "h100", extra: int = 0) -> dict[str, Any]:
    """Return one iteration of a loop over tiles of ``rows`` x ``columns``; ``extra`` cycles of other work."""
    area = rows * columns
    ops = [
        {"name": "load", "uses": [{"unit": "tma", "cycles": max(1, columns // 2)}], "latency_cycles": 600},
        {"name": "product", "uses": [{"unit": "tensor", "cycles": area // 16}], "latency_cycles": area // 16 + 30},
        {
            "name": "exp",
            "uses": [{"unit": "alu", "cycles": area // 32 + extra}],
            "latency_cycles": area // 32 + extra,
        },
    ]
    return {
        "schema": "twillgpu-graph/1",
        "name": f"tile_{rows}_{columns}",
        "machine": machine,
        "ops": ops,
        "edges": [{"from": "load", "to": "product"}, {"from": "product", "to": "exp"}],
        "flop_per_iteration": 2 * area * 128,
    }


def write_tiles(folder: Path, *sizes: tuple[int, int], extra: int = 0) -> str:
    """Write ``tile_ROWS_COLUMNS.json`` for every size; return the template of their names."""
    for rows, columns in sizes:
        text = json.dumps(tile(rows, columns, extra=extra if rows < 128 else 0))
        (folder / f"tile_{rows}_{columns}.json").write_text(text, encoding="utf-8")
    return str(folder / "tile_{BLOCK_M}_{BLOCK_N}.json")

"""The interactive report in headless Chromium: it draws in light and dark, and its keys and controls work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from handmade import PROBLEM, SCHEDULE
from simulated_run import TRACE

from twillgpu.schedule.record import ScheduledOp
from twillgpu.view.html import page_html
from twillgpu.view.page import Candidate, Page, page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
PAGE = page(
    "hand on hand",
    "I = 100 cycles, optimal",
    PROBLEM,
    (
        Candidate(name="optimum", says="what the search finds", schedule=SCHEDULE, trace=TRACE),
        Candidate(name="slower", says="the same, more slowly", schedule=replace(SCHEDULE, ii_cycles=150)),
    ),
    (("kernel.py:5", "    p = tl.math.exp2(s)"),),
)
DARK = "--force-dark-mode"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install --no-install-recommends chromium"),
]


def _run(folder: Path, shown: Page, *flags: str, script: str = "") -> str:
    """Open a report, with ``script`` run at its end; return what Chromium prints."""
    file = folder / "report.html"
    file.write_text(page_html(shown).replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    done = subprocess.run(  # noqa: S603  # a browser on a file of our own
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def _probe(folder: Path, script: str, shown: Page = PAGE) -> Any:
    """Run a script that returns a value in the report; return that."""
    wrapped = f"document.title = JSON.stringify((() => {{ {script} }})());"
    dom = _run(folder, shown, "--dump-dom", "--window-size=1200,900", script=wrapped)
    found = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert found is not None
    return json.loads(unescape(found[1]))


@pytest.mark.parametrize(("flags", "dark"), [((), False), ((DARK,), True)], ids=["light", "dark"])
def test_a_screenshot_is_not_blank(tmp_path: Path, flags: tuple[str, ...], dark: bool) -> None:
    image = pytest.importorskip("matplotlib.image")
    shot = tmp_path / "shot.png"
    _run(tmp_path, PAGE, *flags, f"--screenshot={shot}", "--window-size=1200,2000")
    pixels = (image.imread(shot)[:, :, :3] * 255).round().astype(int)
    assert pixels.shape == (2000, 1200, 3)
    background = pixels[1990, 5].mean()
    assert background < 60 if dark else background > 200
    colours = {tuple(pixel) for row in pixels[::2] for pixel in row[::2]}
    assert len(colours) > 60
    for colour in PAGE.colours[:3]:  # three iterations are at work at once
        assert tuple(bytes.fromhex(colour[1:])) in colours


def test_every_picture_is_drawn_and_can_be_reached_by_key(tmp_path: Path) -> None:
    found = _probe(
        tmp_path,
        """return Object.fromEntries(["gantt", "occupancy", "graph", "run", "ops", "modulo"].map((id) => [id, {
          hits: document.querySelectorAll(`#${id} .hit, #${id} td`).length,
          focus: document.querySelectorAll(`#${id}[tabindex="0"], #${id} svg[tabindex="0"]`).length,
          bare: [...document.querySelectorAll(`#${id} svg[tabindex]`)].filter((one) => !one.ariaLabel).length}]));""",
    )
    assert all(one["hits"] > 0 and one["focus"] > 0 and one["bare"] == 0 for one in found.values()), found
    assert found["occupancy"]["focus"] == 4


def test_keys_zoom_move_and_show_all(tmp_path: Path) -> None:
    found = _probe(
        tmp_path,
        """const chart = document.querySelector("#gantt svg.chart");
        const words = () => [...chart.querySelectorAll("text.soft")].map((one) => Number(one.textContent));
        const ticks = () => words().filter(Number.isFinite);
        const press = (key) => chart.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        const seen = [ticks()];
        for (const key of ["+", "ArrowRight", "0"]) { press(key); seen.push(ticks()); }
        return seen;""",
    )
    start, zoomed, moved, back = found
    assert start == back
    assert max(zoomed) - min(zoomed) < max(start) - min(start)
    assert min(moved) > min(zoomed)


def test_brackets_step_through_bars_with_their_source_lines(tmp_path: Path) -> None:
    found = _probe(
        tmp_path,
        """const chart = document.querySelector("#gantt svg.chart"), tips = [];
        for (let step = 0; step < 30; step += 1) {
          chart.dispatchEvent(new KeyboardEvent("keydown", { key: "]", bubbles: true, cancelable: true }));
          tips.push(document.getElementById("tip").textContent);
        }
        const count = (kind) => document.querySelectorAll(kind).length;
        return { tips, chosen: count("#gantt .chosen"), same: count(".same") };""",
    )
    assert found["chosen"] == 1
    assert found["same"] > 1
    assert any("kernel.py:5: p = tl.math.exp2(s)" in tip for tip in found["tips"])
    assert any(tip.startswith("pv, 2 iterations earlier\ntensor: cycles 0 to 10 (10)") for tip in found["tips"])


def test_the_baseline_is_a_key_away_and_the_whole_loop_a_box(tmp_path: Path) -> None:
    found = _probe(
        tmp_path,
        """const says = () => document.getElementById("says").textContent, seen = [says()];
        const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "t", bubbles: true }));
        press(); seen.push(says(), document.getElementById("s-run").hidden);
        press(); seen.push(says(), document.getElementById("s-run").hidden);
        const bars = () => document.querySelectorAll("#gantt .bar.hit").length, few = bars();
        document.getElementById("whole").click();
        seen.push(bars() > few);
        return seen;""",
    )
    optimum = "optimum, I = 100 cycles: what the search finds"
    assert found == [optimum, "slower, I = 150 cycles: the same, more slowly", True, optimum, False, True]


def test_a_long_kernel_is_drawn_and_its_tables_scroll(tmp_path: Path) -> None:
    names = [f"op{index}" for index in range(250)]
    long = replace(
        PROBLEM,
        ops=tuple(replace(PROBLEM.ops[1 + index % 3], name=name) for index, name in enumerate(names)),
        edges=tuple(replace(PROBLEM.edges[0], tail=tail, head=head) for tail, head in pairwise(names)),
    )
    ops = tuple(ScheduledOp(name=name, start_cycle=90 * index, group=index % 2) for index, name in enumerate(names))
    schedule = replace(SCHEDULE, ii_cycles=25_000, ops=ops, buffers=())
    candidate = Candidate(name="long", says="", schedule=schedule)
    found = _probe(
        tmp_path,
        """const box = document.getElementById("modulo").getBoundingClientRect();
        return [document.querySelectorAll("#graph .bar").length, document.querySelectorAll("#ops tbody tr").length,
          box.height < 500, document.documentElement.scrollWidth <= innerWidth];""",
        page("long", "", long, (candidate,), ()),
    )
    assert found == [250, 250, True, True]

"""The picture on docs/pictures.md is what its command draws."""

import re
from pathlib import Path

import pytest
from console import ROOT, output, shown

IMAGE = ROOT / "docs" / "img" / "attention_fwd_h100.svg"


def _content(svg: str) -> tuple[list[str], list[str]]:
    """Return the bars and the words of a picture: how they are written may change with the version of matplotlib."""
    return re.findall(r'id="((?:unit|group):[^"]+)"', svg), re.findall(r"<text[^>]*>([^<]+)<", svg)


@pytest.mark.triton
@pytest.mark.slow
def test_the_picture_is_what_its_command_draws(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("matplotlib")
    (command,) = (one.command for one in shown(ROOT / "docs" / "pictures.md") if IMAGE.name in one.command)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    status, text = output(command, tmp_path)
    assert status == 0, text
    drawn = (tmp_path / IMAGE.name).read_text(encoding="utf-8")
    if request.config.getoption("--update-golden"):
        IMAGE.write_text(drawn, encoding="utf-8")
    bars, words = _content(drawn)
    assert (bars, words) == _content(IMAGE.read_text(encoding="utf-8"))
    assert len(bars) > 40
    assert "acc_1" in words

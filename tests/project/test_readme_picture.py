"""The picture in README.md is taken from the report page, which is compared with what the command prints."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_picture_in_the_readme_is_that_of_the_report_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    period = page.split("One period of the steady state")[1].split("One column is")[0].splitlines()
    for row in readme.splitlines():
        assert f"  {row}" in period

"""``twillgpu doctor`` and ``twillgpu completion``."""

import json
import os

import pytest

from twillgpu import cli, installation


def test_doctor_names_the_purpose_of_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor"]) == 0
    printed = capsys.readouterr().out
    for part in installation.PARTS:
        assert part.package in printed
        assert part.purpose in printed


def test_doctor_says_how_to_get_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = installation.Part(package="no-such-package", extra="paper", purpose="nothing")
    monkeypatch.setattr(installation, "PARTS", (absent,))
    assert cli.run(["doctor", "--json"]) == 0
    found = {row["name"]: row for row in json.loads(capsys.readouterr().out)["findings"]}
    assert found["no-such-package"]["version"] is None
    assert found["no-such-package"]["remedy"] == "pip install 'twillgpu[paper]'"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", shell]) == 0
    assert "_TWILLGPU_COMPLETE" in capsys.readouterr().out


def test_completion_of_an_unknown_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", "ed"]) == 1
    assert "'ed' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err


def test_a_shell_that_asks_gets_the_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_TWILLGPU_COMPLETE", "bash_complete"), ("COMP_WORDS", "twillgpu sch"), ("COMP_CWORD", "1")):
        monkeypatch.setitem(os.environ, name, value)
    with pytest.raises(SystemExit):
        cli.run([])
    assert capsys.readouterr().out == "plain,schedule\n"

"""The state of the machine on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphnet_datasets.cli.app import app
from graphnet_datasets.isolation import landlock
from graphnet_datasets.isolation.confinement import LAYERS

from .calling import call


def test_each_layer_of_confinement_is_listed() -> None:
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    line = result.output.partition("\n")[0]
    assert [name in line for name in LAYERS] == [True] * 3
    state = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).output)
    assert [*state["confinement"]] == [*LAYERS]
    assert state["threads"] >= 1


def test_a_missing_layer_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    output = CliRunner().invoke(app, ["doctor"]).output
    assert "Landlock off" in output
    assert "This system lacks Landlock" in output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("inductr",), "There is no compiler `inductr` for torch. Did you mean `inductor`?"),
        (("absent.py:Mine",), "There is no file `absent.py`"),
        (("inductor", "--timeout", "x"), "`x` is not a timeout"),
        (("inductor", "--device", "tpu"), "tpu"),
        (("inductor", "--dataset", "./absent"), "absent"),
    ],
)
def test_a_mistake_is_answered_before_anything_runs(
    words: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    out = tmp_path / "doctor"
    ended = call("doctor", *words, "--out", out, exit_code=1)
    assert sentence in ended.stderr
    assert not out.exists()

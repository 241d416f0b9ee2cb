"""The state of the machine on the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from graphnet_datasets.cli.app import app
from graphnet_datasets.isolation import landlock
from graphnet_datasets.isolation.confinement import LAYERS


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

"""The device's peak rates on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphnet_datasets.benchmark.judging import roofline
from graphnet_datasets.cli.app import app


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(roofline.MATRIX_SIZE, "cpu", 64)
    monkeypatch.setattr(roofline, "COPY_BYTES", 2**20)


@pytest.mark.torch
def test_the_rates_are_printed_and_kept() -> None:
    command = ["device", "--threads", "1", "--json"]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    rates = json.loads(first.output)
    assert rates["num_threads"] == 1
    assert min(rates["flops_per_s"].values()) >= rates["flops_per_s"]["float32"] > 0
    assert rates["cache_bytes"] > 0
    again = json.loads(CliRunner().invoke(app, command).output)  # measured again if it was busy
    assert again["flops_per_s"]["float32"] >= rates["flops_per_s"]["float32"]
    assert again["bytes_per_s"] >= rates["bytes_per_s"]
    assert rates["load"] >= 0


@pytest.mark.torch
def test_they_have_units() -> None:
    result = CliRunner().invoke(app, ["device", "--threads", "1"])
    cells = (line.split("  ", 1) for line in result.output.splitlines())
    lines = {name.strip(): value.strip() for name, value in cells}
    assert lines["products in float32"].endswith(" TFLOP/s")
    assert lines["copies"].endswith(" GB/s read and written")
    assert lines["measured"].startswith("at load ")


@pytest.mark.torch
def test_a_device_that_is_not_there_is_an_error() -> None:
    result = CliRunner().invoke(app, ["device", "--device", "cuda:9"])
    assert result.exit_code == 1
    assert re.match("Error: (CUDA is not available|There is no device `cuda:9`)", result.output)


@pytest.mark.torch
@pytest.mark.parametrize("device", ["cudda", "meta", "xpu", "cuda:x", "cuda:0,cuda:1", "cpu:0", ""])
def test_unsupported_devices_end_in_a_sentence(device: str) -> None:
    result = CliRunner().invoke(app, ["device", "--device", device])
    assert result.exit_code == 1
    refusal = "Peak rates cannot be measured on `xpu`. Choose one device:"
    if device != "xpu":
        refusal = f"`{device}` is not a device. Choose"
    assert result.stderr == f"Error: {refusal} `cpu`, `cuda` or `cuda:1`.\n"

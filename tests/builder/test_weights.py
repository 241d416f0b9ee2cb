"""Weights measured after the capture: in the rows, with where they come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builder.capturing import Capture, Keys
from builder.catalog import parse_line
from builder.executors import capture_all, measure_all
from builder.placing import captured
from builder.weights import path_of, waiting, with_weights
from graphnet_datasets.sample import Sample
from graphnet_datasets.storage.table import read_table

LINES = (
    "torch/a | other | torch | mlp | sizes=[40,300,2] | input=normal(2,40) | float32 | eval | |",
    "torch/no | other | torch | mlp | sizes=[4,8] | input=normal(2,5) | float32 | eval | |",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Capture]]:
    build = tmp_path_factory.mktemp("build")
    keys = Keys(is_strict=False)
    captures = list(capture_all([parse_line(line) for line in LINES], build, keys=keys))
    entries = [each.entry for each in captures]
    assert [each.name for each in waiting(entries, build, keys)] == ["torch/a"]
    assert [(e.name, why) for e, why in measure_all([entries[0]], build, keys)] == [("torch/a", "")]
    assert not list(waiting(entries, build, keys))
    return build, captures


def weights(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["source_name"]: each for each in row["inputs"] if each["role"] == "parameter"}


def test_measured_weights_come_into_the_row_and_the_capture_stays(
    built: tuple[Path, list[Capture]],
) -> None:
    _, captures = built
    path = captures[0].path
    assert path is not None
    (before,) = read_table(path).to_pylist()
    assert before["weights_origin"] is None
    assert not any(each["is_measured"] for each in weights(before).values())
    (pending,) = captured(captures[:1], is_analysed=False)
    after = pending.load()
    assert after["weights_origin"] == "initialised"
    assert after["signature_hash"] == before["signature_hash"]
    first, second = (weights(row) for row in (before, after))
    wide = [name for name in second if second[name]["shape"] == [300, 40]]
    (name,) = wide
    assert second[name]["is_measured"]
    assert second[name]["std"] == pytest.approx(first[name]["std"], rel=0.03)
    assert second[name]["mean"] != 0.0 and first[name]["mean"] == 0.0
    assert second[name]["max"] <= first[name]["max"]  # drawn elements stay within the bound
    Sample.from_row(after)


def test_equal_builds_measure_alike(built: tuple[Path, list[Capture]], tmp_path: Path) -> None:
    build, captures = built
    keys = Keys(is_strict=False)
    entry = captures[0].entry
    (tmp_path / keys.path(entry, tmp_path).name).write_bytes(captures[0].path.read_bytes())  # type: ignore[union-attr]
    assert [why for _, why in measure_all([entry], tmp_path, keys)] == [""]
    first, second = (path_of(keys.path(entry, each)) for each in (build, tmp_path))
    assert first.read_bytes() == second.read_bytes()
    assert all(len(figures) == 4 for figures in json.loads(first.read_text()).values())


def test_statistics_of_the_capture_stay_with_their_origin() -> None:
    each = {"role": "parameter", "source_name": "w", "mean": 1.0, "std": 2.0, "min": 0.0,
            "max": 3.0, "is_measured": True}  # fmt: skip
    row = with_weights({"inputs": [each]}, {"w": (0.0, 0.0, 0.0, 0.0)})
    assert row == {"inputs": [each], "weights_origin": "initialised"}
    data = {"role": "input", "source_name": "w", "is_measured": True}
    assert with_weights({"inputs": [data]}, {"w": (0.0,) * 4})["weights_origin"] is None

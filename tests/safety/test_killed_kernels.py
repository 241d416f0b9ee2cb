"""Rows that kill a kernel of torch or paddle without guards are refused by `materialize`."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import sample_to_row
from tests.frameworks.paddle.installed import paddle

FILE = Path(__file__).parents[2] / "benchmarks" / "fuzzing" / "killed_kernels.jsonl"
KILLED = [json.loads(line) for line in FILE.read_text().splitlines()]
WITH_ROWS = [entry for entry in KILLED if "row" in entry]


def sample_of(entry: dict[str, Any]) -> Sample:
    """Return the sample of an entry, whose row has no columns that are null."""
    matrix = Input("input", Value("float32", (2,)))
    framework = entry["framework"]
    whole = Sample("killed/kernel", framework, "other", (matrix,), (Op("f.g", (Ref(0),)),), Ref(1))
    row = sample_to_row(whole)
    for column in ("inputs", "ops"):
        empty = dict.fromkeys(row[column][0], None) | ({"results": [], "operands": []})
        empty = {name: empty[name] for name in row[column][0]}
        row[column] = [{**empty, **item} for item in entry["row"][column]]
        for item in row[column]:
            if isinstance(item.get("data"), str):
                item["data"] = bytes.fromhex(item["data"])
            if "module" in item:
                item["module"] = item["module"] or ""
            if "source_name" in item:
                item["source_name"] = item["source_name"] or ""
    row["outputs"] = entry["row"]["outputs"]
    return Sample.from_row(row)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(
            entry,
            id=entry["operator"],
            marks=[pytest.mark.paddle] if entry["framework"] == "paddle" else [],
        )
        for entry in WITH_ROWS
    ],
)
def test_a_row_that_kills_is_refused(entry: dict[str, Any]) -> None:
    sample = sample_of(entry)
    if entry["framework"] == "torch":
        with pytest.raises(GraphNetError):
            materialize(sample)
        return
    assert paddle
    # Guards of paddle compare the operands of each call, and paddle refuses some by itself; what
    # counts is that this process lives.
    with contextlib.suppress(Exception):
        materialize(sample)(**make_inputs(sample))


def test_the_file_lists_both_frameworks() -> None:
    assert {entry["framework"] for entry in KILLED} == {"torch", "paddle"}
    assert len(WITH_ROWS) >= 20
    assert all(entry["signal"].startswith("SIG") for entry in KILLED)
    assert [entry["operator"] for entry in KILLED] == sorted(
        (entry["operator"] for entry in KILLED),
        key=lambda name: ("paddle" not in name, name),
    )

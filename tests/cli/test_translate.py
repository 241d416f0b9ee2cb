"""`graphnet translate`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphnet_datasets import Sample, read_directory, write_table
from graphnet_datasets.cli.app import app
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.storage.table import read_table

X = Input("input", Value("float32", (2, 3)))
GOOD = Sample("test/relu", "torch", "cv", (X,), (Op("torch.relu", (Ref(0),)),), Ref(1))
BAD = Sample("test/noise", "torch", "cv", (X,), (Op("torch.randn_like", (Ref(0),)),), Ref(1))


@pytest.fixture
def both(tmp_path: Path) -> str:
    return str(write_table([GOOD, BAD], tmp_path / "both.parquet"))


@pytest.mark.paddle
def test_agreeing_graphs_are_written_and_missing_rules_are_named(tmp_path: Path, both: str) -> None:
    out = tmp_path / "paddle.parquet"
    result = CliRunner().invoke(app, ["translate", both, "--out", str(out), "--check"])
    assert result.exit_code == 3, result.output
    assert result.stdout.splitlines() == [
        "test/relu agrees at t = -inf",
        f"1 of 2 samples translated to paddle, in {out}",
    ]
    assert (
        "Op 0 (`torch.randn_like`) of `test/noise` cannot be translated to paddle. "
        "The operator has no rule."
    ) in result.stderr.splitlines()
    (row,) = read_table(out).to_pylist()
    assert (row["id"], row["framework"], row["num_ops"]) == ("test/relu", "paddle", 1)


@pytest.mark.paddle
def test_a_tolerance_that_is_not_met_leaves_the_sample_out(tmp_path: Path) -> None:
    wide = Input("input", Value("float32", (50, 1000)))
    op = Op("torch.std", (Ref(0), 1))  # its sums are added in another order
    spread = Sample("test/std", "torch", "cv", (wide,), (op,), Ref(1))
    path = write_table([spread], tmp_path / "one.parquet")
    arguments = ["translate", str(path), "--out", str(tmp_path / "out"), "--check"]
    result = CliRunner().invoke(app, [*arguments, "--tolerance", "-30"])
    assert result.exit_code == 1
    assert "test/std: it agrees only at t = " in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.torch
def test_a_directory_gets_a_folder_per_sample(tmp_path: Path, both: str) -> None:
    out = tmp_path / "tree"
    result = CliRunner().invoke(app, ["translate", both, "--out", str(out)])
    assert result.exit_code == 3
    (sample,) = read_directory(out / "test" / "relu")
    assert (sample.framework, [op.target for op in sample.ops]) == (
        "paddle", ["paddle._C_ops.relu"],
    )  # fmt: skip
    again = CliRunner().invoke(app, ["translate", both, "--out", str(out)])
    assert again.exit_code == 1
    assert f"`{out}` exists already. Choose another path for --out." in again.stderr


def test_another_framework_is_a_wrong_option(tmp_path: Path, both: str) -> None:
    arguments = ["translate", both, "--to", "jax", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "Expected `paddle`" in result.stderr

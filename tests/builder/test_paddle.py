"""Paddle's catalog, and a capture of one entry in the worker that has paddle alone."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from builder.__main__ import main
from builder.catalog import CatalogError, parse_line, read_catalog
from builder.starter import CATALOGS
from graphnet_datasets import Sample
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.storage.table import read_table
from tests.embedded import column_rows
from tests.frameworks.paddle.installed import paddle

pytestmark = pytest.mark.paddle

CATALOG = Path(__file__).parents[2] / "builder" / "paddle.txt"
LINE = (
    "paddle/a | other | paddle | perceptron | sizes=[4, 8, 2] | x=normal(2,4) | float32 | eval "
    "| x.0 | small"
)


def test_the_catalog_names_architectures_that_there_are() -> None:
    from builder.architectures_paddle import ARCHITECTURES

    entries = read_catalog(CATALOG)
    counts = Counter(entry.task for entry in entries)
    assert "paddle.txt" in CATALOGS
    assert len(entries) >= 60
    assert set(counts) == set(TASKS)
    assert {entry.library for entry in entries} == {"paddle"}
    assert {entry.builder for entry in entries} <= ARCHITECTURES.keys()


def test_every_architecture_is_in_the_catalog_or_can_be_built() -> None:
    from builder.architectures_paddle import ARCHITECTURES

    used = {entry.builder for entry in read_catalog(CATALOG)}
    unused = ARCHITECTURES.keys() - used
    assert all(isinstance(ARCHITECTURES[name](), paddle.nn.Layer) for name in unused)


def test_two_builds_give_equal_rows(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog.txt"
    catalog.write_text(LINE + "\n")
    written = []
    for name in ("first", "second"):
        options = ["--catalog", catalog, "--out", tmp_path / name, "--build", tmp_path / f"b{name}"]
        assert main(["starter", *map(str, options)]) == 0
        (path,) = (tmp_path / name).glob("other/*.parquet")
        written.append(path.read_bytes())
        (row,) = read_table(path).to_pylist()
    assert written[0] == written[1]
    sample = Sample.from_row(row)
    assert (sample.id, sample.framework, sample.is_dynamic) == ("paddle/a", "paddle", True)
    assert [each.value.shape for each in sample.inputs if each.role == "input"] == [("s0", 4)]
    assert sample.provenance.source == "graphnet-datasets/builder"
    assert sample.provenance.tags == ("small",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("perceptron", "perception", "`paddle/a` names the architecture `perception` (accepted: "),
        ("sizes=", "widths=", "`paddle/a` cannot be built: "),
        ("| x.0 |", "| x.1 |", "`paddle/a`: models of paddle are captured in float32, with no "),
        ("float32", "bfloat16", "`paddle/a`: models of paddle are captured in float32, with no "),
    ],
)
def test_uncapturable_models_are_refused(old: str, new: str, message: str) -> None:
    from builder.paddle_worker import build_layer

    with pytest.raises(CatalogError) as caught:
        build_layer(parse_line(LINE.replace(old, new)))
    assert str(caught.value).startswith(message)


def test_the_worker_needs_no_torch() -> None:
    code = "import sys; sys.modules['torch'] = None\nimport builder.paddle_worker"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_embedded_paddle_graphs_call_common_operators() -> None:
    """Operators that samples of the original GraphNet call, and plain networks do not."""
    called: set[str] = set()
    for row in column_rows("framework", "op_histogram"):
        if row["framework"] == "paddle":
            called |= {each["target"].rpartition(".")[2] for each in row["op_histogram"]}
    assert called >= {
        "equal", "arange", "greater_than", "not_equal", "minimum", "gather", "tile", "meshgrid",
        "one_hot", "topk", "where",
    }  # fmt: skip

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


@pytest.mark.slow
def test_every_architecture_is_in_the_catalog_or_can_be_built() -> None:
    from builder.architectures_paddle import ARCHITECTURES

    used = {entry.builder for entry in read_catalog(CATALOG)}
    unused = ARCHITECTURES.keys() - used
    assert all(isinstance(ARCHITECTURES[name](), paddle.nn.Layer) for name in unused)


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("line", "target", "model_name"),
    [
        (
            'function | function={"&": "paddle.nn.functional.log_loss"} epsilon=0.1 '
            "| _0=uniform(4,1) _1=uniform(4,1)", "paddle._C_ops.log_loss", "log_loss",
        ),
        (
            'listed | layer={"()": "function", "function": {"&": "paddle.concat"}} '
            "| _0=normal(2,3) _1=normal(2,3)", "paddle._C_ops.concat", "function",
        ),
        (
            'function | function={"&": "nn.functional.embedding"} is_narrow=True names=["weight"] '
            "| _0=ids(4; 8) _1=normal(8,2)", "paddle._C_ops.embedding", "embedding",
        ),
        ("nn.Softsign | | _0=normal(2,3)", "paddle._C_ops.softsign", "Softsign"),
    ],
)  # fmt: skip
def test_layers_and_functions_that_entries_name_by_path(
    line: str, target: str, model_name: str
) -> None:
    from builder.paddle_worker import build_layer, capture_entry, model_name_of, source_of

    entry = parse_line(f"paddle/a | other | paddle | {line} | float32 | eval | |")
    (sample,) = capture_entry(entry, build_layer(entry))
    assert target in [op.target for op in sample.ops]
    assert model_name_of(entry) == model_name
    assert source_of(entry)[0] in {"PaddlePaddle/Paddle", "graphnet-datasets/builder"}


def test_a_layer_of_a_dictionary_and_a_detector() -> None:
    from builder.architectures_paddle.functions import Detector, Function, Keyed

    x = paddle.ones([1, 2])
    keyed = Keyed(Function(lambda inputs: {"sum": inputs["a"] + inputs["b"]}), ["a", "b"], "sum")
    assert keyed(x, x).tolist() == [[2.0, 2.0]]
    backbone = Function(lambda inputs: [inputs["image"]])
    neck = Function(lambda maps: [2 * maps[0]])
    assert Detector(backbone)(x)[0].tolist() == [[1.0, 1.0]]
    head = Function(lambda maps, image: maps[0] - image)
    assert Detector(backbone, neck, head, "image")(x).tolist() == [[1.0, 1.0]]
    with_inputs = Function(lambda maps, inputs: maps[0] - inputs["image"])
    assert Detector(backbone, neck, with_inputs, "inputs")(x).tolist() == [[1.0, 1.0]]
    assert Detector(backbone, neck, Function(len))(x) == 1


def test_a_path_that_does_not_exist_is_refused() -> None:
    from builder.paddle_worker import build_layer

    entry = parse_line(
        "paddle/a | other | paddle | nn.NoLayer | | x=normal(2,3) | float32 | eval | |"
    )
    with pytest.raises(
        CatalogError, match=r"`paddle/a` names `nn.NoLayer`, which `paddle` does not"
    ):
        build_layer(entry)

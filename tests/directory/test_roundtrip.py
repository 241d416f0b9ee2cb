"""Directories: what is written is read back as it was."""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from graphnet_datasets.directory import read_directory, write_directory
from graphnet_datasets.errors import DatasetNotFoundError, SampleError, SourceError
from graphnet_datasets.sample import (
    Constraint,
    Input,
    Op,
    Provenance,
    Sample,
    Statistics,
    Symbol,
    Value,
)
from graphnet_datasets.sample.arguments import Graph, Ref
from tests.exact import exact
from tests.strategies import samples

RELU = Sample(
    "vision/relu",
    "torch",
    "cv",
    (Input("input", Value("float32", (2, 3)), "L_x_", "cpu", Statistics(0.5, 1.0)),),
    (Op("torch.relu", (Ref(0),), results=(Value("float32", (2, 3)),), module="layer.0"),),
    (Ref(1),),
    provenance=Provenance(source="timm", model_name="relu", tags=("license:mit",), license="mit"),
)
FILES = {
    "graph_hash.txt",
    "graph_net.json",
    "graphnet_datasets.json",
    "input_meta.py",
    "input_tensor_constraints.py",
    "model.py",
    "weight_meta.py",
}


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))]
)
@pytest.mark.parametrize(("root", "count"), [("samples", 142), ("paddle_samples", 59)])
def test_import_export_import_is_the_identity(
    upstream_samples: Path, tmp_path: Path, root: str, count: int, part: int
) -> None:
    folders = sorted(path.parent for path in (upstream_samples / root).rglob("model.py"))
    assert len(folders) == count
    for folder in folders[part::4]:
        [sample] = read_directory(folder)
        [again] = read_directory(write_directory(sample, tmp_path / "written"))
        assert exact(again) == exact(sample), folder
        assert folder.as_posix().endswith(f"{root}/{sample.id}")


@pytest.mark.slow
@settings(max_examples=60)
@given(samples())
def test_any_sample_reads_back_exactly(sample: Sample) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            written = write_directory(sample, Path(folder) / "sample")
        except SampleError:
            # The text of a paddle graph cannot hold every argument that a sample can.
            assert sample.framework == "paddle"
            return
        assert [exact(each) for each in read_directory(written)] == [exact(sample)]


def test_modules_in_bodies_read_back(tmp_path: Path) -> None:
    ops = (Op("torch.sin", (Ref(0),), module="field.0"), Op("torch.cos", (Ref(1),), module="field"))
    body = Graph(1, ops, (Ref(2),))
    branch = Op("torch.ops.higher_order.cond", (True, body, body, (Ref(0),)), module="field")
    first = Op("operator.getitem", (Ref(1), 0))
    vector = Input("input", Value("float32", (4,)))
    sample = Sample("test/body", "torch", "other", (vector,), (branch, first), (Ref(2),))
    write_directory(sample, tmp_path / "body")
    assert read_directory(tmp_path / "body") == [sample]


def test_the_files_are_those_of_the_layout(tmp_path: Path) -> None:
    written = write_directory(RELU, tmp_path / "deep" / "relu")
    assert {path.name for path in written.iterdir()} == FILES
    text = (written / "model.py").read_text()
    assert "def forward(\n        self,\n        L_x_: torch.Tensor,\n    ):" in text
    assert (written / "graph_hash.txt").read_text() == hashlib.sha256(text.encode()).hexdigest()
    assert "input_meta" not in (written / "input_meta.py").read_text()


def test_a_moved_directory_keeps_its_sample(tmp_path: Path) -> None:
    written = write_directory(RELU, tmp_path / "relu")
    moved = written.rename(tmp_path / "samples-of-others")
    assert read_directory(moved) == [RELU]


def test_graphs_of_one_model_stand_in_subgraphs(tmp_path: Path) -> None:
    parts = [
        dataclasses.replace(
            RELU,
            id=f"vision/relu/{index}",
            provenance=Provenance(parent_id="vision/relu", graph_index=index, graph_count=11),
        )
        for index in range(11)
    ]
    written = write_directory(parts, tmp_path / "relu")
    assert sorted(path.name for path in written.iterdir())[:3] == [
        "subgraph_0",
        "subgraph_1",
        "subgraph_10",
    ]
    assert read_directory(written) == parts
    assert read_directory(written / "subgraph_3") == [parts[3]]


def test_foreign_subgraphs_know_their_parent(tmp_path: Path) -> None:
    write_directory([RELU, RELU], tmp_path / "samples" / "timm" / "my relu")
    for path in tmp_path.rglob("graphnet_datasets.json"):
        path.unlink()
    found = read_directory(tmp_path / "samples" / "timm" / "my relu")
    assert [sample.id for sample in found] == [
        "timm/my_relu/subgraph_0",
        "timm/my_relu/subgraph_1",
    ]
    assert [
        (each.provenance.parent_id, each.provenance.graph_index, each.provenance.graph_count)
        for each in found
    ] == [("timm/my_relu", 0, 2), ("timm/my_relu", 1, 2)]


def test_without_the_extra_file_upstreams_files_still_read(tmp_path: Path) -> None:
    written = write_directory(RELU, tmp_path / "samples" / "relu")
    (written / "graphnet_datasets.json").unlink()
    [found] = read_directory(written)
    assert found.id == "relu"
    assert found.task == "cv"
    assert found.provenance.license == "mit"
    assert found.provenance.is_model_name_certain
    assert found.inputs == RELU.inputs
    assert found.ops == (Op("torch.relu", (Ref(0),)),)


def test_symbols_and_relations_are_written_for_upstream_too(tmp_path: Path) -> None:
    dynamic = dataclasses.replace(
        RELU,
        inputs=(
            Input("symbol", Value(), "s1"),
            Input("input", Value("int64", ("s0", "2*s1 + 1")), "L_x_", data=bytes(8 * 14)),
        ),
        ops=(Op("torch.relu", (Ref(1),)),),
        outputs=(Ref(2), Ref(0)),
        symbols=(Symbol("s0", 2, 1, 64), Symbol("s1", 3)),
        constraints=(
            Constraint("s0", "==", "s1 - 1"),
            Constraint("Mod(s1, 3)", "!=", "1"),
            Constraint("s0", "<=", "FloorDiv(s1, 1)"),
        ),
    )
    written = write_directory(dynamic, tmp_path / "dynamic")
    assert read_directory(written) == [dynamic]
    assert (written / "input_tensor_constraints.py").read_text() == (
        "from sympy import Eq, Max, Min, Mod, Ne, Symbol\n"
        "from torch.utils._sympy.functions import FloorDiv\n"
        "\n"
        "s0 = Symbol('s0')\n"
        "s1 = Symbol('s1')\n"
        "\n"
        "dynamic_dim_constraint_symbols = [s0, s1]\n"
        "dynamic_dim_constraint_symbol2example_value = {s0: 2, s1: 3}\n"
        "dynamic_dim_constraint_relations = [Eq(s0, s1 - 1), Ne(Mod(s1, 3), 1), "
        "s0 <= FloorDiv(s1, 1)]\n"
        "dynamic_dim_constraint_input_shapes = [\n"
        "    ([], 's1'),\n"
        "    ([s0, 2*s1 + 1], 'L_x_'),\n"
        "]\n"
    )
    (written / "graphnet_datasets.json").unlink()
    [found] = read_directory(written)
    assert found.symbols == (Symbol("s0", 2), Symbol("s1", 3))
    assert found.constraints == dynamic.constraints
    assert found.inputs == dynamic.inputs


def test_an_earlier_directory_is_replaced_whole(tmp_path: Path) -> None:
    write_directory([RELU, RELU], tmp_path / "relu")
    write_directory(RELU, tmp_path / "relu")
    assert {path.name for path in (tmp_path / "relu").iterdir()} == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["relu"]


def test_other_files_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SampleError) as caught:
        write_directory(RELU, tmp_path)
    assert str(caught.value) == (
        f"`{tmp_path}` is not a GraphNet directory, and its contents would be lost. "
        "Choose another path or remove it."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_files_of_others_in_the_directory_stay(tmp_path: Path) -> None:
    write_directory([RELU, RELU, RELU], tmp_path)
    for place in (".", "subgraph_1", "results"):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "notes.txt").write_text(place)
    other = write_directory(RELU, tmp_path / "other")
    write_directory([RELU], tmp_path)
    assert read_directory(tmp_path) == [RELU]
    assert read_directory(other) == [RELU]
    assert {path.name for path in tmp_path.iterdir()} == {
        "notes.txt", "subgraph_0", "subgraph_1", "results", "other",
    }  # fmt: skip
    assert [path.name for path in (tmp_path / "subgraph_1").iterdir()] == ["notes.txt"]
    assert (tmp_path / "results" / "notes.txt").read_text() == "results"
    write_directory(RELU, tmp_path)
    assert read_directory(tmp_path) == [RELU]
    assert not (tmp_path / "subgraph_0").exists()
    assert (tmp_path / "notes.txt").read_text() == "."


def test_a_failed_write_leaves_the_earlier_directory(tmp_path: Path) -> None:
    write_directory(RELU, tmp_path / "relu")
    broken = dataclasses.replace(RELU, ops=(Op("torch.Tensor.T", (1,)),))
    with pytest.raises(SampleError):
        write_directory(broken, tmp_path / "relu")
    assert read_directory(tmp_path / "relu") == [RELU]
    assert [path.name for path in tmp_path.iterdir()] == ["relu"]


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError) as caught:
        read_directory(tmp_path / "absent")
    assert str(caught.value) == (
        f"There is no directory `{tmp_path / 'absent'}`. Pass the directory of a GraphNet sample, "
        "which contains `model.py` and `graph_net.json`."
    )
    with pytest.raises(DatasetNotFoundError) as caught:
        read_directory(tmp_path)
    assert str(caught.value) == (
        f"The directory `{tmp_path}` has no GraphNet sample: it has neither `model.py` nor a "
        "folder `subgraph_0`. Choose another directory."
    )
    for name in ("model.py", "weight_meta.py", "graph_net.json"):
        written = write_directory(RELU, tmp_path / name.partition(".")[0])
        (written / name).unlink()
        with pytest.raises(SourceError) as missing:
            read_directory(written)
        assert str(missing.value) == (
            f"`{written / name}` is missing. A GraphNet sample has graph_net.json, model.py, "
            "weight_meta.py; complete the directory or leave the sample out."
        )

"""Kernels that compilers generate, collected in separate processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets import Sample, load_dataset
from graphnet_datasets.errors import CompilerError, DatasetExistsError, DatasetNotFoundError
from graphnet_datasets.isolation import Limits
from graphnet_datasets.kernels import KERNEL_LIMITS, collect_kernels
from graphnet_datasets.kernels.inductor import generate
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema.tables import KERNELS
from graphnet_datasets.storage.staging import Staging
from graphnet_datasets.storage.table import write_table
from graphnet_datasets.transforms.subgraphs import subgraph_hash

X = Input("input", Value("float32", (16, 16)))


def chain(name: str, *ops: Op) -> Sample:
    return Sample(name, "torch", "other", (X,), ops, (Ref(len(ops)),))


FUSED = chain("test/fused", Op("torch.exp", (Ref(0),)), Op("torch.mul", (Ref(1), 2)))
SORTED = chain("test/sorted", Op("torch.Tensor.argsort", (Ref(0),)))


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("islpy", reason="the extra `tc` is not installed")
    out = tmp_path_factory.mktemp("kernels") / "mine"
    return collect_kernels([FUSED, SORTED], out, compiler="tc", jobs=1)


@pytest.mark.slow
def test_rows_contain_the_text_and_its_origin(collected: Any) -> None:
    (row,) = load_dataset(collected.out, "kernels", split="all")
    assert row["subgraph_hash"] == subgraph_hash(FUSED)
    assert (row["sample_id"], row["compiler"], row["language"]) == ("test/fused", "tc", "c")
    assert row["entry"] in row["source"] and "expf" in row["source"]
    assert row["operators"] == ["aten.exp.default", "aten.mul.Tensor"]
    assert json.loads(row["launch"])["threads"] == 1
    assert row["latency_ms"] > 0 and row["compile_time_s"] > 0
    assert set(row) == set(KERNELS.schema.names)


@pytest.mark.slow
def test_graphs_without_kernels_are_named(collected: Any) -> None:
    (refused,) = collected.refused
    assert refused.id == "test/sorted" and refused.reason
    assert "1 kernel written to" in collected.summary()
    lines = collected.report_path.read_text().splitlines()
    assert [json.loads(line)["num_kernels"] for line in lines] == [1, 0]


@pytest.mark.slow
def test_slow_jobs_are_ended(tmp_path: Path) -> None:
    pytest.importorskip("islpy", reason="the extra `tc` is not installed")
    limits = Limits(
        phase_timeouts_s={"compile": 0.1, "run": 1.0}, memory_bytes=KERNEL_LIMITS.memory_bytes
    )
    done = collect_kernels([FUSED], tmp_path / "mine", compiler="tc", jobs=1, limits=limits)
    assert done.out is None and done.refused[0].reason.startswith("its process ended")
    assert not (tmp_path / "mine").exists()


def test_a_collection_that_was_stopped_while_tidying_is_finished(tmp_path: Path) -> None:
    """The dataset is in its place already, and its hidden directory not gone yet."""
    staging = Staging(tmp_path / "mine", "kernels")
    staging.parts.mkdir(parents=True)
    (staging.parts / "one.arrow").write_bytes(b"a part")
    staged = staging.new_place()
    staged.mkdir()
    lines = [{"id": "test/fused", "num_kernels": 2}, {"id": "test/sorted", "reason": "too large"}]
    (staged / "kernels-report.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    staging.publish(staged)
    done = collect_kernels([FUSED, SORTED], tmp_path / "mine", compiler="inductor", jobs=1)
    assert (done.num_kernels, done.num_resumed) == (2, 2)
    assert [each.reason for each in done.refused] == ["too large"]
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(DatasetExistsError, match=r"exists\. Choose another path"):
        collect_kernels([FUSED], tmp_path / "mine", compiler="inductor", jobs=1)


@pytest.mark.slow
def test_inductors_kernels_know_their_operators() -> None:
    """The one compilation by TorchInductor here: C++ of two operators."""
    generation = generate(FUSED, {}, "cpu")
    (kernel,) = generation.kernels
    assert (kernel.language, kernel.ops) == ("c++", (0, 1))
    assert kernel.operators == ("torch.exp", "torch.mul")
    assert "exp()" in kernel.source and kernel.launch["types"] == ["const float*", "float*"]
    assert generation.library_calls == () and generation.run()[0].shape == (16, 16)


@pytest.mark.gpu
def test_inductors_kernels_for_a_gpu_are_triton() -> None:
    generation = generate(FUSED, {}, "cuda")
    (kernel,) = generation.kernels
    assert (kernel.language, kernel.ops) == ("triton", (0, 1))
    assert "@triton.jit" in kernel.source and ".run(" in kernel.launch["calls"][0]


def test_errors_of_bad_calls_name_the_problem(tmp_path: Path) -> None:
    with pytest.raises(CompilerError, match="Generated kernels cannot be collected from `eager`"):
        collect_kernels([FUSED], tmp_path / "mine", compiler="eager")
    with pytest.raises(CompilerError, match="`magic`"):
        collect_kernels([FUSED], tmp_path / "mine", options={"magic": 1})
    table = tmp_path / "table.parquet"
    write_table([FUSED], table)
    with pytest.raises(DatasetExistsError):
        collect_kernels([FUSED], table)
    paddle = Sample("test/paddle", "paddle", "other", (X,), (), (Ref(0),))
    with pytest.raises(DatasetNotFoundError, match="No sample of"):
        collect_kernels([paddle], tmp_path / "mine")

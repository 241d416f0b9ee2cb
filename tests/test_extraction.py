"""From a live model to files, and back."""

from __future__ import annotations

import multiprocessing
import resource
from pathlib import Path

import pytest
import torch
from torch import nn

from graphnet_datasets import extract, extract_export, read_directory, without_weights
from graphnet_datasets.errors import CaptureError, DiskError
from graphnet_datasets.extraction import _Record
from graphnet_datasets.sample import Sample
from graphnet_datasets.storage.table import read_table


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.second(x)


def test_a_capture_is_written_as_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "graphs.parquet"
    module = extract(
        name="test/linear", task="nlp", out=path, source="tests", license="Apache-2.0"
    )(nn.Linear(4, 2))
    assert not path.exists(), "nothing is written before the first call"
    module(torch.ones(1, 4))
    (row,) = read_table(path).to_pylist()
    assert Sample.from_row(row) == module.samples[0]
    assert (row["task"], row["source"], row["license"]) == ("nlp", "tests", "Apache-2.0")


def test_a_capture_is_written_as_a_graphnet_directory(tmp_path: Path) -> None:
    module = extract(name="test/linear", out=tmp_path / "linear")(nn.Linear(4, 2))
    module(torch.ones(1, 4))
    assert {path.name for path in (tmp_path / "linear").iterdir()} >= {
        "model.py",
        "weight_meta.py",
        "graph_net.json",
    }
    (read,) = read_directory(tmp_path / "linear")
    (captured,) = module.samples
    assert read.ops[0].target == captured.ops[0].target
    assert [each.role for each in read.inputs] == [each.role for each in captured.inputs]
    assert [each.value for each in read.inputs] == [each.value for each in captured.inputs]


def test_a_capture_that_cannot_be_written_keeps_its_samples(tmp_path: Path) -> None:
    module = extract(name="test/linear", out=tmp_path / "linear.parquet")(nn.Linear(4, 2))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(DiskError, match=r"exceed the size limit of files .* Raise the limit"):
            module(torch.ones(1, 4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(module.samples) == 1
    assert not any(tmp_path.iterdir())


def test_several_graphs_share_a_directory(tmp_path: Path) -> None:
    module = extract(name="test/broken", out=tmp_path / "broken")(Broken())
    module(torch.ones(1, 4))
    assert len(module.samples) == 2
    read = read_directory(tmp_path / "broken")
    assert [[op.target for op in sample.ops] for sample in read] == [
        [op.target for op in sample.ops] for sample in module.samples
    ]


def test_a_file_in_the_place_of_a_directory_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.write_text("mine")
    module = extract(name="test/linear", out=path)(nn.Linear(4, 2))
    with pytest.raises(CaptureError) as caught:
        module(torch.ones(1, 4))
    assert str(caught.value) == (
        f"`{path}` is a file, so no sample directory can be written there. Choose another path, or "
        "one that ends in `.parquet`."
    )
    assert path.read_text() == "mine"


def test_an_export_is_written_too(tmp_path: Path) -> None:
    path = tmp_path / "graphs.parquet"
    sample = extract_export(nn.ReLU(), (torch.ones(2),), name="test/relu", out=path)
    (row,) = read_table(path).to_pylist()
    assert Sample.from_row(row) == sample


def test_a_model_without_weights_has_statistics_all_the_same() -> None:
    with without_weights():
        module = extract(name="test/light")(nn.Linear(4, 2))
    module(torch.ones(1, 4))
    statistics = [each.statistics for each in module.samples[0].inputs if each.role == "parameter"]
    assert all(each is not None and each.std and not each.is_measured for each in statistics)


def write_samples(name: str, path: Path) -> None:
    for number in range(5):
        record = _Record(f"test/{name}-{number}", path)
        record.name([Sample(f"test/{name}-{number}", "torch", "other", (), (), ())])
        record.write()


def test_processes_that_write_to_the_same_file_lose_no_sample(tmp_path: Path) -> None:
    path = tmp_path / "graphs.parquet"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=write_samples, args=(name, path)) for name in "abcd"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(read_table(path)) == 20
    assert [file.name for file in tmp_path.iterdir()] == ["graphs.parquet"]

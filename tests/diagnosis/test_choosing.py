"""The rule that chooses the subset of a diagnosis."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from graphnet_datasets.diagnosis.choosing import OPS_LIMITS, Subset, choose_subset
from graphnet_datasets.errors import DatasetNotFoundError, RunError
from graphnet_datasets.storage.table import write_table
from tests.tables import chain

TASKS = ("audio", "cv", "nlp")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    sizes = (2, 3, 4, 30, 31, 32, 100, 101, 102, OPS_LIMITS[-1] + 1)
    samples = [chain(f"{task}/chain-{size}", size, task) for task in TASKS for size in sizes]
    return str(write_table(samples, tmp_path_factory.mktemp("dataset") / "samples.parquet"))


@pytest.mark.parametrize("count", [3, 9, 18])
def test_tasks_and_sizes_are_balanced(dataset: str, count: int) -> None:
    subset = choose_subset("inductor", count, dataset=dataset)
    assert (len(set(subset.ids)), subset.num_tasks) == (count, 3)
    tasks = Counter(name.partition("/")[0] for name in subset.ids)
    assert set(tasks.values()) == {count // 3}
    num_ops = [int(name.rpartition("-")[2]) for name in subset.ids]
    sizes = Counter(sum(number > limit for limit in OPS_LIMITS) for number in num_ops)
    assert sizes == {size: count // 3 for size in range(3)}  # none above the last limit


def test_large_graphs_represent_a_dataset_without_small_ones(tmp_path: Path) -> None:
    samples = [chain("cv/large", OPS_LIMITS[-1] + 1, "cv")]
    path = write_table(samples, tmp_path / "large.parquet")
    assert choose_subset("inductor", 5, dataset=str(path)).ids == (samples[0].id,)
    with pytest.raises(DatasetNotFoundError, match="matches `--framework paddle`"):
        choose_subset("paddle-to-static", 5, framework="paddle", dataset=str(path))


def test_each_prefix_has_graphs_parts_and_bugs() -> None:
    subset = Subset(("g1", "g2", "g3", "g4", "g5"), ("p1",), ("b1", "b2"), 1, 5)
    assert subset.ids == ("g1", "g2", "p1", "g3", "g4", "b1", "g5", "b2")
    assert str(subset) == "5 whole graphs of 1 task, 1 frequent part, 2 known bugs"


@pytest.mark.slow
def test_the_embedded_dataset_has_bugs_of_a_compiler() -> None:
    own = choose_subset("tvm", 24)
    assert (len(own.graphs), len(own.parts), own.num_tasks) == (16, 4, 6)
    assert all(name.startswith("compiler_bugs/tvm/") for name in own.bugs)
    # A compiler of one's own is tried on bugs of several compilers.
    other = choose_subset("mine.py:Mine", 24)
    assert len({name.split("/")[1] for name in other.bugs}) == 4
    assert other.graphs == own.graphs


def test_no_sample_is_refused(dataset: str) -> None:
    with pytest.raises(RunError, match="The number of samples is 0, but at least 1 is needed"):
        choose_subset("inductor", 0, dataset=dataset)

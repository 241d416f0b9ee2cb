"""The pool of a Ray cluster: what `LocalPool` does, on its nodes, and lost workers."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.errors import MissingExtraError
from graphnet_datasets.isolation import Ending, Limits, PoolJob, Work
from graphnet_datasets.isolation.ray_pool import RayPool
from graphnet_datasets.storage.importing import import_directories
from graphnet_datasets.storage.transforming import transform_dataset
from graphnet_datasets.transforms.registry import Step
from tests.clusters import two_nodes
from tests.storage.importing.test_importer import plant, rows_of
from tests.tables import chain

WORK = Work("tests.isolation.pool_jobs", ("only",), Limits(default_timeout_s=10_000))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_nodes() as made:
        yield made


@pytest.fixture
def pool(cluster: Any) -> Iterator[RayPool]:  # noqa: ARG001 - it must run
    with contextlib.closing(RayPool(WORK)) as made:
        yield made


@pytest.fixture
def unconfined_pool(cluster: Any) -> Iterator[RayPool]:  # noqa: ARG001 - it must run
    """A pool whose jobs can kill its workers, as a failing node would; confined jobs cannot."""
    with contextlib.closing(RayPool(dataclasses.replace(WORK, is_confined=False))) as pool:
        yield pool


def square(number: int) -> PoolJob:
    return PoolJob(f"square {number}", {"do": "square", "number": number})


@pytest.mark.slow
def test_every_job_comes_once_and_a_failure_costs_nothing_else(pool: RayPool) -> None:
    jobs = [*map(square, range(6)), PoolJob("a", {"do": "raise"}), PoolJob("b", {"do": "crash"})]
    finished = {each.job.name: each for each in pool.run(iter(jobs))}
    assert len(finished) == 8
    assert [finished[f"square {n}"].result for n in range(6)] == [
        str(n**2).encode() for n in range(6)
    ]
    assert finished["a"].reason == "error in only: ValueError not a number"
    assert finished["b"].outcome.ending is Ending.CRASH
    assert list(pool.run([])) == []
    (later,) = pool.run([square(7)])  # by the same workers, which hold all processors
    assert later.result == b"49"


@pytest.mark.slow
def test_a_reader_that_stops_leaves_a_pool_that_works(pool: RayPool) -> None:
    results = pool.run([square(1), PoolJob("sleeps", {"do": "sleep"})])
    assert next(results).result == b"1"
    results.close()
    assert {each.result for each in pool.run(map(square, range(3)))} == {b"0", b"1", b"4"}


@pytest.mark.slow
@pytest.mark.parametrize("always", [False, True])
def test_a_lost_worker_is_replaced_and_its_job_run_once_more(
    unconfined_pool: RayPool, tmp_path: Path, always: bool
) -> None:
    payload = {"do": "kill_worker", "marker": str(tmp_path / "killed"), "always": always}
    jobs = [PoolJob("killer", payload), *map(square, range(4))]
    finished = {result.job.name: result for result in unconfined_pool.run(jobs)}
    assert (tmp_path / "killed").exists()
    killer = finished.pop("killer")
    assert all(each.is_success for each in finished.values())
    if always:
        assert killer.result is None
        assert killer.outcome.error is not None
        assert killer.outcome.error["type"] == "WorkerLost"
        assert killer.reason.startswith(
            "crash in only: WorkerLost 2 workers were lost while they ran this job ("
        )
    else:
        assert killer.result == b"alive"


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_an_import_on_the_cluster_gives_the_same_dataset(tmp_path: Path) -> None:
    tree = plant(tmp_path / "samples", *(f"net/{number}" for number in range(12)))
    (tree / "net/3/model.py").write_text("raise\n")
    there = import_directories(tree, tmp_path / "there", executor="ray")
    here = import_directories(tree, tmp_path / "here")
    assert there.outcomes == here.outcomes
    assert rows_of(tmp_path / "there") == rows_of(tmp_path / "here")
    assert len(there.failures) == 1


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.usefixtures("cluster")
def test_a_transform_on_the_cluster_gives_the_same_dataset(tmp_path: Path) -> None:
    samples = [chain(f"net/{size}", size) for size in range(1, 5)]
    steps = [Step("parts", {"config": "sole_op"})]
    there = transform_dataset(samples, steps, tmp_path / "there", executor="ray")
    here = transform_dataset(samples, steps, tmp_path / "here", jobs=1)
    assert there.outcomes == here.outcomes
    assert rows_of(tmp_path / "there") == rows_of(tmp_path / "here")


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"^Working on a Ray cluster needs the package"):
        RayPool(WORK)

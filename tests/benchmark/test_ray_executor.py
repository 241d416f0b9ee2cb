"""Runs on a Ray cluster of this machine, which has two nodes with one processor each."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.benchmark import read_runs, run
from graphnet_datasets.benchmark.judging.output_files import OutputStore
from graphnet_datasets.errors import CompilerError, MissingExtraError, RunError
from graphnet_datasets.isolation import descendants
from tests.benchmark.samples import BROKEN, LINEAR, make_sample, quick
from tests.clusters import SMALL, two_nodes
from tests.waiting import wait_until

SAMPLES = [make_sample(f"relu{index}", *LINEAR.ops, inputs=LINEAR.inputs) for index in range(4)]
KILLERS = "tests.benchmark.worker_killers"


@pytest.fixture(scope="module")
def killed_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ray") / "killed"


@pytest.fixture(scope="module")
def cluster(killed_file: Path) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_KILLED_FILE", str(killed_file))
        patch.setenv("GRAPHNET_DATASETS_CONFINED", "1")  # candidates here kill their runner
        with two_nodes() as made:
            yield made


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_jobs_run_on_all_nodes_and_are_resumed_like_local_ones(tmp_path: Path) -> None:
    compilers = ["eager", "tests.candidates:run_raises"]
    first = run(SAMPLES, compilers, executor="ray", out=tmp_path, settings=quick())
    assert first["sample_id"] == [sample.id for sample in SAMPLES for _ in compilers]
    assert first["status"] == ["ok", "run_failed"] * 4
    assert first["min_t"] == [-math.inf, None] * 4
    assert first["num_attempts"] == [1] * 8
    failed = [row["run_id"] for row in first.to_list() if row["status"] != "ok"]
    assert sorted(path.stem for path in (tmp_path / "logs").iterdir()) == sorted(failed)

    # The same records, asked for without Ray, are not made again; and the other way round.
    local = run([*SAMPLES, BROKEN], compilers, out=tmp_path, settings=quick())
    assert local.to_list()[:8] == first.to_list()
    assert local["status"][8:] == ["baseline_failed"] * 2
    again = run([*SAMPLES, BROKEN], compilers, executor="ray", out=tmp_path, settings=quick())
    assert again.to_list() == local.to_list()
    assert read_runs(tmp_path).num_rows == 10


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_lost_worker_is_replaced_and_its_sample_run_once_more(
    tmp_path: Path, killed_file: Path
) -> None:
    killed_file.unlink(missing_ok=True)
    runs = run(
        SAMPLES[:2], f"{KILLERS}:kills_its_runner_once", executor="ray", out=tmp_path,
        keep_outputs=True, settings=quick(),
    )  # fmt: skip
    assert killed_file.exists()
    assert runs["status"] == ["ok", "ok"]
    assert sorted(runs["num_attempts"]) == [1, 2]
    assert all(run_id in OutputStore(tmp_path) for run_id in runs["run_id"])


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_sample_that_loses_two_workers_is_recorded_and_the_others_run(tmp_path: Path) -> None:
    lost = run(
        LINEAR, f"{KILLERS}:kills_its_runner", executor="ray", out=tmp_path, settings=quick()
    )[0]
    assert (lost["status"], lost["reason"], lost["phase"]) == ("harness_failed", "crash", "load")
    assert (lost["error_type"], lost["num_attempts"]) == ("WorkerLost", 2)
    assert lost["error_message"].startswith(
        "2 workers were lost while they ran this sample, the last on the node `"
    )
    assert lost["speedup"] is None
    after = run(LINEAR, "eager", executor="ray", out=tmp_path, settings=quick())
    assert after["status"] == ["ok"]


@pytest.mark.slow
def test_the_job_of_a_lost_node_is_run_on_another(
    cluster: Any, tmp_path: Path, killed_file: Path
) -> None:
    killed_file.unlink(missing_ok=True)
    (node,) = cluster.worker_nodes

    def take_node_away() -> None:
        wait_until(lambda: len([*killed_file.parent.glob("killed.*")]) == 2)  # both are at work
        cluster.remove_node(node, allow_graceful=False)
        killed_file.touch()

    thread = threading.Thread(target=take_node_away)
    thread.start()
    try:
        runs = run(
            SAMPLES[:3], f"{KILLERS}:waits_for_the_loss_of_a_node", executor="ray", out=tmp_path,
            settings=quick(),
        )  # fmt: skip
    finally:
        thread.join()
        if node not in cluster.worker_nodes:
            cluster.add_node(**SMALL)
    assert runs["status"] == ["ok"] * 3
    assert sorted(runs["num_attempts"]) == [1, 1, 2]


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_runs_that_the_cluster_cannot_execute_are_refused_first(tmp_path: Path) -> None:
    with pytest.raises(CompilerError, match="nowhere"):
        run(LINEAR, "nowhere:at_all", executor="ray", out=tmp_path, settings=quick())
    with pytest.raises(RunError) as caught:
        run(LINEAR, "eager", executor="ray", out=tmp_path, settings=quick(num_threads=64))
    assert str(caught.value) == (
        "None of the 2 nodes of the Ray cluster offers 64 CPUs. Add nodes, or choose another "
        "`device` or fewer `threads`."
    )
    with pytest.raises(RunError) as caught:
        run(LINEAR, "eager", "cuda", executor="ray", out=tmp_path, settings=quick())
    assert str(caught.value).startswith("None of the 2 nodes of the Ray cluster offers a GPU.")
    wait_until(lambda: not _servers_of_ray())  # workers end after the run has let go of them


def _servers_of_ray() -> list[bytes]:
    """Return the command lines of the fork servers that workers of the cluster started.

    Servers that this process started for earlier runs are kept, so they do not count.
    """
    lines = []
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if f"PPid:\t{os.getpid()}\n" not in Path(f"/proc/{pid}/status").read_text():
                lines.append(Path(f"/proc/{pid}/cmdline").read_bytes())
    return [line for line in lines if b"graphnet_datasets" in line]


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError) as caught:
        run(LINEAR, "eager", executor="ray", out=tmp_path, settings=quick())
    assert str(caught.value) == (
        "Running on a Ray cluster needs the package `ray`, which is not installed. Install it "
        "with `pip install 'graphnet-datasets[ray]'`."
    )


@pytest.mark.parametrize("device", ["cuda:1", "cuda:0,cuda:1"])
def test_a_single_gpu_cannot_be_named(device: str, tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        run(LINEAR, "eager", device, executor="ray", out=tmp_path, settings=quick())
    assert str(caught.value) == (
        f"On a Ray cluster the device must be `cpu` or `cuda`, not `{device}`, because Ray assigns "
        "nodes and GPUs."
    )

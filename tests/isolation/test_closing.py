"""A server that one thread closes while another waits for it: nobody waits for a time limit."""

from __future__ import annotations

import concurrent.futures
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphnet_datasets.errors import RunError
from graphnet_datasets.isolation import (
    Ending,
    ForkServer,
    Limits,
    LocalPool,
    Outcome,
    PoolJob,
    Work,
    descendants,
)

JOBS = "tests.isolation.pool_jobs"
NEVER = Limits(default_timeout_s=10_000)
"""Limits that no test reaches."""
Threads = concurrent.futures.ThreadPoolExecutor


def sleep_in(server: ForkServer, on_start: Callable[[], None]) -> Outcome:
    with server.directory() as directory:
        return server.run(
            {"do": "sleep"}, directory, phases=("only",), limits=NEVER, on_start=on_start
        )


@pytest.fixture
def threads() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    made = Threads(1)
    yield made
    made.shutdown(wait=False, cancel_futures=True)


def test_a_job_ends_as_a_crash_when_another_thread_closes_its_server(threads: Threads) -> None:
    with ForkServer(JOBS) as server:
        for _ in range(8):  # The order in which the threads wake up differs between repetitions.
            has_started = threading.Event()
            running = threads.submit(sleep_in, server, has_started.set)
            while not has_started.wait(0.01):
                assert not running.done()
            server.close()
            outcome = running.result()
            assert outcome.ending is Ending.CRASH
            assert outcome.error == {
                "type": "",
                "message": "The worker process and its server were lost.",
            }
            assert server.pid is None
        assert server.num_starts == 8


def test_a_server_that_still_imports_is_ended_at_once(threads: Threads, tmp_path: Path) -> None:
    (tmp_path / "slow_import.py").write_text("import time\ntime.sleep(10_000)\n")
    with ForkServer("slow_import", environment={"PYTHONPATH": str(tmp_path)}) as server:
        starting = threads.submit(server.start)
        while (pid := server.pid) is None:
            time.sleep(0.005)
        server.close()
        with pytest.raises(RunError) as caught:
            starting.result()
    assert str(caught.value) == "The worker process `slow_import` was closed as it started."
    assert not Path(f"/proc/{pid}").exists()


def test_closing_a_pool_from_another_thread_ends_its_jobs(threads: Threads) -> None:
    before = set(descendants(os.getpid()))
    pool = LocalPool(Work(JOBS, ("only",), NEVER), 2)
    running = threads.submit(list, pool.run([PoolJob("a", {"do": "sleep"})] * 5))
    while len(set(descendants(os.getpid())) - before) < 4:  # two servers with a job each
        time.sleep(0.005)
    pool.close()
    said = "The pool of workers is closed. Create another pool for more jobs."
    with pytest.raises(RunError, match=said):
        running.result()
    assert set(descendants(os.getpid())) <= before
    assert not [each for each in threading.enumerate() if "(serve)" in each.name]
    with pytest.raises(RunError, match=said):
        list(pool.run([PoolJob("a", {"do": "square", "number": 2})]))

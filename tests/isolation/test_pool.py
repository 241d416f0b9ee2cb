"""Many jobs at a time on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphnet_datasets.isolation import Ending, Limits, LocalPool, PoolJob, Work, descendants
from tests.waiting import wait_until

WORK = Work("tests.isolation.pool_jobs", ("only",), Limits(default_timeout_s=10_000))


@pytest.fixture
def pool() -> Iterator[LocalPool]:
    with contextlib.closing(LocalPool(WORK, 2)) as made:
        yield made


def squares(numbers: range) -> Iterator[PoolJob]:
    for number in numbers:
        yield PoolJob(f"square {number}", {"do": "square", "number": number})


def test_every_job_comes_once_with_its_result(pool: LocalPool) -> None:
    finished = list(pool.run(squares(range(20))))
    assert {each.job.payload["number"]: each.result for each in finished} == {
        number: str(number**2).encode() for number in range(20)
    }
    assert all(each.is_success and each.reason == "" for each in finished)
    assert len({each.outcome.merged()["pid"] for each in finished}) == 20
    assert list(pool.run([])) == []


def test_a_job_that_fails_costs_nothing_but_itself(pool: LocalPool) -> None:
    jobs = [PoolJob("a", {"do": "raise"}), PoolJob("b", {"do": "crash"}), *squares(range(2))]
    finished = {each.job.name: each for each in pool.run(jobs)}
    assert finished["a"].reason == "error in only: ValueError not a number"
    assert finished["b"].outcome.ending is Ending.CRASH
    assert finished["a"].result is finished["b"].result is None
    assert finished["square 1"].result == b"1"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_result_that_is_no_regular_file_is_not_read(
    kind: str, pool: LocalPool, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    job = PoolJob("a", {"do": "replace_result", "kind": kind, "target": str(tmp_path / "secret")})
    (finished,) = pool.run([job])
    assert finished.is_success
    assert finished.result is None


def test_a_result_that_is_too_large_is_not_read() -> None:
    """A sparse file takes no space on the disk, but its size in the memory of the reader."""
    limits = Limits(default_timeout_s=10_000, result_bytes=1000)
    with contextlib.closing(LocalPool(dataclasses.replace(WORK, limits=limits), 1)) as pool:
        sizes = (1000, 2**35)
        jobs = [PoolJob("a", {"do": "large_result", "size": size}) for size in sizes]
        fitting, large = pool.run(jobs)
    assert fitting.result == bytes(1000)
    assert large.result is None
    assert large.reason == (
        "protocol in only: ProtocolError The job's result takes 34,359,738,368 bytes; at most "
        "1,000 are accepted."
    )


def test_jobs_are_taken_only_as_results_are_fetched(pool: LocalPool) -> None:
    taken = []

    def watched() -> Iterator[PoolJob]:
        for job in squares(range(100)):
            taken.append(job)
            yield job

    results = pool.run(watched())
    next(results)
    wait_until(lambda: len(taken) >= 1 + 4 + 2)  # fetched, kept for the reader, done
    assert len(taken) <= 1 + 4 + 2 + 2  # and at work
    results.close()


def test_a_reader_that_stops_leaves_nothing_running(pool: LocalPool) -> None:
    before = set(descendants(os.getpid()))
    jobs = [*squares(range(1)), PoolJob("sleeps", {"do": "sleep"})]
    results = pool.run(jobs)
    assert next(results).result == b"0"
    results.close()
    wait_until(lambda: set(descendants(os.getpid())) <= before)


def test_an_error_of_the_job_iterator_is_raised(pool: LocalPool) -> None:
    def broken() -> Iterator[PoolJob]:
        yield from squares(range(1))
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        list(pool.run(broken()))

"""Rows handed to workers one by one: parts stay, and what has changed is done again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from graphnet_datasets.isolation import Ending, Finished, Outcome, PoolJob
from graphnet_datasets.storage.collection import Collection
from graphnet_datasets.storage.job_files import read_job
from graphnet_datasets.storage.parts import PartReader, encode_part
from graphnet_datasets.storage.staging import Staging

SCHEMA = pa.schema([("text", pa.string())])
NOTHING = {"num_rows": 0}
ROWS = [{"id": name, "num_ops": number} for number, name in enumerate("abc")]


def ended(ending: Ending) -> Outcome:
    return Outcome(ending, "export", [], None, -11, "it fell", 7, 0.0, {}, 0, 0)


class Here:
    """A pool without processes: each job makes a part of one row, and `dies` do not return."""

    def __init__(self, dies: str = "", stops_after: int | None = None) -> None:
        self.dies, self.stops_after = dies, stops_after
        self.done: list[str] = []

    def run(self, jobs: Iterable[PoolJob]) -> Iterator[Finished]:
        for job in jobs:
            if len(self.done) == self.stops_after:
                raise KeyboardInterrupt
            row, told = read_job(job.payload["row"])
            self.done.append(job.name)
            if job.name in self.dies:
                yield Finished(job, ended(Ending.CRASH), None)
                continue
            notes = {"key": told["key"], "digest": told["digest"], "id": row["id"], "num_rows": 1}
            text = pa.table({"text": [f"{row['id']} with {told['with']}"]}, schema=SCHEMA)
            yield Finished(job, ended(Ending.FINISHED), encode_part([text], notes, SCHEMA))

    def close(self) -> None:
        """Nothing to end."""


@pytest.fixture
def staging(tmp_path: Path) -> Iterator[Staging]:
    made = Staging(tmp_path / "mine", "test")
    made.parts.mkdir(parents=True)
    yield made


def collect(
    staging: Staging, pool: Here, rows: list[dict[str, Any]] = ROWS, key: str = "1"
) -> Collection:
    made = Collection(staging, {"key": key, "with": key * 2}, SCHEMA, NOTHING)
    made.fill(rows, pool, lambda _done, _total: None)
    return made


def texts(collection: Collection, rows: list[dict[str, Any]] = ROWS) -> list[str]:
    reader = PartReader()
    return [
        reader.row(path, 0)["text"][0].as_py()
        for note, path in collection.parts_of(rows)
        if note["num_rows"]
    ]


def test_each_row_has_a_part_in_the_order_of_rows(staging: Staging) -> None:
    pool = Here()
    made = collect(staging, pool)
    assert pool.done == ["a", "b", "c"] and made.num_resumed == 0
    assert texts(made) == ["a with 11", "b with 11", "c with 11"]
    assert texts(made, [ROWS[2], ROWS[0], ROWS[2]]) == ["c with 11", "a with 11"]
    assert not list((staging.directory / "jobs").iterdir())


def test_it_goes_on_after_a_stop(staging: Staging) -> None:
    with pytest.raises(KeyboardInterrupt):
        collect(staging, Here(stops_after=2))
    counted: list[tuple[int, int]] = []
    pool = Here()
    made = Collection(staging, {"key": "1", "with": "11"}, SCHEMA, NOTHING)
    made.fill(ROWS, pool, lambda done, total: counted.append((done, total)))
    assert pool.done == ["c"] and made.num_resumed == 2
    assert counted == [(2, 3), (3, 3)] and len(texts(made)) == 3


def test_another_job_a_changed_row_and_broken_parts_are_done_again(staging: Staging) -> None:
    collect(staging, Here())
    (staging.parts / "cut.arrow").write_bytes(b"half a part")
    changed = [{**ROWS[0], "num_ops": 99}, *ROWS[1:]]
    pool = Here()
    collect(staging, pool, changed)
    assert pool.done == ["a"] and not (staging.parts / "cut.arrow").exists()
    pool = Here()
    assert texts(collect(staging, pool, key="2")) == ["a with 22", "b with 22", "c with 22"]
    assert pool.done == ["a", "b", "c"]
    assert len(list(staging.parts.iterdir())) == 3  # those of the other job are gone


def test_a_process_that_does_not_return_leaves_a_reason_and_is_not_tried_again(
    staging: Staging,
) -> None:
    made = collect(staging, Here(dies="b"))
    assert texts(made) == ["a with 11", "c with 11"]
    (note, _) = made.parts_of(ROWS)[1]
    first, reason = note["refused"]
    assert first == "its process ended: crash in export" and "it fell" in reason
    pool = Here()
    assert collect(staging, pool).num_resumed == 3 and not pool.done

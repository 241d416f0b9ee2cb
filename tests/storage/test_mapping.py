"""Maps of rows through workers: finished results are reused, changed items are processed again."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from graphnet_datasets.errors import SchemaError
from graphnet_datasets.isolation import RESULT_FILE, Ending, Finished, Outcome, PoolJob
from graphnet_datasets.storage.mapping import (
    Item,
    Result,
    ResumableMap,
    ignore,
    map_items,
    row_item,
    row_name,
)
from graphnet_datasets.storage.parts import PartReader, encode_part
from graphnet_datasets.storage.staging import Staging

SCHEMA = pa.schema([("text", pa.string())])
ROWS = [{"id": name, "framework": "torch", "num_ops": number} for number, name in enumerate("abcd")]


def outcome(ending: Ending) -> Outcome:
    return Outcome(ending, "export", [], None, -11, "it fell", 7, 0.0, {}, 0, 0)


class Here:
    """A pool without processes, in which the items of `dies` do not return."""

    def __init__(self, folder: Path, dies: str = "", stops_after: int | None = None) -> None:
        self.folder, self.dies, self.stops_after = folder, dies, stops_after
        self.done: list[str] = []
        self.num_jobs = 0

    def run(self, jobs: Iterable[PoolJob]) -> Iterator[Finished]:
        for job in jobs:
            if self.num_jobs == self.stops_after:
                raise KeyboardInterrupt
            self.num_jobs += 1
            result = self.folder / RESULT_FILE
            result.unlink(missing_ok=True)
            try:
                map_items(job.payload, self.folder, self._write)
            except ValueError:
                yield Finished(job, outcome(Ending.CRASH), None)
            else:
                yield Finished(job, outcome(Ending.FINISHED), result.read_bytes())

    def _write(self, row: Any, job: Any) -> tuple[list[pa.Table], dict[str, Any]]:
        if row["id"] in self.dies and not job.get("is_careful"):
            raise ValueError("it fell")
        self.done.append(row["id"])
        text = f"{row['id']} with {job['with']}"
        return [pa.table({"text": [text]}, schema=SCHEMA)], {"length": len(text)}

    def close(self) -> None:
        """End nothing."""


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    staging = Staging(tmp_path / "mine", "test")
    staging.parts.mkdir(parents=True)
    return staging


def collect(
    staging: Staging,
    pool: Here,
    rows: list[dict[str, Any]] = ROWS,
    job: int = 1,
    terms: int = 0,
    **options: Any,
) -> tuple[ResumableMap, dict[str, Result]]:
    mapping = ResumableMap(staging, {"with": job}, terms)
    retry = options.pop("retry", None)
    items = (row_item(row, retry=retry) for row in rows)
    names = [row_name("torch", row["id"]) for row in rows]
    results = mapping.collect(mapping.run(items, pool, **options), names, ignore)
    return mapping, {result.name: result for result in results}


def texts(results: dict[str, Result], rows: list[dict[str, Any]] = ROWS) -> list[str]:
    reader = PartReader()
    ordered = [results[row_name("torch", row["id"])] for row in rows]
    return [table["text"][0].as_py() for result in ordered for table in reader.rows(result)]


@pytest.mark.parametrize("chunk", [1, 3])
def test_each_row_has_a_result(staging: Staging, tmp_path: Path, chunk: int) -> None:
    pool = Here(tmp_path)
    mapping, results = collect(staging, pool, chunk=chunk)
    assert (mapping.num_resumed, pool.num_jobs) == (0, {1: 4, 3: 2}[chunk])
    assert texts(results) == [f"{name} with 1" for name in "abcd"]
    assert results["torch:a"].notes == {"length": 8}
    assert not list((staging.directory / "jobs").iterdir())


@pytest.mark.parametrize("stops_after", range(4))
def test_a_stop_at_any_place_loses_nothing(
    staging: Staging, tmp_path: Path, stops_after: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        collect(staging, Here(tmp_path, stops_after=stops_after))
    counts: list[tuple[int, int]] = []
    pool, mapping = Here(tmp_path), ResumableMap(staging, {"with": 1}, 0)
    names = [row_name("torch", row["id"]) for row in ROWS]
    ordered = mapping.collect(
        mapping.run(map(row_item, ROWS), pool), names, lambda *numbers: counts.append(numbers)
    )
    assert [result.name for result in ordered] == names
    results = {result.name: result for result in ordered}
    assert pool.done == [*"abcd"][stops_after:] and mapping.num_resumed == stops_after
    assert counts == [(number, 4) for number in range(5)]
    assert texts(results) == [f"{name} with 1" for name in "abcd"]


def test_a_call_with_nothing_to_do_uses_no_pool(staging: Staging, tmp_path: Path) -> None:
    collect(staging, Here(tmp_path), chunk=4)
    mapping, results = collect(staging, None)  # type: ignore[arg-type]
    assert mapping.num_resumed == 4 and len(texts(results)) == 4


def test_other_jobs_changed_rows_and_broken_parts_are_ignored_and_reported(
    staging: Staging, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "graphnet_datasets")
    collect(staging, Here(tmp_path))
    assert not caplog.messages
    (staging.parts / "cut.arrow").write_bytes(b"half a part")
    pool = Here(tmp_path)
    collect(staging, pool, [{**ROWS[0], "num_ops": 99}, *ROWS[1:]])
    assert pool.done == ["a"]
    (message,) = caplog.messages
    assert message.startswith("Ignored 2 earlier results in `")
    pool = Here(tmp_path)
    _, results = collect(staging, pool, job=2)
    assert pool.done == [*"abcd"] and texts(results) == [f"{name} with 2" for name in "abcd"]
    assert caplog.messages[-1].startswith("Ignored 6 earlier results")
    pool = Here(tmp_path)
    _, results = collect(staging, pool)  # the results of the first job are still there
    assert not pool.done and texts(results) == [f"{name} with 1" for name in "abcd"]


def test_a_lost_process_is_a_result_until_the_limits_change(
    staging: Staging, tmp_path: Path
) -> None:
    _, results = collect(staging, Here(tmp_path, dies="b"))
    assert texts(results) == ["a with 1", "c with 1", "d with 1"]
    lost = results["torch:b"]
    assert lost.refusal[0] == "its process ended: crash in export" and lost.ending == "crash"
    assert "it fell" in lost.lost
    pool = Here(tmp_path)
    mapping, _ = collect(staging, pool)
    assert mapping.num_resumed == 4 and not pool.done
    _, results = collect(staging, pool, terms=1)
    assert pool.done == ["b"] and len(texts(results)) == 4


def test_the_items_of_a_lost_chunk_are_processed_alone(staging: Staging, tmp_path: Path) -> None:
    pool = Here(tmp_path, dies="b")
    _, results = collect(staging, pool, chunk=4)
    assert pool.num_jobs == 5 and texts(results) == ["a with 1", "c with 1", "d with 1"]
    assert results["torch:b"].lost and not list((staging.directory / "jobs").iterdir())


def test_a_lost_item_is_processed_again_with_other_options(
    staging: Staging, tmp_path: Path
) -> None:
    pool = Here(tmp_path, dies="b")
    _, results = collect(staging, pool, retry={"is_careful": True})
    assert not results["torch:b"].lost and len(texts(results)) == 4
    mapping, _ = collect(staging, pool, retry={"is_careful": True})
    assert mapping.num_resumed == 4


def test_rows_are_taken_when_a_worker_is_free(staging: Staging, tmp_path: Path) -> None:
    taken: list[str] = []

    def items() -> Iterator[Item]:
        for row in ROWS:
            taken.append(row["id"])
            yield row_item(row)

    results = ResumableMap(staging, {"with": 1}).run(items(), Here(tmp_path))
    next(results)
    assert taken == ["a"]


DAMAGED_NOTES = ("[]", "{}", '{"key": 1, "items": [{"name": "a"}]}', '{"key": [], "items": 1}')


@pytest.mark.parametrize("notes", DAMAGED_NOTES)
def test_parts_with_other_notes_are_ignored(staging: Staging, tmp_path: Path, notes: str) -> None:
    schema = SCHEMA.with_metadata({"notes": notes})
    with pa.ipc.new_stream(pa.OSFile(str(staging.parts / "a.arrow"), "wb"), schema) as writer:
        writer.write_table(pa.table({"text": ["a"]}, schema=schema))
    os.mkfifo(staging.parts / "pipe.arrow")
    (staging.parts / "endless.arrow").symlink_to("/dev/zero")
    mapping, results = collect(staging, Here(tmp_path))
    assert mapping.num_resumed == 0 and len(texts(results)) == 4


@pytest.mark.parametrize("content", [b"", b"no part", encode_part([], {"key": 1, "items": []})])
def test_a_worker_that_returns_another_part_is_lost(
    staging: Staging, tmp_path: Path, content: bytes
) -> None:
    class Lying(Here):
        def run(self, jobs: Iterable[PoolJob]) -> Iterator[Finished]:
            for finished in super().run(jobs):
                yield dataclasses.replace(finished, result=content)

    _, results = collect(staging, Lying(tmp_path))
    assert {result.lost for result in results.values()} == {
        "invalid result: The worker returned no valid part."
    }


def test_a_damaged_row_is_an_error_of_this_library(staging: Staging, tmp_path: Path) -> None:
    _, results = collect(staging, Here(tmp_path), chunk=4)
    result = results["torch:a"]
    content = bytearray(result.part.read_bytes())
    place = content.rfind(b"\x04\x22\x4d\x18")  # the beginning of a compressed buffer
    content[place : place + 4] = b"\0\0\0\0"
    result.part.write_bytes(content)
    with pytest.raises(SchemaError, match=r"is not a complete part: A batch of .* is damaged"):
        texts(results)

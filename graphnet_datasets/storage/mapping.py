"""Resumable maps of items through isolated workers, with every result stored as a part.

The parent passes items to a pool, and a worker module calls `map_items`. A finished result is on
disk before it is yielded, so an interruption at any time loses only the items in work.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import itertools
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import GraphNetError, TransformError
from ..isolation import RESULT_FILE, Finished, Pool, PoolJob
from ..schema import GRAPHS_SCHEMA
from ..version import __version__
from .parts import encode_part, read_notes, save_part
from .staging import PART_SUFFIX, Staging
from .table import to_arrow

Count = Callable[[int, int], None]
"""Called with the number of finished items and the total number."""

Function = Callable[
    [Mapping[str, Any], Mapping[str, Any]], tuple[Sequence[pa.Table], dict[str, Any]]
]
"""A worker's function of an item's row and options; returns tables and JSON-compatible notes."""

_INVALID_NOTES = (ValueError, KeyError, TypeError, AttributeError)
"""Errors for parts with other notes than those of a map."""
_JOB = b"job"
_LOGGER = logging.getLogger("graphnet_datasets")


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """An item of a map.

    `digest` identifies everything that determines the result besides the job of the map. `options`
    are passed to the worker with the row. If the item's process does not return, it is processed
    once more, alone, with the options of `retry`, unless that is None. `reads` are paths that the
    worker may read.
    """

    name: str
    digest: str
    row: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    retry: Mapping[str, Any] | None = None
    reads: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """The stored result of an item: its notes, and the place of its rows in a part.

    `lost` is the reason if the item's process did not return, else "".
    """

    name: str
    notes: Mapping[str, Any]
    part: Path
    first_row: int
    num_rows: int
    lost: str = ""
    ending: str = ""

    @property
    def sample_id(self) -> str:
        """The id of the sample, if the item is that of a row."""
        return self.name.partition(":")[2]

    @property
    def refusal(self) -> tuple[str, str]:
        """The reason why the item has no rows, in a few words and in full; empty if it has rows."""
        if self.lost:
            return f"its process ended: {self.lost.partition(':')[0]}", self.lost
        reason, message = self.notes.get("refused") or ("", "")
        return reason, message


def row_item(
    row: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    retry: Mapping[str, Any] | None = None,
) -> Item:
    """Return the item of a row of a table of samples, whose digest changes with the row.

    >>> row_item({"framework": "torch", "id": "a"}).name
    'torch:a'
    """
    options = options or {}
    digest = digest_of([sorted(row.items()), options])
    return Item(row_name(row["framework"], row["id"]), digest, row, options, retry)


def row_name(framework: str, sample_id: str) -> str:
    """Return the name of the item of a row."""
    return f"{framework}:{sample_id}"


def refusal_of(error: GraphNetError) -> tuple[str, str]:
    """Return the reason of an error in a few words and its message, for the note `refused`."""
    if isinstance(error, TransformError):
        return error.reason or str(error), str(error)
    return type(error).__name__, str(error)


def digest_of(content: Any) -> str:
    """Return a hash of the `repr` of plain data."""
    return hashlib.sha256(repr(content).encode(errors="surrogatepass")).hexdigest()[:32]


def ignore(done: int, total: int) -> None:
    """Show no progress."""
    del done, total


class ResumableMap:
    """The results of a map, stored in the directory of a `Staging`.

    `job` is passed to the worker with every item. Parts of another job, of another version of this
    library, of other items, and incomplete parts are ignored, and `report_ignored` logs their
    number. `terms` are limits that decide only whether a process returns: items that were lost
    under other terms are processed again.
    """

    def __init__(self, staging: Staging, job: Mapping[str, Any], terms: Any = None) -> None:
        self.staging, self.job = staging, job
        self.num_resumed = 0
        """Number of items finished by an earlier call."""
        self._key = digest_of([__version__, json.dumps(job, sort_keys=True)])
        self._terms = digest_of(terms)
        self._num_ignored = 0
        self._earlier: dict[tuple[str, str], Result] | None = None
        self._numbers = itertools.count()

    def run(self, items: Iterable[Item], pool: Pool, *, chunk: int = 1) -> Iterator[Result]:
        """Yield the result of each item, in order of completion.

        Items are taken from the iterable when a worker is free, `chunk` per process, so they need
        not fit into memory together. Threads of the pool may advance the iterable. If a process
        does not return, its items are processed again, alone, if there were several or they have a
        `retry`; otherwise the loss is their result.
        """
        if self._earlier is None:
            self._earlier = self._read_earlier()
        items = iter(items)
        resumed: collections.deque[Result] = collections.deque()
        pending: dict[str, list[Item]] = {}
        lost: list[tuple[Item, Path]] = []
        for item in items:  # most of the finished items come first, and need no pool
            earlier = self._resume(item)
            if earlier is not None:
                yield earlier
                continue
            # The pool takes all other items, which ends this loop.
            waiting = itertools.chain([item], self._without_finished(items, resumed))
            for finished in pool.run(self._jobs(waiting, chunk, pending)):
                yield from _drain(resumed)
                yield from self._take(finished, pending, lost, is_last=False)
        yield from _drain(resumed)
        if lost:
            again = (self._again(item, path) for item, path in lost)
            for finished in pool.run(self._jobs(again, 1, pending)):
                yield from self._take(finished, pending, [], is_last=True)
            for _, path in lost:
                path.unlink(missing_ok=True)

    def collect(
        self, results: Iterable[Result], names: Sequence[str], count: Count
    ) -> list[Result]:
        """Return the results of `run` in the order of their names, counting them as they come."""
        count(0, len(names))
        by_name: dict[str, Result] = {}
        for result in results:
            by_name[result.name] = result
            count(len(by_name), len(names))
        self.report_ignored()
        return [by_name[name] for name in names]

    def report_ignored(self) -> None:
        """Log the number of ignored parts and results, if there are any."""
        number = self._num_ignored + len(self._earlier or ())
        if number:
            _LOGGER.warning(
                "Ignored %d earlier results in `%s`: they are incomplete, or were made from other "
                "rows, with other options or by another version.",
                number,
                self.staging.parts,
            )

    def _read_earlier(self) -> dict[tuple[str, str], Result]:
        """Return the results of earlier calls with the same job by name and digest."""
        self.staging.parts.mkdir(parents=True, exist_ok=True)
        results: dict[tuple[str, str], Result] = {}
        for path in sorted(self.staging.parts.glob(f"*{PART_SUFFIX}")):
            try:
                notes = read_notes(path)
                is_ours = notes["key"] == self._key and notes.get("terms") in (None, self._terms)
                part = [*_results(path, notes)] if is_ours else []
            except _INVALID_NOTES:
                part = []
            if not part:
                self._num_ignored += 1
            results |= {(result.name, digest): result for digest, result in part}
        return results

    def _resume(self, item: Item) -> Result | None:
        result = (self._earlier or {}).pop((item.name, item.digest), None)
        self.num_resumed += result is not None
        return result

    def _without_finished(
        self, items: Iterable[Item], resumed: collections.deque[Result]
    ) -> Iterator[Item]:
        for item in items:
            earlier = self._resume(item)
            if earlier is None:
                yield item
            else:
                resumed.append(earlier)

    def _jobs(
        self, items: Iterable[Item], chunk: int, pending: dict[str, list[Item]]
    ) -> Iterator[PoolJob]:
        """Yield the jobs, writing each to a file in the hidden directory on demand."""
        folder = self.staging.directory / "jobs"
        folder.mkdir(parents=True, exist_ok=True)
        iterator = iter(items)
        while batch := list(itertools.islice(iterator, chunk)):
            path = str(folder.absolute() / f"{next(self._numbers)}.arrow")
            described = [
                {"name": item.name, "digest": item.digest, "options": item.options}
                for item in batch
            ]
            job = {"key": self._key, "job": self.job, "items": described}
            write_job(path, [item.row for item in batch], job)
            pending[path] = [dataclasses.replace(item, row={}) for item in batch]
            reads = dict.fromkeys(itertools.chain([path], *(item.reads for item in batch)))
            yield PoolJob(batch[0].name, {"items": path}, reads=tuple(reads))

    def _take(
        self,
        finished: Finished,
        pending: dict[str, list[Item]],
        lost: list[tuple[Item, Path]],
        is_last: bool,
    ) -> Iterator[Result]:
        """Store a job's part and yield its results, or add its items to `lost`."""
        path = Path(finished.job.payload["items"])
        items = pending.pop(str(path))
        results = self._read_result(finished, items)
        if results is None:
            is_retried = not is_last and (len(items) > 1 or items[0].retry is not None)
            if is_retried:
                lost += [(item, path) for item in items]
                return
            (item,) = items
            note = {"name": item.name, "digest": item.digest, "num_rows": 0, "notes": {}}
            reason = finished.reason or "invalid result: The worker returned no valid part."
            note |= {"lost": reason, "ending": str(finished.outcome.ending)}
            content = encode_part([], {"key": self._key, "terms": self._terms, "items": [note]})
            part = save_part(content, self.staging.parts)
            results = [result for _, result in _results(part, read_notes(part))]
        path.unlink(missing_ok=True)
        yield from results

    def _read_result(self, finished: Finished, items: Sequence[Item]) -> list[Result] | None:
        """Store a job's part and return its results, or None if it has no valid part.

        A worker whose memory a kernel has overwritten can return anything.
        """
        if finished.result is None:
            return None
        part = save_part(finished.result, self.staging.parts)
        try:
            notes = read_notes(part)
            results = [result for _, result in _results(part, notes)]
            expected = [(item.name, item.digest) for item in items]
            returned = [(note["name"], note["digest"]) for note in notes["items"]]
            if notes["key"] == self._key and returned == expected:
                return results
        except _INVALID_NOTES:
            pass
        part.unlink()
        return None

    def _again(self, item: Item, path: Path) -> Item:
        rows, job = read_job(path)
        names = [described["name"] for described in job["items"]]
        options = {**item.options, **(item.retry or {})}
        return dataclasses.replace(item, row=rows[names.index(item.name)], options=options)


def map_items(payload: Mapping[str, Any], directory: Path, function: Function) -> None:
    """Apply a function to the items of a job of a `ResumableMap`, and write their part.

    Called by the function `work` of a worker module. The function receives the row and the options
    of an item, updated with the job of the map.
    """
    (directory / RESULT_FILE).write_bytes(_encode_results(payload, function))


class MapWorker:
    """A pool's worker that calls a function in its thread, which starts its own processes.

    `close` stops these processes, so that a running call ends.
    """

    def __init__(self, function: Function, close: Callable[[], None]) -> None:
        self._function, self._close = function, close

    def run(self, job: PoolJob) -> Finished:
        """Apply the function to the items of a job."""
        return Finished.returned(job, _encode_results(job.payload, self._function))

    def close(self) -> None:
        """Stop the processes of the function."""
        self._close()


def _encode_results(payload: Mapping[str, Any], function: Function) -> bytes:
    """Return the part with the results of a job's items."""
    rows, job = read_job(payload["items"])
    tables: list[pa.Table] = []
    notes = []
    for row, item in zip(rows, job["items"], strict=True):
        item_tables, item_notes = function(row, {**job["job"], **item["options"]})
        num_rows = sum(table.num_rows for table in item_tables)
        tables += item_tables
        described = {"name": item["name"], "digest": item["digest"]}
        notes.append({**described, "num_rows": num_rows, "notes": item_notes})
    schema = tables[0].schema if tables else GRAPHS_SCHEMA
    return encode_part(tables, {"key": job["key"], "items": notes}, schema)


def _results(path: Path, notes: Mapping[str, Any]) -> Iterator[tuple[str, Result]]:
    """Yield digest and result of each item of a part."""
    first = 0
    for item in notes["items"]:
        place = (str(item["name"]), dict(item["notes"]), path, first, int(item["num_rows"]))
        yield item["digest"], Result(*place, item.get("lost", ""), item.get("ending", ""))
        first += item["num_rows"]


def _drain(results: collections.deque[Result]) -> Iterator[Result]:
    while results:
        yield results.popleft()


def write_job(path: str, rows: Sequence[Mapping[str, Any]], job: Mapping[str, Any]) -> None:
    """Write rows, which are too large for a message, with their job as JSON metadata."""
    table = to_arrow(rows)
    schema = table.schema.with_metadata({_JOB: json.dumps(job)})
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_table(table.replace_schema_metadata(schema.metadata))


def read_job(path: str | Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows and the job of a file written by `write_job`."""
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        rows = reader.read_all().to_pylist()
        return rows, json.loads((reader.schema.metadata or {})[_JOB])

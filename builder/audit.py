"""Captures of models from the catalogs with weights, each compared on the tensors of its call."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from graphnet_datasets.decoding import read_journal
from graphnet_datasets.errors import MissingExtraError
from graphnet_datasets.isolation import Finished, Limits, PoolJob
from graphnet_datasets.schema.tables import CONFIGS, GRAPHS
from graphnet_datasets.storage.table import read_table

from .capturing import EMBEDDED
from .catalog import Entry, parse_line, read_catalog
from .executors import run_jobs
from .libraries import library_of
from .sources import FILES

BUILDER = Path(__file__).parent

MEMORY_BYTES = 5 * 2**30
MAX_FLOPS = 10**10
MAX_PARAMS = 10**8
"""Limits of the operations and parameters of a drawn model, according to its embedded graph."""

LIMITS = Limits(
    phase_timeouts_s={"build": 300.0, "capture": 600.0, "write": 120.0}, memory_bytes=MEMORY_BYTES
)

Way: TypeAlias = Literal["extract", "export", "backward"]
"""Capture with `extract`, with `extract_export`, or with `extract` followed by `backward`."""

WAYS: tuple[Way, ...] = get_args(Way)

EQUAL, REFUSED, FAILED, SKIPPED = "equal", "refused", "failed", "skipped"
_BEYOND_LIMITS = ("out_of_memory", "timeout")


@dataclasses.dataclass(frozen=True)
class Audit:
    """The result for one model.

    `equal`: the samples reproduce the results of the model. `refused`: the capture reports a reason
    for having no samples. `failed`: another error or a crash. `skipped`: the model cannot be built,
    or exceeds the memory or time limit.
    """

    entry: Entry
    verdict: str
    reason: str = ""
    num_graphs: int = 0

    def to_json(self) -> dict[str, str | int | bool]:
        """Return the result as a flat dictionary."""
        entry = self.entry
        return {
            "name": entry.name, "library": entry.library, "mode": entry.mode,
            "dtype": entry.dtype, "is_dynamic": bool(entry.dynamic), "verdict": self.verdict,
            "num_graphs": self.num_graphs, "reason": self.reason,
        }  # fmt: skip

    @classmethod
    def from_json(cls, record: Mapping[str, Any], entry: Entry) -> Audit:
        """Return the result for an entry that `to_json` described."""
        return cls(entry, record["verdict"], record["reason"], record["num_graphs"])


def catalog_entries(dataset: Path = EMBEDDED, max_flops: int = MAX_FLOPS) -> list[Entry]:
    """Return the entries of all catalogs whose library is installed, each name once.

    Entries of the catalog files come first. For libraries with a walk, the entries are those of the
    embedded graphs. Models whose embedded graphs have more operations than `max_flops`, or more
    than `MAX_PARAMS` parameters, are left out.
    """
    lines, large = _embedded(dataset, max_flops)
    files = dict.fromkeys(itertools.chain(*FILES.values()))
    entries: dict[str, Entry] = {}
    for entry in itertools.chain(
        *(read_catalog(BUILDER / name) for name in files), map(parse_line, lines)
    ):
        if entry.line not in large:
            with contextlib.suppress(MissingExtraError):
                library_of(entry).version  # noqa: B018 - raises for a missing library
                entries.setdefault(entry.name, entry)
    return list(entries.values())


def _embedded(dataset: Path, max_flops: int = MAX_FLOPS) -> tuple[list[str], set[str]]:
    """Return the catalog lines of the embedded graphs, and those of models that are too large."""
    totals: dict[str, list[int]] = {}
    for config in (name for name, config in CONFIGS.items() if config.table is GRAPHS):
        for path in sorted((dataset / config).glob("*.parquet")):
            table = read_table(path, columns=["catalog_line", "flops", "num_params"])
            for row in table.to_pylist():
                total = totals.setdefault(row["catalog_line"] or "", [0, 0])
                total[0] += row["flops"] or 0
                total[1] += row["num_params"] or 0
    totals.pop("", None)
    large = {
        line
        for line, (flops, num_params) in totals.items()
        if flops > max_flops or num_params > MAX_PARAMS
    }
    return list(totals), large


def draw(entries: Iterable[Entry], seed: int) -> list[Entry]:
    """Return the entries in a random order that alternates between the kinds of entries.

    Entries of one library, mode and dtype, with or without symbols, are of one kind.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    kinds: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        key = (entry.library, entry.mode, entry.dtype, str(bool(entry.dynamic)))
        kinds.setdefault(key, []).append(entry)
    groups = [kinds[key] for key in sorted(kinds)]
    for group in groups:
        chance.shuffle(group)
    chance.shuffle(groups)
    turns = itertools.zip_longest(*groups)
    return [entry for turn in turns for entry in turn if entry is not None]


def read_results(path: Path, entries: Iterable[Entry]) -> list[Audit]:
    """Return the results of an earlier audit from a file of JSON lines.

    A file that does not exist has no results. Results for other entries are ignored.
    """
    by_name = {entry.name: entry for entry in entries}
    return [
        Audit.from_json(record, by_name[record["name"]])
        for record in read_journal(path)
        if record["name"] in by_name
    ]


def audit(
    entries: Sequence[Entry],
    count: int,
    jobs: int = 1,
    earlier: Sequence[Audit] = (),
    *,
    way: Way = "extract",
    is_twice: bool = False,
) -> Iterator[Audit]:
    """Capture entries in order until `count` of them have a verdict, and yield every result.

    A skipped model is replaced by the next entry. Results of an `earlier` audit count, and are
    yielded first. With `is_twice`, each model is built and captured twice, and both captures must
    have the same structure hashes.
    """
    yield from earlier
    names = {result.entry.name for result in earlier}
    waiting = (entry for entry in entries if entry.name not in names)
    missing = count - sum(result.verdict != SKIPPED for result in earlier)
    while missing > 0 and (batch := list(itertools.islice(waiting, missing))):
        job_of = functools.partial(_job, way=way, is_twice=is_twice)
        for entry, finished in run_jobs(batch, job_of, jobs, limits=LIMITS, is_confined=True):
            result = judge(entry, finished)
            missing -= result.verdict != SKIPPED
            yield result


def summary(results: Sequence[Audit]) -> dict[str, int]:
    """Return how many models have each verdict, and how many kinds of models there are.

    >>> summary([])
    {'equal': 0, 'refused': 0, 'failed': 0, 'skipped': 0, 'kinds': 0}
    """
    counts = Counter(result.verdict for result in results)
    kinds = {
        (result.entry.library, result.entry.mode, result.entry.dtype)
        for result in results
        if result.verdict != SKIPPED
    }
    return {name: counts[name] for name in (EQUAL, REFUSED, FAILED, SKIPPED)} | {
        "kinds": len(kinds)
    }


def _job(entry: Entry, *, way: Way, is_twice: bool) -> PoolJob:
    payload = {"line": entry.line, "is_audit": True, "way": way, "is_twice": is_twice}
    return PoolJob(entry.name, payload)


def judge(entry: Entry, finished: Finished) -> Audit:
    """Return the result for a model whose job has ended."""
    if finished.is_success:
        counts = [message["num_graphs"] for message in finished.outcome.messages
                  if "num_graphs" in message]  # fmt: skip
        return Audit(entry, EQUAL, num_graphs=sum(counts))
    reason = finished.reason
    is_beyond = reason.startswith(_BEYOND_LIMITS) or any(
        text in reason for text in ("MemoryError", "can't allocate memory")
    )
    if is_beyond or " in build" in reason.partition(":")[0]:
        return Audit(entry, SKIPPED, reason)
    is_refused = "graphnet_datasets.errors." in reason
    return Audit(entry, REFUSED if is_refused else FAILED, reason)

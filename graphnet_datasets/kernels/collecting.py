"""`collect_kernels`: a resumable collection of generated kernels in a dataset directory."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..analysis.splits import SPLITS
from ..atomic import write_text
from ..benchmark.handover import COMPILERS_VARIABLE
from ..decoding import read_json_lines
from ..frameworks.builds import check_device
from ..isolation import Limits, Work, check_executor, open_pool
from ..schema.tables import KERNELS
from ..storage.collection import Collection, Count
from ..storage.filters import Filters
from ..storage.layout import write_readme
from ..storage.parts import PartReader
from ..storage.selection import require_rows
from ..storage.shards import write_shards
from ..storage.staging import Staging
from ..terminal import counted
from ..version import __version__
from .generators import check_generator
from .worker import PHASES

GIB = 2**30
KERNEL_LIMITS = Limits(phase_timeouts_s={"compile": 600.0, "run": 120.0}, memory_bytes=8 * GIB)
REPORT_NAME = "kernels-report.jsonl"
FOLDER = "kernels"


@dataclasses.dataclass(frozen=True)
class GraphKernels:
    """Outcome for one graph: the number of kernels, or the reason for their absence."""

    id: str
    num_kernels: int = 0
    reason: str = ""
    message: str = ""


@dataclasses.dataclass(frozen=True)
class KernelReport:
    """Outcome of a collection: the dataset (None without kernels), and the outcomes of graphs."""

    out: Path | None
    report_path: Path
    outcomes: tuple[GraphKernels, ...]
    num_resumed: int = 0

    @property
    def num_kernels(self) -> int:
        """Total number of kernels."""
        return sum(outcome.num_kernels for outcome in self.outcomes)

    @property
    def refused(self) -> list[GraphKernels]:
        """Graphs without kernels."""
        return [outcome for outcome in self.outcomes if not outcome.num_kernels]

    def summary(self) -> str:
        """Return a short report for a terminal."""
        graphs = counted(len(self.outcomes), "graph")
        where = f"{counted(self.num_kernels, 'kernel')} written to {self.out}"
        lines = [f"{where if self.out else 'Nothing written'}; {graphs}"]
        reasons = collections.Counter(outcome.reason for outcome in self.refused)
        lines += [
            f"  {counted(count, 'graph')}: {reason}" for reason, count in reasons.most_common()
        ]
        return "\n".join([*lines, f"Report: {self.report_path}"])


def collect_kernels(
    samples: Any,
    out: str | os.PathLike[str],
    *,
    compiler: str = "inductor",
    options: Mapping[str, Any] | None = None,
    device: str = "cpu",
    threads: int = 1,
    dataset: str | os.PathLike[str] = "graphnet",
    filters: Filters | None = None,
    jobs: int | None = None,
    executor: str = "local",
    limits: Limits = KERNEL_LIMITS,
    on_progress: Count | None = None,
) -> KernelReport:
    """Write a dataset directory with the kernels that a compiler generates for samples.

    Samples, usually subgraphs, are selected as in `select_rows`. Each sample is compiled and called
    a few times in a separate process with empty caches, `jobs` at a time, within `limits`;
    generated code runs only there. `out` contains the
    config `kernels` and `kernels-report.jsonl` with the outcome of each graph. Finished graphs are
    stored in a hidden directory beside `out`; after an interruption, the same call resumes.

    Raises:
        CompilerError: the compiler is not supported or cannot run here, or an option is wrong.
        DatasetNotFoundError: nothing has this name, or no torch sample remains after filtering.
        DatasetExistsError: `out` exists, or another call is writing it.
        RunError: the device or the executor does not exist, or the worker processes cannot be
            started.
    """
    check_executor(executor)
    check_device(device, ("torch",))
    options = dict(options or {})
    job = {
        "compiler": compiler,
        "version": check_generator(compiler, options),
        "options": options,
        "device": device,
        "threads": threads,
    }
    collecting = _Collecting(Path(out), {**job, "key": f"{__version__} {json.dumps(job)}"})
    finished = collecting.find_finished()
    if finished is not None:
        return finished
    collecting.staging.check_free()
    rows = require_rows(samples, filters, dataset=dataset, framework="torch")
    work = Work("graphnet_datasets.kernels.worker", PHASES, limits, {COMPILERS_VARIABLE: compiler})
    with collecting.staging.hold():
        pool = open_pool(work, executor, jobs)
        try:
            collecting.collection.fill(rows, pool, on_progress or (lambda _done, _total: None))
        finally:
            pool.close()
        return collecting.finish(rows)


class _Collecting:
    """A collection: its parts on disk, and the steps that turn them into a dataset."""

    def __init__(self, target: Path, job: Mapping[str, Any]) -> None:
        self.staging = Staging(target, "kernels")
        nothing = {"split": SPLITS[0], "num_kernels": 0}
        self.collection = Collection(self.staging, job, KERNELS.schema, nothing)

    def find_finished(self) -> KernelReport | None:
        """Return the report of a collection that was interrupted after publishing, or None."""
        if not self.staging.is_published:
            return None
        path = self.staging.target / REPORT_NAME
        outcomes = tuple(GraphKernels(**fields) for fields in read_json_lines(path))
        self.staging.discard()
        return KernelReport(self.staging.target, path, outcomes, num_resumed=len(outcomes))

    def finish(self, rows: Sequence[Mapping[str, Any]]) -> KernelReport:
        """Write the dataset and the report from the parts."""
        notes, num_resumed = self.collection.parts_of(rows), self.collection.num_resumed
        outcomes = tuple(_outcome(note) for note, _ in notes)
        target = self.staging.target
        report = "".join(f"{json.dumps(dataclasses.asdict(outcome))}\n" for outcome in outcomes)
        if not any(outcome.num_kernels for outcome in outcomes):
            path = target.with_name(f"{target.name}.{REPORT_NAME}")
            write_text(path, report)
            return KernelReport(None, path, outcomes, num_resumed)
        staged = self.staging.new_place()
        for split in SPLITS:
            split_notes = [
                note for note in notes if note[0]["split"] == split and note[0]["num_kernels"]
            ]
            if split_notes:
                write_shards(_rows_of(split_notes), staged / FOLDER, split, table=KERNELS)
        write_text(staged / REPORT_NAME, report)
        write_readme(staged)
        self.staging.publish(staged)
        return KernelReport(target, target / REPORT_NAME, outcomes, num_resumed)


def _rows_of(notes: Iterable[tuple[Mapping[str, Any], Path]]) -> Iterator[pa.Table]:
    reader = PartReader()
    for note, path in sorted(notes, key=lambda item: item[0]["id"]):
        for index in range(note["num_kernels"]):
            yield reader.row(path, index)


def _outcome(note: Mapping[str, Any]) -> GraphKernels:
    reason, message = note["refused"] or ("", "")
    return GraphKernels(note["id"], note["num_kernels"], reason, message)

"""`collect_kernels`: a resumable collection of generated kernels in a dataset directory."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.splits import SPLITS
from ..benchmark.handover import COMPILERS_VARIABLE
from ..decoding import read_json_lines
from ..frameworks.builds import check_device
from ..isolation import Limits, Work, check_executor, open_pool
from ..schema.tables import KERNELS
from ..storage.filters import Filters
from ..storage.layout import write_readme
from ..storage.mapping import Count, Result, ResumableMap, ignore, row_item, row_name
from ..storage.parts import PartReader
from ..storage.selection import require
from ..storage.shards import write_shards
from ..storage.staging import Staging
from ..terminal import counted
from .generators import check_generator
from .worker import PHASES

GIB = 2**30
KERNEL_LIMITS = Limits(phase_timeouts_s={"compile": 600.0, "run": 120.0}, memory_bytes=8 * GIB)
REPORT_NAME = "kernels-report.jsonl"
FOLDER = "kernels"


@dataclasses.dataclass(frozen=True)
class GraphKernels:
    """Outcome for one graph: the number of kernels, or the reason why kernels are missing."""

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
    on_progress: Count = ignore,
) -> KernelReport:
    """Write a dataset directory with the kernels that a compiler generates for samples.

    Samples, usually subgraphs, are selected as in `select_rows`. Each sample is compiled and called
    a few times in a separate process with empty caches, `jobs` at a time, within `limits`;
    generated code runs only there. `out` contains the config `kernels` and `kernels-report.jsonl`
    with the outcome of each graph. Finished graphs are stored in a hidden directory beside `out`;
    after an interruption, the same call resumes.

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
    staging = Staging(Path(out), "kernels")
    if staging.is_published:
        return _read_finished(staging)
    staging.check_free()
    chosen = require(samples, filters, dataset=dataset, framework="torch")
    work = Work("graphnet_datasets.kernels.worker", PHASES, limits, {COMPILERS_VARIABLE: compiler})
    mapping = ResumableMap(staging, job, limits)
    with staging.hold(), contextlib.closing(open_pool(work, executor, jobs)) as pool:
        results = mapping.run(map(row_item, chosen.stream()), pool)
        names = [row_name(*name) for name in chosen.names]
        ordered = mapping.collect(results, names, on_progress)
        return _finish(staging, ordered, mapping.num_resumed)


def _read_finished(staging: Staging) -> KernelReport:
    """Return the report of a collection that was interrupted after publishing."""
    path = staging.target / REPORT_NAME
    outcomes = tuple(GraphKernels(**fields) for fields in read_json_lines(path))
    staging.discard()
    return KernelReport(staging.target, path, outcomes, num_resumed=len(outcomes))


def _finish(staging: Staging, results: Sequence[Result], num_resumed: int) -> KernelReport:
    """Write the dataset and the report."""
    outcomes = tuple(
        GraphKernels(result.sample_id, result.num_rows, *result.refusal) for result in results
    )
    with_kernels = [result for result in results if result.num_rows]
    with_kernels.sort(key=lambda result: result.sample_id)

    def write(staged: Path) -> None:
        reader = PartReader()
        for split in SPLITS:
            of_split = [result for result in with_kernels if result.notes["split"] == split]
            if of_split:
                rows = (row for result in of_split for row in reader.rows(result))
                write_shards(rows, staged / FOLDER, split, table=KERNELS)
        write_readme(staged)

    out, path = staging.publish_with_report(REPORT_NAME, outcomes, write if with_kernels else None)
    return KernelReport(out, path, outcomes, num_resumed)

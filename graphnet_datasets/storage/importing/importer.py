"""Import of GraphNet trees as a dataset, in parallel and resumable."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...frameworks import FRAMEWORK_VARIABLE
from ...isolation import Limits, Pool, Work, check_executor, num_processors, open_pool
from ..layout import write_readme
from ..mapping import Count, Item, Result, ResumableMap, ignore
from ..plans import run_plans
from ..staging import Staging
from .assembly import Assembly
from .folders import find_folders, fingerprint
from .outcomes import FolderOutcome, ImportReport, read_report, write_report
from .reading import PHASES

GIB = 2**30
CHUNK = 16
"""Folders per job: a process per folder would add a fifth to the reading time."""

LIMITS = Limits(
    phase_timeouts_s={"read": 600.0, "write": 6 * 3600.0}, memory_bytes=4 * GIB, max_processes=8
)
REPORT_NAME = "import-report.jsonl"


def import_directories(
    directories: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    executor: str = "local",
    has_costs: bool = False,
    keeps_duplicates: bool = False,
    report: str | os.PathLike[str] | None = None,
    on_progress: Count = ignore,
) -> ImportReport:
    """Import trees of GraphNet sample directories as a dataset directory or one Parquet file.

    `out` is a file if it ends in `.parquet`. A dataset directory has a config per task, splits by
    family, and shards sorted by `num_ops`. Folders are read in `jobs` processes (default: one per
    processor), or on a Ray cluster whose nodes all have access to the trees. No code in them is
    executed, and a folder that takes more than ten minutes or 4 GiB fails.

    The report, JSON lines at `report` (default: `import-report.jsonl` in the dataset, or beside the
    file), contains the outcome of every folder: failures with their reason, and graphs that equal
    another folder's, which are left out unless `keeps_duplicates`. Finished folders are stored in a
    hidden directory beside `out`. After an interruption, repeat the call to resume there; folders
    that have changed are read again.

    `has_costs` fills the cost columns (`flops`, …), which needs torch and takes several times as
    long.

    Raises:
        DatasetNotFoundError: a directory does not exist, or there is no sample below any.
        DatasetExistsError: `out` already exists, or another import is writing it.
        RunError: the worker processes cannot be started.

    >>> import tempfile
    >>> from graphnet_datasets.directory import write_directory
    >>> from graphnet_datasets.sample import Input, Sample, Value
    >>> identity = Sample("a/identity", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),), ops=(), outputs=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tree = write_directory(identity, f"{folder}/samples/a/identity")
    ...     report = import_directories(f"{folder}/samples", f"{folder}/mine", jobs=1)
    >>> report.num_rows, report.failures
    (1, [])
    """
    check_executor(executor)
    roots = [directories] if isinstance(directories, str | os.PathLike) else list(directories)
    target = Path(out)
    is_file = target.suffix == ".parquet"
    place = target.with_suffix(".import-report.jsonl") if is_file else target / REPORT_NAME
    importer = _Importer(target, Path(report) if report else place)
    finished = importer.find_finished()
    if finished is not None:
        return finished
    importer.staging.check_free()
    folders, unlisted = find_folders(roots)
    with importer.staging.hold(), contextlib.ExitStack() as stack:
        work = _work(has_costs)
        pool = local = stack.enter_context(contextlib.closing(open_pool(work, "local", jobs)))
        if executor != "local":
            pool = stack.enter_context(contextlib.closing(open_pool(work, executor, jobs)))
        mapping = ResumableMap(importer.staging, {"has_costs": has_costs})
        # Smaller chunks for few folders, so that all workers have work.
        chunk = max(1, min(CHUNK, len(folders) // (2 * num_processors())))
        items = (_item(folder, roots) for folder in folders)
        results = mapping.run(items, pool, chunk=chunk)
        ordered = mapping.collect(results, [str(path) for path in folders], on_progress)
        return importer.finish(ordered, unlisted, keeps_duplicates, local, mapping.num_resumed)


def _work(has_costs: bool) -> Work:
    environment = {FRAMEWORK_VARIABLE: "torch"} if has_costs else {}
    return Work(f"{__package__}.reading", PHASES, LIMITS, environment)


def _item(folder: Path, roots: Iterable[str | os.PathLike[str]]) -> Item:
    reads = tuple(str(Path(path).absolute()) for path in (*roots, folder))
    return Item(str(folder), fingerprint(folder), options={"folder": str(folder)}, reads=reads)


class _Importer:
    """An import in progress: its parts on disk, and the steps from parts to dataset."""

    def __init__(self, target: Path, report_path: Path) -> None:
        self.target, self.report_path = target, report_path
        self.staging = Staging(target, "import")

    def find_finished(self) -> ImportReport | None:
        """Return the report of an earlier call that published `out` before it was stopped."""
        if not self.staging.is_published:
            return None
        outcomes = tuple(read_report(self.report_path))
        num_rows = sum(outcome.is_in_table for outcome in outcomes)
        self.staging.discard()
        return ImportReport(self.target, self.report_path, outcomes, num_rows, len(outcomes))

    def finish(
        self,
        results: Sequence[Result],
        unlisted: dict[Path, str],
        keeps_duplicates: bool,
        pool: Pool,
        num_resumed: int,
    ) -> ImportReport:
        """Write the dataset and the report from the parts, in local processes."""
        assembly = Assembly(keeps_duplicates)
        outcomes = [assembly.add(result) for result in results]
        outcomes += [
            FolderOutcome(str(path), "failed", reason=reason, error_type="OSError")
            for path, reason in sorted(unlisted.items())
        ]
        if assembly.num_rows:
            self._write(assembly, outcomes, pool)
        else:
            if self.report_path.parent == self.target:  # the directory will not exist
                name = f"{self.target.name}.{REPORT_NAME}"
                self.report_path = self.target.with_name(name)
            write_report(outcomes, self.report_path)
        return ImportReport(
            out=self.target if assembly.num_rows else None,
            report_path=self.report_path,
            outcomes=tuple(outcomes),
            num_rows=assembly.num_rows,
            num_resumed=num_resumed,
        )

    def _write(self, assembly: Assembly, outcomes: list[FolderOutcome], pool: Pool) -> None:
        staged = self.staging.new_place()
        is_file = self.target.suffix == ".parquet"
        run_plans(assembly.plans(staged, is_file), self.staging, pool)
        if not is_file:
            write_readme(staged)
        is_inside = self.report_path == self.target / REPORT_NAME
        write_report(outcomes, staged / REPORT_NAME if is_inside else self.report_path)
        self.staging.publish(staged)

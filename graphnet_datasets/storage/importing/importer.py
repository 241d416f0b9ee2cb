"""Import of GraphNet trees as a dataset, in parallel and resumable."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ...frameworks import FRAMEWORK_VARIABLE
from ...isolation import Limits, Pool, PoolJob, Work, check_executor, num_processors, open_pool
from ...version import __version__
from ..layout import write_readme
from ..parts import encode_part, read_notes, save_part
from ..staging import PART_SUFFIX, Staging
from .assembly import Assembly, assemble
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

Count = Callable[[int, int], None]
"""Called with the number of finished folders and the total number."""


def import_directories(
    directories: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    executor: str = "local",
    has_costs: bool = False,
    keeps_duplicates: bool = False,
    report: str | os.PathLike[str] | None = None,
    on_progress: Count | None = None,
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
    importer = _Importer(
        target, Path(report) if report else place, f"{__version__} costs={has_costs}", has_costs
    )
    importer.roots = roots
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
        importer.read(folders, pool, on_progress or _ignore)
        return importer.finish(folders, unlisted, keeps_duplicates, local)


def _work(has_costs: bool) -> Work:
    environment = {FRAMEWORK_VARIABLE: "torch"} if has_costs else {}
    return Work(f"{__package__}.reading", PHASES, LIMITS, environment)


def _ignore(done: int, total: int) -> None:
    del done, total


class _Importer:
    """An import in progress: its parts on disk, and the steps from parts to dataset."""

    def __init__(self, target: Path, report_path: Path, key: str, has_costs: bool) -> None:
        self.target, self.report_path = target, report_path
        self.key, self.has_costs = key, has_costs
        self.roots: list[str | os.PathLike[str]] = []
        self.staging = Staging(target, "import")
        self.notes: dict[str, tuple[dict[str, Any], Path, int]] = {}
        self.num_resumed = 0

    def find_finished(self) -> ImportReport | None:
        """Return the report of an earlier call that published `out` before it was stopped."""
        if not self.staging.is_published:
            return None
        outcomes = tuple(read_report(self.report_path))
        num_rows = sum(outcome.is_in_table for outcome in outcomes)
        self.staging.discard()
        return ImportReport(self.target, self.report_path, outcomes, num_rows, len(outcomes))

    def read(self, folders: list[Path], pool: Pool, on_progress: Count) -> None:
        """Read the folders without a part."""
        wanted = {str(folder) for folder in folders}
        for path in sorted(self.staging.parts.glob(f"*{PART_SUFFIX}")):
            self._take(path, wanted, is_old=True)
        self.num_resumed = len(self.notes)
        missing = [path for path in map(str, folders) if path not in self.notes]
        on_progress(len(self.notes), len(folders))
        # Smaller chunks for few folders, so that all workers have work.
        chunk = max(1, min(CHUNK, len(missing) // (2 * num_processors())))
        lost: list[str] = []
        for finished in pool.run(self._jobs(missing, chunk)):
            if finished.result is not None:
                self._take(save_part(finished.result, self.staging.parts), wanted)
            else:
                lost += finished.job.payload["folders"]
            on_progress(len(self.notes), len(folders))
        # One folder of a lost chunk is the cause; separate processes reveal which.
        for finished in pool.run(self._jobs(lost, 1)):
            content = finished.result
            if content is None:
                (path,) = finished.job.payload["folders"]
                note = {"path": path, "fingerprint": fingerprint(Path(path))}
                note |= {"error": finished.reason, "error_type": str(finished.outcome.ending)}
                content = encode_part([], {"key": self.key, "folders": [note]})
            self._take(save_part(content, self.staging.parts), wanted)
            on_progress(len(self.notes), len(folders))

    def _jobs(self, folders: list[str], chunk: int) -> Iterator[PoolJob]:
        for start in range(0, len(folders), chunk):
            chunk_folders = folders[start : start + chunk]
            payload = {"folders": chunk_folders, "key": self.key, "has_costs": self.has_costs}
            reads = tuple(str(Path(folder).absolute()) for folder in (*self.roots, *chunk_folders))
            yield PoolJob(chunk_folders[0], payload, reads)

    def _take(self, path: Path, wanted: set[str], is_old: bool = False) -> None:
        """Register a part; of an earlier call, only folders that have not changed."""
        try:
            notes = read_notes(path)
        except ValueError:
            path.unlink()
            return
        if notes["key"] != self.key:
            path.unlink()
            return
        index = 0
        for note in notes["folders"]:
            has_row = "error" not in note
            folder = note["path"]
            is_same = not is_old or note["fingerprint"] == fingerprint(Path(folder))
            if folder in wanted and is_same:
                self.notes[folder] = note, path, index
            index += has_row

    def finish(
        self,
        folders: list[Path],
        unlisted: dict[Path, str],
        keeps_duplicates: bool,
        pool: Pool,
    ) -> ImportReport:
        """Write the dataset and the report from the parts, in local processes."""
        assembly = Assembly(keeps_duplicates)
        outcomes = [assembly.add(*self.notes[str(folder)]) for folder in folders]
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
            num_resumed=self.num_resumed,
        )

    def _write(self, assembly: Assembly, outcomes: list[FolderOutcome], pool: Pool) -> None:
        staged = self.staging.new_place()
        is_file = self.target.suffix == ".parquet"
        assemble(assembly, staged, is_file, self.staging.directory, pool)
        if not is_file:
            write_readme(staged)
        is_inside = self.report_path == self.target / REPORT_NAME
        write_report(outcomes, staged / REPORT_NAME if is_inside else self.report_path)
        self.staging.publish(staged)

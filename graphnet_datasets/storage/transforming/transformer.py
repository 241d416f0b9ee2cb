"""Transform of a dataset into another dataset, in parallel and resumable."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ...atomic import write_text
from ...decoding import read_text
from ...errors import GraphNetError
from ...frameworks import FRAMEWORK_VARIABLE, framework_named
from ...isolation import Limits, Pool, PoolJob, Work, check_executor, open_pool
from ...sample import Sample
from ...transforms.registry import Step, in_order, plan
from ...version import __version__
from ..filters import Filters
from ..job_files import write_job
from ..layout import read_layout, write_readme
from ..parts import encode_part, read_notes, save_part
from ..selection import require_rows
from ..staging import PART_SUFFIX, Staging
from .assembly import Assembly, write_dataset
from .outcomes import GraphOutcome, TransformReport, outcome_of, read_report, write_report
from .worker import MODULES_VARIABLE, PHASES

GIB = 2**30
MAX_INPUT_BYTES = 2 * GIB
"""Default limit of the inputs' size for running a sample."""

TRANSFORM_LIMITS = Limits(
    phase_timeouts_s={"transform": 900.0, "write": 6 * 3600.0}, memory_bytes=12 * GIB
)
REPORT_NAME = "transform-report.jsonl"
REQUEST_NAME = "transform-request.json"
"""The steps and rows of a finished transform, which identify a repeated call."""

Count = Callable[[int, int], None]
"""Called with the number of finished graphs and the total number."""


def transform_dataset(
    samples: Any,
    steps: Iterable[Step],
    out: str | os.PathLike[str],
    *,
    dataset: str | os.PathLike[str] = "graphnet",
    filters: Filters | None = None,
    jobs: int | None = None,
    executor: str = "local",
    max_input_bytes: int = MAX_INPUT_BYTES,
    max_flops: float = math.inf,
    limits: Limits = TRANSFORM_LIMITS,
    on_progress: Count | None = None,
) -> TransformReport:
    """Write a dataset directory of samples after a chain of transforms.

    Samples are selected as in `select_rows`. The steps are applied in the order of
    `transforms.registry.TRANSFORMS`, each graph in an isolated process within `limits`, `jobs` at a
    time (default: one per processor), or on a Ray cluster whose nodes all have access to `out`.
    Graphs whose inputs exceed `max_input_bytes`, or which compute more than `max_flops`, are not
    run, nor are graphs whose run did not return within the limits. Such graphs are transformed
    without a run if the steps allow that, and are refused otherwise.

    The dataset has a config per task, or the config of the kind of parts, in which equal parts are
    merged. `family` and splits are those of the source graphs. `transform-report.jsonl` in the
    dataset contains each graph's number of samples and refusals with reasons. Progress is stored in
    a hidden directory beside `out`; after an interruption, repeat the call to resume there. A
    repeated call of a finished transform does nothing and returns the same report.

    Raises:
        DatasetNotFoundError: no sample or dataset matches, or the filters exclude all samples.
        DatasetExistsError: `out` already exists, or another transform is writing it.
        TransformError: the steps cannot be chained.
        MissingExtraError: the framework of a sample is not installed.
        RunError: the worker processes cannot be started, or the executor does not exist.

    >>> import tempfile
    >>> from graphnet_datasets.sample import Input, Op, Sample, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> relu = Sample("example/relu", "torch", "other", (Input("input", Value("float32", (2,))),),
    ...     (Op("torch.relu", (Ref(0),)),), Ref(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     step = Step("cast", {"dtype": "bfloat16"})
    ...     report = transform_dataset([relu], [step], f"{folder}/mine", jobs=1)
    >>> report.num_rows, report.refused
    (1, [])
    """
    check_executor(executor)
    largest = {"input_bytes": max_input_bytes, "flops": max_flops}
    transformer = _Transformer(Path(out), in_order(steps), largest)
    plan(transformer.steps, ())  # raises if the steps cannot be chained, before reading any data
    finished = transformer.find_finished()
    if finished is not None:
        return finished
    has_request = (transformer.staging.target / REQUEST_NAME).is_file()
    if not has_request:
        transformer.staging.check_free()
    rows = require_rows(samples, filters, dataset=dataset)
    if has_request and (complete := transformer.find_complete(rows)) is not None:
        return complete
    transformer.staging.check_free()
    names = {str(row["framework"]) for row in rows}
    for framework in map(framework_named, sorted(names)):
        if not framework.is_installed:
            raise framework.missing("Transforming its graphs")
    with transformer.staging.hold(), contextlib.ExitStack() as stack:

        def open_for(framework: str) -> Pool:
            # `limits` apply to graphs; tables are written here with the default limits.
            own = limits if framework else TRANSFORM_LIMITS
            work = _work(own, framework, transformer.steps)
            pool = open_pool(work, executor if framework else "local", jobs)
            return stack.enter_context(contextlib.closing(pool))

        transformer.make(rows, open_for, on_progress or _ignore)
        return transformer.finish(rows, open_for(""))


def _work(limits: Limits, framework: str, steps: Iterable[Step]) -> Work:
    modules = " ".join(sorted({name for step in steps for name in step.modules}))
    environment = {FRAMEWORK_VARIABLE: framework, MODULES_VARIABLE: modules} if framework else {}
    return Work(f"{__package__}.worker", PHASES, limits, environment)


def _ignore(done: int, total: int) -> None:
    del done, total


class _Transformer:
    """A transform in progress: its parts on disk, and the steps from parts to dataset."""

    def __init__(self, target: Path, steps: Sequence[Step], largest: Mapping[str, float]) -> None:
        self.staging = Staging(target, "transform")
        self.steps, self.largest = steps, largest
        self.report_path = target / REPORT_NAME
        self.steps_of: dict[tuple[str, str], Sequence[Step]] = {}
        self.notes: dict[tuple[str, str], tuple[dict[str, Any], Path]] = {}
        self.num_resumed = 0

    @property
    def can_do_without_run(self) -> bool:
        """True if no step needs to run a sample."""
        return not any(step.transform.needs_run for step in self.steps)

    def find_finished(self) -> TransformReport | None:
        """Return the report of an earlier call that published `out` before it was stopped."""
        if not self.staging.is_published:
            return None
        outcomes = tuple(read_report(self.report_path))
        self.staging.discard()
        rows = sum(outcome.num_made for outcome in outcomes)
        return TransformReport(
            self.staging.target, self.report_path, outcomes, rows, num_resumed=len(outcomes)
        )

    def find_complete(self, rows: Sequence[Mapping[str, Any]]) -> TransformReport | None:
        """Return the report of an earlier call with the same steps and rows, None without one."""
        target = self.staging.target
        if read_text(target / REQUEST_NAME) != self._request(rows):
            return None
        outcomes = tuple(read_report(self.report_path))
        configs = read_layout(target).configs.values()  # one of them may contain all others
        files = {path for splits in configs for paths in splits.values() for path in paths}
        num_rows = sum(pq.read_metadata(path).num_rows for path in files)
        return TransformReport(
            target, self.report_path, outcomes, num_rows, num_resumed=len(outcomes)
        )

    def _request(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """Return the steps, limits and rows of this transform as JSON."""
        steps = [[step.name, dict(step.options)] for step in self.steps]
        hashes = [[*_name(row), row["signature_hash"]] for row in rows]
        request = {"steps": steps, "largest": {**self.largest}, "rows": sorted(hashes)}
        return json.dumps(request, sort_keys=True, default=str)

    def make(
        self, rows: Sequence[Mapping[str, Any]], open_pool: Callable[[str], Pool], count: Count
    ) -> None:
        """Transform the rows without a part."""
        by_name = {_name(row): row for row in rows}
        planned = plan(self.steps, ((_read(row), row["family"]) for row in rows))
        if planned is not None:
            self.steps_of = dict(zip(by_name, planned, strict=True))
        for path in sorted(self.staging.parts.glob(f"*{PART_SUFFIX}")):
            self._take(path, by_name)
        self.num_resumed = len(self.notes)
        count(len(self.notes), len(rows))
        waiting: dict[str, list[Mapping[str, Any]]] = {}
        for name, row in by_name.items():
            if name not in self.notes:
                waiting.setdefault(name[0], []).append(row)
        for framework, pending in waiting.items():
            pool = open_pool(framework)
            may_run = True
            while pending:  # samples lost in a run are transformed again without a run
                lost: list[Mapping[str, Any]] = []
                for finished in pool.run(self._jobs(pending, may_run)):
                    Path(finished.job.payload["row"]).unlink(missing_ok=True)
                    row = by_name[framework, finished.job.name]
                    if finished.result is not None:
                        self._take(save_part(finished.result, self.staging.parts), by_name)
                    elif finished.job.payload["may_run"] and self.can_do_without_run:
                        lost.append(row)
                    else:
                        self._note_lost(row, finished.reason, by_name)
                    count(len(self.notes), len(rows))
                pending, may_run = lost, False
            pool.close()

    def finish(self, rows: Sequence[Mapping[str, Any]], pool: Pool) -> TransformReport:
        """Write the dataset and the report from the parts."""
        assembly = Assembly()
        outcomes = []
        for row in rows:
            note, part = self.notes[_name(row)]
            assembly.add(note, part)
            outcomes.append(_outcome(note))
        target, directory = self.staging.target, self.staging.directory
        if assembly.num_rows:
            staged = self.staging.new_place()
            write_dataset(assembly, staged, directory, pool)
            write_report(outcomes, staged / REPORT_NAME)
            write_text(staged / REQUEST_NAME, self._request(rows))
            write_readme(staged)
            self.staging.publish(staged)
        else:  # the directory will not exist
            self.report_path = target.with_name(f"{target.name}.{REPORT_NAME}")
            write_report(outcomes, self.report_path)
        return TransformReport(
            out=target if assembly.num_rows else None,
            report_path=self.report_path,
            outcomes=tuple(outcomes),
            num_rows=assembly.num_rows,
            num_resumed=self.num_resumed,
        )

    def _jobs(self, rows: Iterable[Mapping[str, Any]], may_run: bool) -> Iterator[PoolJob]:
        """Yield the jobs, writing each row to a file in the hidden directory on demand."""
        folder = self.staging.directory / "jobs"
        folder.mkdir(exist_ok=True)
        for number, row in enumerate(rows):
            path = folder.absolute() / f"{row['framework']}-{number}.arrow"
            write_job(path, row, {"key": self._key(row), "steps": self._described(row)})
            is_small = all((row.get(name) or 0) <= most for name, most in self.largest.items())
            payload = {"row": str(path), "may_run": may_run and is_small}
            yield PoolJob(str(row["id"]), payload, reads=(str(path),))

    def _described(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        steps = self.steps_of.get(_name(row), self.steps)
        return [{"name": step.name, "options": step.options} for step in steps]

    def _key(self, row: Mapping[str, Any]) -> str:
        """Return a hash of everything that determines the result, including the row."""
        text = repr((__version__, self._described(row), sorted(row.items())))
        return hashlib.sha256(text.encode()).hexdigest()

    def _take(self, path: Path, by_name: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
        """Register a part, or delete it if it has other steps or an old row."""
        try:
            note = read_notes(path)
        except ValueError:
            path.unlink()
            return
        name = (note["framework"], note["id"])
        row = by_name.get(name)
        if row is None or note["key"] != self._key(row):
            path.unlink()
        else:
            self.notes[name] = note, path

    def _note_lost(
        self,
        row: Mapping[str, Any],
        reason: str,
        by_name: Mapping[tuple[str, str], Mapping[str, Any]],
    ) -> None:
        """Record that a graph's process did not return, so that it is not retried."""
        refused = {"operator": "", "reason": _first_words(reason), "message": reason, "count": 1}
        note = {
            "key": self._key(row),
            **{name: row[name] for name in ("id", "framework", "family")},
            "has_run": False,
            "made": [],
            "refused": [refused],
        }
        self._take(save_part(encode_part([], note), self.staging.parts), by_name)


def _name(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["framework"]), str(row["id"])


def _read(row: Mapping[str, Any]) -> Sample | None:
    try:
        return Sample.from_row(row)
    except GraphNetError:
        return None


def _first_words(reason: str) -> str:
    return f"its process ended: {reason.partition(':')[0]}"


def _outcome(note: Mapping[str, Any]) -> GraphOutcome:
    return outcome_of(
        {
            "id": note["id"],
            "framework": note["framework"],
            "num_made": len(note["made"]),
            "has_run": note["has_run"],
            "refused": note["refused"],
        }
    )

"""`transform_dataset`: a dataset out of another one, in parallel, and again after a stop."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import DatasetNotFoundError, GraphNetError
from ...frameworks import FRAMEWORK_VARIABLE, framework_named
from ...isolation import Limits, Pool, PoolJob, Work, check_executor, open_pool
from ...sample import Sample
from ...transforms.registry import Step, in_order, plan
from ...version import __version__
from ..filters import Filters
from ..job_files import write_job
from ..layout import write_readme
from ..parts import encode_part, read_notes, save_part
from ..selection import select_rows
from ..staging import PART_SUFFIX, Staging
from .assembly import Assembly, write_dataset
from .outcomes import GraphOutcome, TransformReport, outcome_of, read_report, write_report
from .worker import MODULES_VARIABLE, PHASES

GIB = 2**30
MAX_INPUT_BYTES = 2 * GIB
"""Samples whose inputs take more are not run unless it is asked for."""

TRANSFORM_LIMITS = Limits(
    phase_timeouts_s={"transform": 900.0, "write": 6 * 3600.0}, memory_bytes=12 * GIB
)
REPORT_NAME = "transform-report.jsonl"

Count = Callable[[int, int], None]
"""Told how many graphs are done, of how many."""


def transform_dataset(
    what: Any,
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
    """Write a dataset directory of what a chain of transforms makes of samples.

    `what`, `filters` and `dataset` choose samples as `select_rows` does. The steps are applied in
    the order of `transforms.registry.TRANSFORMS`, each graph in a process of its own, `jobs` at a
    time (default: one a processor), within `limits`, or on a Ray cluster whose nodes all see `out`.
    A graph whose inputs take more than `max_input_bytes`, or which is known to compute more than
    `max_flops`, is not run, nor is one that was lost within the limits: where the steps need no run
    they do without, otherwise it is refused.

    The dataset has a config per task, or that of the kind of parts, where equal ones are merged;
    splits are those of the families of the graphs that the samples were made of, and `family` is
    theirs too. `transform-report.jsonl` in it says what became of each graph: how many samples,
    what was refused and why. What is done is kept in a hidden directory beside `out` until all is;
    after a stop of any kind, the same call goes on from there.

    Raises:
        DatasetNotFoundError: nothing has such a name, or no sample is left by the filters.
        DatasetExistsError: `out` is there already, or another transform is writing it.
        TransformError: the steps make no chain.
        MissingExtraError: the framework of a sample is not installed.
        RunError: the worker processes cannot be started, or there is no such executor.

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
    plan(transformer.steps, ())  # says whether they make a chain, before anything is read
    finished = transformer.find_finished()
    if finished is not None:
        return finished
    transformer.staging.check_free()
    rows = select_rows(what, filters, dataset=dataset)
    if not rows:
        raise DatasetNotFoundError(
            "There is no such sample: the filters leave none. `graphnet list` shows what there is."
        )
    names = {str(row["framework"]) for row in rows}
    for framework in map(framework_named, sorted(names)):
        if not framework.is_installed:
            raise framework.missing("Transforming its graphs")
    with transformer.staging.hold(), contextlib.ExitStack() as stack:

        def open_for(framework: str) -> Pool:
            # What `limits` are for is one graph; tables are written here, within the usual ones.
            own = limits if framework else TRANSFORM_LIMITS
            work = _work(own, framework, transformer.steps)
            pool = open_pool(work, executor if framework else "local", jobs)
            return stack.enter_context(contextlib.closing(pool))

        transformer.make(rows, open_for, on_progress or _ignore)
        return transformer.finish(rows, open_for(""))


def _work(limits: Limits, framework: str, steps: Iterable[Step]) -> Work:
    modules = " ".join(sorted({name for step in steps for name in step.modules}))
    environment = {FRAMEWORK_VARIABLE: framework, MODULES_VARIABLE: modules} if framework else {}
    return Work(f"{__package__}.server", PHASES, limits, environment)


def _ignore(done: int, total: int) -> None:
    del done, total


class _Transformer:
    """One transform: its parts on disk, and the steps from them to the dataset."""

    def __init__(self, target: Path, steps: Sequence[Step], largest: Mapping[str, float]) -> None:
        self.staging = Staging(target, "transform")
        self.steps, self.largest = steps, largest
        self.report_path = target / REPORT_NAME
        self.steps_of: dict[tuple[str, str], Sequence[Step]] = {}
        self.notes: dict[tuple[str, str], tuple[dict[str, Any], Path]] = {}
        self.num_resumed = 0

    @property
    def can_do_without_run(self) -> bool:
        """Whether no step needs to run a sample."""
        return not any(step.transform.needs_run for step in self.steps)

    def find_finished(self) -> TransformReport | None:
        """Return the report of a transform that was stopped when all but the tidying was done."""
        if not self.staging.is_published:
            return None
        outcomes = tuple(read_report(self.report_path))
        self.staging.discard()
        rows = sum(each.num_made for each in outcomes)
        return TransformReport(
            self.staging.target, self.report_path, outcomes, rows, num_resumed=len(outcomes)
        )

    def make(
        self, rows: Sequence[Mapping[str, Any]], open_pool: Callable[[str], Pool], count: Count
    ) -> None:
        """Transform the rows that no part holds yet."""
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
        for framework, some in waiting.items():
            pool = open_pool(framework)
            may_run = True
            while some:  # once more without a run, those that were lost in one
                lost: list[Mapping[str, Any]] = []
                for finished in pool.run(self._jobs(some, may_run)):
                    Path(finished.job.payload["row"]).unlink(missing_ok=True)
                    row = by_name[framework, finished.job.name]
                    if finished.result is not None:
                        self._take(save_part(finished.result, self.staging.parts), by_name)
                    elif finished.job.payload["may_run"] and self.can_do_without_run:
                        lost.append(row)
                    else:
                        self._note_lost(row, finished.reason, by_name)
                    count(len(self.notes), len(rows))
                some, may_run = lost, False
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
            write_readme(staged)
            self.staging.publish(staged)
        else:  # there will be no such directory
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
        """Yield the jobs; a row goes through a file in the hidden directory, written when due."""
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
        """Return a hash of all that decides what is made of a row, the row itself included."""
        text = repr((__version__, self._described(row), sorted(row.items())))
        return hashlib.sha256(text.encode()).hexdigest()

    def _take(self, path: Path, by_name: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
        """Note what a part holds, unless it is of other steps or of a row that has changed."""
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
        """Keep that a graph's process did not return, so that it is not tried again."""
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

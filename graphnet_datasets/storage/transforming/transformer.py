"""Transform of a dataset into another dataset, in parallel and resumable."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ...atomic import write_text
from ...decoding import read_text
from ...errors import GraphNetError
from ...frameworks import FRAMEWORK_VARIABLE, framework_named
from ...isolation import Limits, Pool, Work, check_executor, open_pool
from ...sample import Sample
from ...transforms.registry import Step, in_order, plan
from ..filters import Filters
from ..layout import read_layout, write_readme
from ..mapping import Count, Item, Result, ResumableMap, ignore, row_item, row_name
from ..plans import run_plans
from ..selection import Chosen, require
from ..staging import Staging
from .assembly import Assembly
from .outcomes import GraphOutcome, Refusal, TransformReport, read_report
from .worker import MODULES_VARIABLE, PHASES

GIB = 2**30
MAX_INPUT_BYTES = 2 * GIB
"""Default limit of the inputs' size for running a sample."""

TRANSFORM_LIMITS = Limits(
    phase_timeouts_s={"transform": 900.0, "write": 6 * 3600.0}, memory_bytes=12 * GIB
)
WORKER = f"{__package__}.worker"
REPORT_NAME = "transform-report.jsonl"
REQUEST_NAME = "transform-request.json"
"""The steps and rows of a finished transform, which identify a repeated call."""


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
    on_progress: Count = ignore,
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
    chosen = require(samples, filters, dataset=dataset)
    if has_request and (complete := transformer.find_complete(chosen)) is not None:
        return complete
    transformer.staging.check_free()
    for framework in map(framework_named, sorted(chosen.frameworks)):
        if not framework.is_installed:
            raise framework.missing("Transforming its graphs")
    with transformer.staging.hold():
        modules = " ".join(sorted({name for step in transformer.steps for name in step.modules}))

        def open_for(framework: str) -> Pool:
            environment = {FRAMEWORK_VARIABLE: framework, MODULES_VARIABLE: modules}
            return open_pool(Work(WORKER, PHASES, limits, environment), executor, jobs)

        mapping = ResumableMap(transformer.staging, {}, limits)
        results = transformer.make(chosen, mapping, open_for, on_progress)
        writing = Work(WORKER, PHASES, TRANSFORM_LIMITS)  # `limits` apply to graphs
        with contextlib.closing(open_pool(writing, jobs=jobs)) as pool:
            return transformer.finish(chosen, results, mapping.num_resumed, pool)


class _Transformer:
    """A transform in progress: its parts on disk, and the steps from parts to dataset."""

    def __init__(self, target: Path, steps: Sequence[Step], largest: Mapping[str, float]) -> None:
        self.staging = Staging(target, "transform")
        self.steps, self.largest = steps, largest
        self.report_path = target / REPORT_NAME
        self.steps_of: dict[tuple[str, str], Sequence[Step]] = {}

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

    def find_complete(self, chosen: Chosen) -> TransformReport | None:
        """Return the report of an earlier call with the same steps and rows, None without one."""
        target = self.staging.target
        if read_text(target / REQUEST_NAME) != self._request(chosen):
            return None
        outcomes = tuple(read_report(self.report_path))
        configs = read_layout(target).configs.values()  # one of them may contain all others
        files = {path for splits in configs for paths in splits.values() for path in paths}
        num_rows = sum(pq.read_metadata(path).num_rows for path in files)
        return TransformReport(
            target, self.report_path, outcomes, num_rows, num_resumed=len(outcomes)
        )

    def _request(self, chosen: Chosen) -> str:
        """Return the steps, limits and rows of this transform as JSON."""
        steps = [[step.name, dict(step.options)] for step in self.steps]
        rows = list(chosen.stream(["signature_hash"]))
        if any(row.get("signature_hash") is None for row in rows):  # computed from the whole row
            rows = chosen.stream()
        hashes = [[row["framework"], row["id"], row["signature_hash"]] for row in rows]
        request = {"steps": steps, "largest": {**self.largest}, "rows": sorted(hashes)}
        return json.dumps(request, sort_keys=True, default=str)

    def make(
        self, chosen: Chosen, mapping: ResumableMap, open_pool: Callable[[str], Pool], count: Count
    ) -> list[Result]:
        """Transform the rows and return the results in the order of `chosen`."""
        places = {name: place for place, name in enumerate(chosen.names)}
        samples = (
            (places[row["framework"], row["id"]], _read(row), row["family"])
            for row in chosen.stream()
        )
        planned = plan(self.steps, samples)
        if planned is not None:
            self.steps_of = dict(zip(places, planned, strict=True))

        def run_all() -> Generator[Result, None, None]:
            for framework in dict.fromkeys(framework for framework, _ in places):
                items = map(self._item, chosen.of([framework]).stream())
                with contextlib.closing(open_pool(framework)) as pool:
                    yield from mapping.run(items, pool)

        with contextlib.closing(run_all()) as results:
            return mapping.collect(results, [row_name(*name) for name in places], count)

    def finish(
        self, chosen: Chosen, results: Sequence[Result], num_resumed: int, pool: Pool
    ) -> TransformReport:
        """Write the dataset and the report from the parts."""
        assembly = Assembly()
        for result in results:
            assembly.add(result)
        outcomes = tuple(map(_outcome, results))

        def write(staged: Path) -> None:
            run_plans(([plan] for plan in assembly.plans(staged)), self.staging, pool)
            write_text(staged / REQUEST_NAME, self._request(chosen))
            write_readme(staged)

        out, report_path = self.staging.publish_with_report(
            REPORT_NAME, outcomes, write if assembly.num_rows else None
        )
        return TransformReport(out, report_path, outcomes, assembly.num_rows, num_resumed)

    def _item(self, row: Mapping[str, Any]) -> Item:
        steps = self.steps_of.get((row["framework"], row["id"]), self.steps)
        described = [{"name": step.name, "options": step.options} for step in steps]
        is_small = all((row.get(name) or 0) <= most for name, most in self.largest.items())
        retry = {"may_run": False} if is_small and self.can_do_without_run else None
        return row_item(row, {"steps": described, "may_run": is_small}, retry)


def _read(row: Mapping[str, Any]) -> Sample | None:
    try:
        return Sample.from_row(row)
    except GraphNetError:
        return None


def _outcome(result: Result) -> GraphOutcome:
    framework, _, name = result.name.partition(":")
    if result.lost:
        reason, message = result.refusal
        return GraphOutcome(name, framework, has_run=False, refused=(Refusal(reason, "", message),))
    refused = tuple(Refusal(**refusal) for refusal in result.notes["refused"])
    has_run = result.notes["has_run"]
    return GraphOutcome(name, framework, len(result.notes["made"]), has_run, refused)

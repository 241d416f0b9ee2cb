"""`convert`: write samples in the formats of other tools, one confined process per sample."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..atomic import temporary_directory, write_bytes
from ..errors import RunError, raises_only
from ..isolation import Finished, Limits, PoolJob, Work, open_pool
from ..paths import place_inside
from ..storage.filters import Filters, as_filters
from ..storage.mapping import Count, ignore, write_job
from ..storage.selection import require
from ..terminal import counted
from .formats import Format, find_format
from .worker import EXACT_T, PHASES

LIMITS = Limits(default_timeout_s=600.0, memory_bytes=8 * 2**30)
"""Limits of the process of one sample."""
MAX_REASON = 500
"""Maximum length of a reason in a report."""


@dataclasses.dataclass(frozen=True)
class Converted:
    """The outcome for one sample: the path of its file, or the reason why it has no file.

    `min_t` is the smallest t at which the loaded file agrees with eager, and -99 if all elements
    are equal. It is None for random outputs and for formats without outputs.
    """

    id: str
    format: str
    path: Path | None
    min_t: float | None = None
    reason: str = ""

    @property
    def status(self) -> str:
        """`failed`, or how the file compares with eager."""
        if self.path is None:
            return "failed"
        if self.min_t is None:
            return "written"
        return "bit-equal" if self.min_t <= EXACT_T else f"right at t = {self.min_t:.3g}"

    @property
    def detail(self) -> str:
        """The path of the file, or the reason why there is no file."""
        return self.reason if self.path is None else str(self.path)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as a JSON-compatible mapping."""
        return dataclasses.asdict(self) | {"path": None if self.path is None else str(self.path)}


@dataclasses.dataclass(frozen=True)
class ConversionReport:
    """The outcomes of a conversion, in the order of the samples."""

    out: Path
    outcomes: tuple[Converted, ...]

    @property
    def failures(self) -> list[Converted]:
        """The samples without a file."""
        return [outcome for outcome in self.outcomes if outcome.path is None]

    def summary(self) -> str:
        """Return a sentence on the number of files and failures."""
        written = len(self.outcomes) - len(self.failures)
        text = (
            f"{counted(written, 'file')} of {counted(len(self.outcomes), 'sample')} in {self.out}"
        )
        return f"{text}; {counted(len(self.failures), 'failure')}" if self.failures else text


@raises_only(RunError)
def convert(
    samples: Any,
    to: str,
    out: str | os.PathLike[str],
    *,
    filters: Filters | Any = None,
    dataset: str | os.PathLike[str] = "graphnet",
    jobs: int | None = None,
    limits: Limits = LIMITS,
    on_progress: Count = ignore,
) -> ConversionReport:
    """Write samples in the format `to` (one of `FORMATS`) below the directory `out`.

    Each sample is converted in a separate confined process, where the written file is loaded
    again. A program is called with the sample's inputs, and its outputs must agree with eager's at
    t = -3. A data flow graph must have the nodes and edges of the sample. `samples`, `filters` and
    `dataset` select samples as in `run`. Files are named after the ids and appear when they are
    complete and checked; they replace files of earlier calls. A sample that cannot be converted is
    a failure in the report.

    Raises:
        RunError: there is no such format.
        MissingExtraError: a package that the format needs is not installed.
        DatasetNotFoundError: no sample has this name or passes the filters.

    >>> from graphnet_datasets.sample import Input, Op, Sample, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> relu = Sample("example/relu", "torch", "other", (Input("input", Value("float32", (2, 3))),),
    ...     (Op("torch.relu", (Ref(0),)),), (Ref(1),))
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = convert(relu, "networkx", folder)
    ...     [outcome.path.name for outcome in report.outcomes]
    ['relu.json']
    """
    form = find_format(to)
    form.check_installed()
    chosen = require(samples, as_filters(filters), dataset=dataset)
    outcomes: dict[tuple[str, str], Converted] = {}
    place = Path(out)
    work = Work("graphnet_datasets.conversion.worker", PHASES, limits)
    with (
        temporary_directory() as temporary,
        contextlib.closing(open_pool(work, "local", jobs)) as pool,
    ):
        for finished in pool.run(_jobs(chosen.stream(), form, Path(temporary))):
            payload = finished.job.payload
            Path(payload["row"]).unlink(missing_ok=True)
            converted = _take(payload["id"], finished, form, place)
            outcomes[payload["framework"], payload["id"]] = converted
            on_progress(len(outcomes), len(chosen))
    return ConversionReport(place, tuple(outcomes[name] for name in chosen.names))


def _jobs(rows: Iterable[Mapping[str, Any]], form: Format, folder: Path) -> Iterator[PoolJob]:
    for number, row in enumerate(rows):
        path = folder.absolute() / f"{number}.arrow"
        write_job(str(path), [row], {"format": form.name})
        payload = {"row": str(path), "id": str(row["id"]), "framework": str(row["framework"])}
        yield PoolJob(payload["id"], payload, reads=(str(path),))


def _take(sample_id: str, finished: Finished, form: Format, out: Path) -> Converted:
    """Write the file of a finished job, and return its outcome."""
    messages = finished.outcome.merged()
    if finished.result is None:
        reason = finished.reason or str(messages.get("problem") or "It wrote no file.")
        return Converted(sample_id, form.name, None, reason=" ".join(reason.split())[:MAX_REASON])
    path = place_inside(out, f"{sample_id}{form.suffix}", "the id of a sample")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, finished.result)
    min_t = messages.get("min_t")
    return Converted(sample_id, form.name, path, min_t if type(min_t) in (int, float) else None)

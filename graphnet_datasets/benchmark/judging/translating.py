"""Translation of many samples to another framework, compared with the originals."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import TranslationError
from ...frameworks import framework_named
from ...isolation import LocalPool
from ...sample import Sample
from ...schema import sample_to_row
from ...storage.mapping import Count, MapWorker, Result, ResumableMap, ignore, row_item
from ...storage.selection import Chosen
from ...storage.staging import Staging
from ...storage.table import to_arrow
from ...transforms import translate
from .equivalence import Comparer


@dataclasses.dataclass(frozen=True, slots=True)
class Translation:
    """The outcome of a translation; `result` has its row if the sample can be translated.

    `min_t` is the smallest tolerance at which the translation agrees with the original. It is None
    if they were not compared, or could not be compared for a `reason`.
    """

    sample_id: str
    result: Result
    min_t: float | None = None
    reason: str = ""

    def problem(self, tolerance: float | None) -> str:
        """Return why the translation is not good enough, or ""; None requires no agreement."""
        if not self.result.num_rows:
            return self.reason
        if tolerance is None or (self.min_t is not None and self.min_t <= tolerance):
            return ""
        reason = self.reason or f"it agrees only at t = {self.min_t:.2f}"
        return f"{self.sample_id}: {reason}"


def translate_rows(
    chosen: Chosen,
    staging: Staging,
    *,
    is_checked: bool,
    jobs: int,
    on_progress: Count = ignore,
) -> Iterator[Translation]:
    """Yield the translation of each torch sample to paddle, in order of completion.

    With `is_checked`, each sample and its translation run on the same inputs, in isolated
    processes. Results are stored in `staging`, from which an equal call resumes.
    """
    versions = {name: framework_named(name).versions() for name in ("torch", "paddle")}
    mapping = ResumableMap(staging, {"is_checked": is_checked, "versions": versions})
    with contextlib.closing(LocalPool(_make_worker, jobs)) as pool:
        items = map(row_item, chosen.stream())
        on_progress(0, len(chosen))
        for done, result in enumerate(mapping.run(items, pool), 1):
            on_progress(done, len(chosen))
            min_t = result.notes.get("min_t")
            yield Translation(
                result.sample_id,
                result,
                None if min_t is None else float(min_t),
                result.notes["reason"],
            )
    mapping.report_ignored()


def _make_worker() -> MapWorker:
    comparer = Comparer()

    def apply(row: Mapping[str, Any], job: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        sample = Sample.from_row(row)
        try:
            translated = translate(sample)
        except TranslationError as error:
            return [], {"reason": str(error)}
        notes: dict[str, Any] = {"reason": ""}
        if job["is_checked"]:
            comparison = comparer.compare(sample, translated)
            notes["reason"] = comparison.reason
            if comparison.min_t is not None:
                notes["min_t"] = str(comparison.min_t)  # JSON has no infinity
        return [to_arrow([sample_to_row(translated)])], notes

    return MapWorker(apply, comparer.close)

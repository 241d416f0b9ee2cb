"""`diagnose`: runs a subset under a compiler and bisects the worst samples."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..atomic import write_text
from ..benchmark import Settings, expected_verdicts, run_records
from ..bisection import Budget, Progress, bisect
from ..bisection.bisecting import default_settings
from ..bisection.trials import TrialRunner
from ..errors import GraphNetError
from ..report.names import slug
from ..scores import Outcome
from ..scores.summary_text import describe_run
from ..storage.filters import Filters
from ..storage.selection import load_sample
from .choosing import Subset
from .machine import Machine
from .result import RUNS_NAME, Diagnosis, Finding, is_known_bug

NUM_WORST = 3
"""Maximum number of bisected samples."""
RUN_SHARE = 0.6
"""Share of the time for the runs; the bisections share the rest."""
MIN_BISECTION_S = 15.0
"""Time of a bisection in seconds if the runs have used up the time."""
SLOW = 0.9
"""Right samples whose interval of the speedup is below this value count as slow."""


def diagnose(
    compiler: str,
    subset: Subset,
    out: str | os.PathLike[str],
    *,
    options: Mapping[str, Any] | None = None,
    framework: str = "torch",
    dataset: str = "graphnet",
    device: str = "cpu",
    settings: Settings | None = None,
    seconds: float = math.inf,
    on_record: Callable[[Mapping[str, Any]], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Diagnosis:
    """Run the samples of a subset under a compiler, and bisect the worst three.

    The records are in `out`/runs and the trials in a directory per bisected sample, so that the
    same call continues where an earlier one ended. After `RUN_SHARE` of the time, the run stops at
    the next record. `on_record` and `on_progress` are those of `run` and `bisect`.

    Raises:
        CompilerError: The compiler is unknown, unavailable or wrongly configured.
        RunError: The records cannot be stored.
        DiskError: `out` cannot be written.
    """
    start_s = time.monotonic()
    machine = Machine.read()
    place, settings = Path(out), settings or Settings()
    place.mkdir(parents=True, exist_ok=True)
    ids = write_text(place / "ids.txt", "".join(f"{name}\n" for name in subset.ids))
    runs = run_records(
        [f"@{ids}"],
        compiler,
        device,
        place / RUNS_NAME,
        options=options,
        filters=Filters(framework=(framework,)),
        source=dataset,
        settings=settings,
        on_record=on_record,
        seconds=seconds * RUN_SHARE,
    )
    expectations = expected_verdicts(runs, dataset)
    expected_ids = {item.sample_id for item in expectations if item.is_met}
    worst = choose_worst([row for row in runs.to_pylist() if row["sample_id"] not in expected_ids])
    trial_settings = default_settings(
        weights=settings.weights,
        seed=settings.seed,
        num_threads=settings.num_threads,
        memory_limit_bytes=settings.memory_limit_bytes,
        trust_remote_code=settings.trust_remote_code,
        timeouts_s={
            name: min(limit, settings.phase_timeouts_s[name])
            for name, limit in default_settings().phase_timeouts_s.items()
        },
    )
    findings = []
    if worst:
        with contextlib.closing(
            TrialRunner(device, trial_settings, compilers=(compiler,))
        ) as runner:
            for number, record in enumerate(worst):
                left_s = start_s + seconds - time.monotonic()
                share_s = max(left_s / (len(worst) - number), MIN_BISECTION_S)
                findings.append(
                    _bisect(
                        record,
                        compiler,
                        place / slug(record["sample_id"]),
                        options=options,
                        framework=framework,
                        dataset=dataset,
                        runner=runner,
                        budget=Budget(seconds=share_s),
                        on_progress=on_progress,
                    )
                )
    return Diagnosis(
        compiler=compiler,
        machine=machine,
        subset=subset,
        out=place,
        runs=runs,
        expectations=tuple(expectations),
        findings=tuple(findings),
        seconds=time.monotonic() - start_s,
    )


def choose_worst(records: list[dict[str, Any]], count: int = NUM_WORST) -> list[dict[str, Any]]:
    """Return the records of the worst samples: wrong, failed, then slow.

    Failures with different messages come first, whole graphs and parts before known bugs, and among
    equals those with the largest error.

    >>> records = [
    ...     {"sample_id": "a", "status": "ok", "min_t": -5.0, "speedup": 0.5, "speedup_high": 0.6},
    ...     {"sample_id": "b", "status": "ok", "min_t": -9.0, "speedup": 2.0, "speedup_high": 2.1},
    ...     {"sample_id": "c", "status": "ok", "min_t": 2.0, "speedup": 1.0, "speedup_high": 1.0},
    ... ]
    >>> [record["sample_id"] for record in choose_worst(records)]
    ['c', 'a']
    """
    ranked = []
    for record in records:
        outcome, _ = describe_run(record)
        is_bug = is_known_bug(record["sample_id"])
        if outcome is Outcome.WRONG:
            min_t = math.inf if record.get("min_t") is None else record["min_t"]
            ranked.append(((0, is_bug, -min_t), ("wrong", is_bug), record))
        elif outcome is Outcome.FAILED:
            message = (record.get("error_message") or "").partition("\n")[0]
            kind = record["status"], record.get("error_type"), message
            ranked.append(((1, is_bug, 0.0), kind, record))
        elif outcome is Outcome.RIGHT and _slow_bound(record) is not None:
            ranked.append(((2, is_bug, record["speedup"]), ("slow", False), record))
    ranked.sort(key=lambda item: item[0])
    firsts: dict[Any, dict[str, Any]] = {}
    others = []
    for (group, *_), kind, record in ranked:
        # A slow sample is no substitute for a second wrong or failed one.
        if group < 2 and kind not in firsts:
            firsts[kind] = record
        else:
            others.append(record)
    return [*firsts.values(), *others][:count]


def _slow_bound(record: Mapping[str, Any]) -> float | None:
    """Return the speedup below which parts of a slow sample are slow; None if it is not slow.

    The bound is the geometric mean of 1 and the upper end of the sample's interval, so that noise
    does not hide the slowdown.
    """
    high = record.get("speedup_high")
    if not high or not math.isfinite(high) or high >= SLOW:
        return None
    return math.sqrt(high)


def _bisect(
    record: Mapping[str, Any],
    compiler: str,
    place: Path,
    *,
    framework: str,
    dataset: str,
    **arguments: Any,
) -> Finding:
    """Bisect the sample of one record and write its minimal test."""
    outcome, verdict = describe_run(record)
    finding = Finding(record["sample_id"], outcome, " ".join(verdict.split()))
    slower_than = _slow_bound(record) if outcome is Outcome.RIGHT else None
    try:
        sample = load_sample(record["sample_id"], dataset, framework=framework)
        bisection = bisect(sample, compiler, place, slower_than=slower_than, **arguments)
        files = bisection.write(place)
    except GraphNetError as error:
        return dataclasses.replace(finding, reason=str(error))
    return dataclasses.replace(finding, bisection=bisection, files=files)

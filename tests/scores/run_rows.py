"""Run records for tests, made by hand or drawn."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from graphnet_datasets.schema import Status, empty_run


def make_run(sample_id: str, speedup: float | None = None, **columns: Any) -> dict[str, Any]:
    """Return a run record: `ok` with `min_t` -5 where a speedup is given."""
    row = empty_run() | {"sample_id": sample_id, "compiler": "inductor", "device": "cpu"}
    if speedup is not None:
        row |= {"status": "ok", "speedup": speedup, "min_t": -5.0}
    unknown = set(columns) - set(row)
    assert not unknown, unknown
    return row | columns


FOUR = [
    make_run("fast", 2.0, min_t=-5.0, family="f", null_t=-1.0, task="cv"),
    make_run("slow", 0.5, min_t=-2.5, family="f", null_t=1.0, task="cv"),
    make_run("crashed", status="run_failed", family="g", task="nlp"),
    make_run("refused", status="compile_failed", family="h", task="nlp"),
]
"""Four samples with scores that a person can work out."""

BROKEN_EAGER = make_run(
    "broken", status="baseline_failed", reason="out_of_memory", error_type="MemoryError"
)

TOLERANCES = st.sampled_from([-math.inf, math.inf]) | st.floats(-12, 6) | st.integers(-12, 6)


@st.composite
def run_rows(draw: st.DrawFn, statuses: tuple[Status, ...] = tuple(Status)) -> list[dict[str, Any]]:
    """Draw the records of one arm, at least one of them in N under every variant."""
    rows = []
    for index in range(draw(st.integers(1, 12))):
        choices = [Status.OK, Status.COMPILE_FAILED] if index == 0 else statuses
        status = draw(st.sampled_from(choices))
        row = make_run(
            f"sample {index}",
            status=str(status),
            family=draw(st.sampled_from([None, "f", "g", "h"])),
            null_t=draw(st.none() | TOLERANCES.map(float).filter(math.isfinite)),
        )
        if status is Status.OK:
            row |= {
                "speedup": draw(st.floats(1e-3, 1e3)),
                "min_t": float(draw(TOLERANCES)),
                # What differs from itself by as much as from zeros is out of N.
                "is_deterministic": draw(st.sampled_from([None, True, False][: 2 + (index > 0)])),
                "determinism_t": draw(st.none() | st.floats(-10, 4)),
            }
        rows.append(row)
    return rows

"""Variants of the scores: the report's interpretation and upstream's two, as data.

A variant defines which runs are in N, the error code c of each failure, the t from which a code is
forgiven, and whose tolerance decides correctness at positive t.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

from ..errors import ScoreError
from ..schema import Status

TOLERANCES: tuple[int, ...] = tuple(range(-10, 5))
"""The integers t at which scores are computed, in all variants except upstream's."""
_UPSTREAM_TOLERANCES = tuple(range(-10, 6))

Metric: TypeAlias = Literal["S", "ES"]
"""The two scores."""

TOLERANCE = -3
"""The t at which outputs must be right. At t = 0, an all-zero output would pass on any sample."""

ACCURACY = 1
"""The error code of a run that ended well but whose output is wrong at t, in every variant."""


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """An interpretation of the scores.

    `error_names[c - 1]` names code c, and `forgiven_from[c - 1]` is the smallest t that forgives
    it. Scores are computed at `tolerances`. `last_tolerance_of_s` and `last_tolerance_of_es` are
    the largest t at which the score uses the tolerance of t itself; at greater t, correctness no
    longer changes. With `is_held_against_zeros`, an output is wrong if it is no nearer to eager's
    than zeros or the mean. With `leaves_out_undecidable`, N excludes a sample at each t that does
    not decide it. `codes` maps a status to its code, and `upstream_codes` an upstream word, which
    takes precedence. A status other than `ok` without a code is not in N.
    """

    name: str
    default_p: float
    error_names: tuple[str, ...]
    forgiven_from: tuple[float, ...]
    tolerances: tuple[int, ...]
    last_tolerance_of_s: int
    last_tolerance_of_es: int
    is_defined_above_zero: bool
    has_determinism_floor: bool
    is_held_against_zeros: bool
    leaves_out_undecidable: bool
    codes: Mapping[Status, int]
    upstream_codes: Mapping[str, int] | None

    def last_tolerance(self, metric: Metric) -> int:
        """Return the largest t whose own tolerance decides correctness for a score."""
        return self.last_tolerance_of_s if metric == "S" else self.last_tolerance_of_es


_REPORT_CODES = {
    Status.OUTPUT_MISMATCH: 2,
    Status.RUN_FAILED: 2,
    Status.COMPILE_FAILED: 3,
}

REPORT = Variant(
    name="report",
    default_p=0.1,
    error_names=("accuracy", "runtime", "compile"),
    forgiven_from=(1, 2, 3),
    tolerances=TOLERANCES,
    last_tolerance_of_s=0,
    last_tolerance_of_es=0,
    is_defined_above_zero=False,
    has_determinism_floor=True,
    is_held_against_zeros=True,
    leaves_out_undecidable=False,
    codes=_REPORT_CODES,
    upstream_codes=None,
)
"""The equations of the technical report (arXiv 2510.24035, section 3.2, appendices B and C): a
positive t is a level of forgiven errors, correctness is that of t = 0, and S is undefined for
positive t. There are two additions: zeros are never correct, although the report's tolerance passes
them at t = 0, and differences no larger than eager's own nondeterminism are not wrong.
"""

DECIDABLE = dataclasses.replace(REPORT, name="decidable", leaves_out_undecidable=True)
"""The report's equations over the samples that t decides: each t excludes the samples on which
zeros would pass or eager itself fails against float64.
"""

UPSTREAM = Variant(
    name="upstream",
    default_p=0.0,
    error_names=("accuracy", "runtime", "compile"),
    forgiven_from=(1, 3, 3),
    tolerances=_UPSTREAM_TOLERANCES,
    last_tolerance_of_s=5,
    last_tolerance_of_es=1,
    is_defined_above_zero=True,
    has_determinism_floor=False,
    is_held_against_zeros=False,
    leaves_out_undecidable=False,
    codes={**_REPORT_CODES, Status.BASELINE_FAILED: 2},
    upstream_codes={
        "accuracy": 1,
        "nan": 2,
        "inf": 2,
        "shape_mismatch": 2,
        "type_mismatch": 2,
        "runtime_fail": 2,
        "eager_fail": 2,
        "reference_fail": 2,
        "compile_fail": 3,
    },
)
"""Upstream's "default" interpretation, used for the report's tables: p = 0, and a failure of eager
counts as the compiler's. S forgives no failure and uses the tolerances of each t; ES uses those of
t = 1 at greater t.
"""

UPSTREAM_EXTENDED = dataclasses.replace(
    UPSTREAM,
    name="upstream-extended",
    error_names=("accuracy", "mismatch", "runtime", "compile", "baseline"),
    forgiven_from=(1, 2, 3, 4, math.inf),
    codes={
        Status.OUTPUT_MISMATCH: 2,
        Status.RUN_FAILED: 3,
        Status.COMPILE_FAILED: 4,
        Status.BASELINE_FAILED: 5,
    },
    upstream_codes={
        "accuracy": 1,
        "nan": 2,
        "inf": 2,
        "shape_mismatch": 2,
        "type_mismatch": 2,
        "runtime_fail": 3,
        "compile_fail": 4,
        "eager_fail": 5,
        "reference_fail": 5,
    },
)
"""Upstream's "mismatch_extended" interpretation: mismatched outputs have their own code, and a
failure of eager is never forgiven.
"""

VARIANTS: dict[str, Variant] = {
    variant.name: variant for variant in (REPORT, DECIDABLE, UPSTREAM, UPSTREAM_EXTENDED)
}


def find_variant(name: str) -> Variant:
    """Return the variant with this name.

    Raises:
        ScoreError: No variant has this name.

    >>> find_variant("upstream").default_p
    0.0
    """
    if name not in VARIANTS:
        raise ScoreError(
            f"There is no variant `{name}` of the scores. Choose one of "
            f"{', '.join(f'`{variant}`' for variant in VARIANTS)}."
        )
    return VARIANTS[name]


def check_parameters(p: float, b: float) -> None:
    """Reject a penalty that would reward slowness or failure.

    Raises:
        ScoreError: p is negative or not finite, or b is not in (0, 1].
    """
    if not (math.isfinite(p) and p >= 0):
        raise ScoreError(
            f"The penalty of slow samples p is {p}, but it must be a finite number that is not "
            "negative: a correct sample with speedup s < 1 counts as s^(p + 1)."
        )
    if not 0 < b <= 1:
        raise ScoreError(
            f"The value of a failed sample b is {b}, but it must be above 0 and at most 1: a "
            "failed sample counts as a speedup of b."
        )

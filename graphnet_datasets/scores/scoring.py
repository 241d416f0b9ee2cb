"""S(t) and ES(t), from the technical report (arXiv 2510.24035, section 3.2, appendices A to C).

With N samples, M of them correct at t and K of those slower than eager (speedup s < 1):

    alpha = geometric mean of s over the correct           (1 if M = 0)
    beta = geometric mean of s over the correct with s < 1 (1 if K = 0)
    lambda = M / N, eta = K / M                            (eta = 0 if M = 0)
    S(t) = alpha^lambda * beta^(lambda * eta * p) * b^(1 - lambda)
    ES(t) = alpha^lambda * beta^(lambda * eta * p) * gamma(t)^(1 - lambda)
    gamma(t) = b^(sum over c of pi_c * [t does not forgive c]), and b where t <= 0

where pi_c is the share of error code c among the failed. The same numbers are geometric means over
the samples: of s (correct, s >= 1), s^(p + 1) (correct, s < 1), b (failed), or 1 (forgiven).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ScoreError, raises_only
from . import intervals
from .records import Floats, Records, make_records
from .result import Scores
from .run_sets import Duplicates, as_table, single_arm, without_duplicates
from .variants import ACCURACY, Metric, Variant, check_parameters, find_variant


@raises_only(ScoreError)
def speedup_score(
    runs: Any,
    p: float | None = None,
    b: float = 0.1,
    variant: str = "report",
    *,
    duplicates: Duplicates = "refuse",
    has_intervals: bool = True,
) -> Scores:
    """Compute S(t) of the runs of one compiler at t = -10 … 4, in upstream's variants up to t = 5.

    `runs` is a `datasets.Dataset` of run records, an Arrow table, a path or rows; `p` is the
    penalty of slow samples (by default 0.1, and 0 in upstream's variants), `b` the value of a
    failed sample, `variant` one of "report", "decidable", "upstream", "upstream-extended". In the
    first two, S is undefined for t > 0 and None there. Intervals are 95 % over families, and None
    with fewer than five families.

    Raises:
        ScoreError: a parameter is out of range, the runs are of several compilers, a sample has
            several runs, or no run counts.
        SchemaError: the records lack columns.

    >>> rows = [
    ...     {"sample_id": "a", "status": "ok", "speedup": 2.0, "min_t": -5.0},
    ...     {"sample_id": "b", "status": "compile_failed"},
    ... ]
    >>> scores = speedup_score(rows)
    >>> round(scores.at(0)["S"], 6)  # (2 * 0.1) ** (1 / 2)
    0.447214
    """
    return _score(runs, "S", p, b, variant, duplicates, has_intervals)


@raises_only(ScoreError)
def error_aware_speedup_score(
    runs: Any,
    p: float | None = None,
    b: float = 0.1,
    variant: str = "report",
    *,
    duplicates: Duplicates = "refuse",
    has_intervals: bool = True,
) -> Scores:
    """Compute ES(t) of the runs of one compiler at t = -10 … 4, in upstream's variants up to t = 5.

    For t <= 0 it equals S(t). From t = 1 on, failures are forgiven code by code: wrong accuracy
    from t = 1, then crashes from t = 2, then failed compilation from t = 3 (variant "report").
    Parameters and errors are those of `speedup_score`.

    >>> rows = [
    ...     {"sample_id": "a", "status": "ok", "speedup": 2.0, "min_t": -5.0},
    ...     {"sample_id": "b", "status": "compile_failed"},
    ... ]
    >>> scores = error_aware_speedup_score(rows)
    >>> [round(scores.at(t)["ES"], 6) for t in (0, 2, 3)]
    [0.447214, 0.447214, 1.414214]
    """
    return _score(runs, "ES", p, b, variant, duplicates, has_intervals)


def score_of_components(
    alpha: float, beta: float, lambda_: float, eta: float, gamma: float, p: float
) -> float:
    """Return a score as the product of its components; `gamma` is b for S(t).

    >>> score_of_components(alpha=2.0, beta=1.0, lambda_=0.5, eta=0.0, gamma=0.1, p=0.1)
    0.447213595499958
    """
    return alpha**lambda_ * beta ** (lambda_ * eta * p) * gamma ** (1 - lambda_)


def score_records(
    records: Records,
    metric: Metric,
    p: float,
    b: float,
    variant: Variant,
    *,
    compiler: str = "",
    has_intervals: bool = True,
) -> Scores:
    """Compute the scores of records in array form.

    Raises:
        ScoreError: No records are in N, or p or b is out of range.
    """
    check_parameters(p, b)
    if records.num_samples == 0:
        raise ScoreError(_nothing_to_score(records))
    t = np.array(variant.tolerances)
    deciding_t = np.minimum(t, variant.last_tolerance(metric))
    is_undecidable = records.is_undecidable(deciding_t)
    counts_in = ~is_undecidable if variant.leaves_out_undecidable else np.True_
    is_correct = records.passes(deciding_t) & counts_in
    errors = np.where(records.code == 0, ACCURACY, records.code)
    errors = np.where(is_correct | ~np.broadcast_to(counts_in, is_correct.shape), 0, errors)
    forgiven_from = np.array([-math.inf, *variant.forgiven_from])
    is_penalised = errors > 0
    if metric == "ES":
        is_penalised &= (t[:, None] < forgiven_from[errors]) | (t <= 0)[:, None]
    slow = np.minimum(records.log_speedup, 0.0)
    log_rectified = np.where(is_correct, records.log_speedup + p * slow, 0.0)
    log_rectified += np.where(is_penalised, math.log(b), 0.0)
    log_error = np.where(is_correct, records.log_error * (1 + p * (slow < 0)), 0.0)
    num_samples = np.broadcast_to(counts_in, is_correct.shape).sum(axis=1)

    columns: dict[str, list[Any]] = {"t": t.tolist()}
    columns |= _scores_and_intervals(
        records, metric, log_rectified, log_error, counts_in, has_intervals
    )
    columns |= _components(records, is_correct, slow, num_samples)
    num_codes = len(variant.error_names)
    counts = np.stack([(errors == c).sum(axis=1) for c in range(1, num_codes + 1)], axis=1)
    if metric == "ES":
        columns |= _gamma_and_pi(counts, t, b, variant)
    columns["num_samples"] = num_samples.tolist()
    columns["num_correct"] = is_correct.sum(axis=1).tolist()
    for name, count in zip(variant.error_names, counts.T, strict=True):
        columns[f"num_{name}"] = count.tolist()
    columns["vacuous_share"] = _share(records.is_vacuous(deciding_t), records.vacuous_from)
    columns["undecidable_share"] = _share(
        is_undecidable, np.fmax(records.vacuous_from, records.eager_t)
    )
    if metric == "S" and not variant.is_defined_above_zero:
        for name in [name for name in columns if name == "S" or name.startswith("S_")]:
            columns[name] = [
                score if row_t <= 0 else None
                for score, row_t in zip(columns[name], variant.tolerances, strict=True)
            ]
    return Scores(
        metric=metric,
        p=p,
        b=b,
        variant=variant.name,
        compiler=compiler,
        num_samples=records.num_samples,
        num_families=records.num_families,
        num_without_family=records.num_without_family,
        num_nondeterministic=records.num_nondeterministic,
        warnings=records.warnings,
        conditions=records.conditions,
        excluded=records.excluded,
        columns=columns,
    )


def _score(
    runs: Any,
    metric: Metric,
    p: float | None,
    b: float,
    variant: str,
    duplicates: Duplicates,
    has_intervals: bool,
) -> Scores:
    chosen = find_variant(variant)
    p = chosen.default_p if p is None else p
    check_parameters(p, b)
    table = as_table(runs)
    compiler = single_arm(table)
    records = make_records(without_duplicates(table, duplicates), chosen)
    return score_records(
        records, metric, p, b, chosen, compiler=compiler, has_intervals=has_intervals
    )


def _nothing_to_score(records: Records) -> str:
    if not records.excluded:
        return "There is nothing to score: there are no run records."
    statuses = sorted({row["status"] for row in records.excluded})
    return (
        f"There is nothing to score: each of the {len(records.excluded)} runs ended "
        f"{' or '.join(f'`{status}`' for status in statuses)}, which is not the compiler's fault. "
        "Read their errors in the columns `error_type` and `error_message`."
    )


def _scores_and_intervals(
    records: Records,
    metric: Metric,
    log_rectified: Floats,
    log_error: Floats,
    counts_in: npt.NDArray[np.bool_] | np.bool_,
    has_intervals: bool,
) -> dict[str, list[Any]]:
    """Return the scores over samples and over families at each t, with their intervals."""
    names = (metric, f"{metric}_family")
    if counts_in.ndim == 0:
        rows = _score_rows(log_rectified, log_error, records.family, has_intervals)
    else:  # samples, and so families, differ by t
        parts = [
            _score_rows(values[None, which], errors[None, which], records.family[which], True)
            for values, errors, which in zip(log_rectified, log_error, counts_in, strict=True)
        ]
        rows = [[column[0] for column in columns] for columns in zip(*parts, strict=True)]
        if not has_intervals:
            rows = [
                column if index % 3 == 0 else [None] * len(column)
                for index, column in enumerate(rows)
            ]
    suffixes = ("", "_low", "_high")
    return dict(
        zip((f"{name}{suffix}" for name in names for suffix in suffixes), rows, strict=True)
    )


def _score_rows(
    log_rectified: Floats, log_error: Floats, family: npt.NDArray[np.int64], has_intervals: bool
) -> list[list[float | None]]:
    """Return the score, low and high over samples, then over families, for each row."""
    num_rows, num_samples = log_rectified.shape
    nothing: list[float | None] = [None] * num_rows
    if num_samples == 0:
        return [nothing] * 6
    _, numbers = np.unique(family, return_inverse=True)
    num_families = int(numbers.max()) + 1
    totals, sizes = intervals.family_totals(log_rectified, numbers, num_families)
    bounds = None
    if has_intervals:
        timing, _ = intervals.family_totals(log_error**2, numbers, num_families)
        bounds = intervals.intervals(totals, sizes, timing)
    means = log_rectified.mean(axis=1), intervals.family_means(totals, sizes)
    columns: list[list[float | None]] = []
    for index, mean in enumerate(means):
        columns.append(np.exp(mean).tolist())
        columns += [nothing, nothing] if bounds is None else np.exp(bounds[index]).tolist()
    return columns


def _components(
    records: Records,
    is_correct: npt.NDArray[np.bool_],
    slow: Floats,
    num_samples: npt.NDArray[np.int64],
) -> dict[str, list[float]]:
    num_correct = is_correct.sum(axis=1)
    num_slow = (is_correct & (slow < 0)).sum(axis=1)
    alpha = np.exp(is_correct @ records.log_speedup / np.maximum(num_correct, 1))
    beta = np.exp(is_correct @ slow / np.maximum(num_slow, 1))
    return {
        "alpha": alpha.tolist(),
        "beta": beta.tolist(),
        "lambda": (num_correct / np.maximum(num_samples, 1)).tolist(),
        "eta": (num_slow / np.maximum(num_correct, 1)).tolist(),
    }


def _gamma_and_pi(
    counts: npt.NDArray[np.int64], t: npt.NDArray[np.int64], b: float, variant: Variant
) -> dict[str, list[float]]:
    pi = counts / np.maximum(counts.sum(axis=1), 1)[:, None]
    is_forgiven = t[:, None] >= np.array(variant.forgiven_from)
    exponent = np.where(t <= 0, 1.0, np.where(is_forgiven, 0.0, pi).sum(axis=1))
    shares = {f"pi_{c}": share.tolist() for c, share in enumerate(pi.T, start=1)}
    return {"gamma": (b**exponent).tolist(), **shares}


def _share(is_marked: npt.NDArray[np.bool_], known_from: Floats) -> list[float | None]:
    """Return the share of marked samples at each t; None if it is unknown for all samples."""
    if np.isnan(known_from).all():
        return [None] * len(is_marked)
    return is_marked.mean(axis=1).tolist()

"""Comparison of output elements in the parent process."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...schema import OUTPUT_FIELDS, Reason
from ...scores.formats import decode, decode_wide
from ...scores.tolerance import (
    is_uniform,
    largest_magnitude,
    min_t,
    null_mean_t,
    null_t,
    oracle_t,
    rounding_step,
    tolerances,
)

_CHUNK = 2**15
"""Elements per chunk: 256 KiB of float64, so that repeated passes stay in cache."""


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """One output: its canonical dtype name and its elements, in the output's shape.

    Dtypes that NumPy lacks are stored as unsigned integers with the same bits
    (`scores.formats.decode`). For an excerpt, the elements are `part` of the flattened output and
    `whole_shape` is the shape of the output.
    """

    dtype: str
    elements: npt.NDArray
    whole_shape: tuple[int, ...] | None = None
    part: slice | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole output."""
        return self.elements.shape if self.whole_shape is None else self.whole_shape


@dataclasses.dataclass(frozen=True, slots=True)
class Drawn:
    """One output in repeated calls on the same inputs with different seeds.

    `elements`, (calls, elements), contains every `step`-th element of an output of shape `shape`.
    """

    dtype: str
    shape: tuple[int, ...]
    elements: npt.NDArray
    step: int


def find_mismatch(baseline: Sequence[Output], candidate: Sequence[Output]) -> tuple[Reason, str]:
    """Return the first structural difference between the arms' outputs, with a description.

    Checks the number of outputs, then shapes, then dtypes. Returns `Reason.NONE` and "" if all
    agree. Two empty lists of outputs count as a mismatch, since nothing could be compared.
    """
    if len(baseline) != len(candidate):
        return Reason.COUNT, (
            f"The candidate returned {len(candidate)} outputs, but eager returned {len(baseline)}."
        )
    if not baseline:
        return Reason.COUNT, "There are no outputs, so nothing could be compared."
    for index, (expected, actual) in enumerate(zip(baseline, candidate, strict=True)):
        if expected.shape != actual.shape:
            return Reason.SHAPE, (
                f"Output {index} has shape {actual.shape}, but eager's has {expected.shape}."
            )
    for index, (expected, actual) in enumerate(zip(baseline, candidate, strict=True)):
        if expected.dtype != actual.dtype:
            return Reason.DTYPE, (
                f"Output {index} has dtype {actual.dtype}, but eager's has {expected.dtype}."
            )
    return Reason.NONE, ""


def compare_outputs(
    baseline: Sequence[Output],
    candidate: Sequence[Output],
    oracle: Sequence[Output | None] | None = None,
) -> list[dict[str, Any]]:
    """Return a row of `OUTPUT_FIELDS` for each output of either arm.

    If dtype or shape differ, or one arm lacks the output, the row contains only these. `oracle`
    contains the outputs of the same graph in float64, or None for an output without comparison. The
    root mean square distance of both arms from it covers the elements at which it is finite.
    """
    rows = []
    for index in range(max(len(baseline), len(candidate))):
        expected = baseline[index] if index < len(baseline) else None
        actual = candidate[index] if index < len(candidate) else None
        row = _description(expected, actual)
        if expected is not None:
            row["null_t"] = null_t(expected.elements, expected.dtype)
            if not is_uniform(expected.elements, expected.dtype):
                row["null_mean_t"] = null_mean_t(expected.elements, expected.dtype)
        if expected is not None and actual is not None and _is_comparable(expected, actual):
            row |= _errors(expected, actual)
            row["min_t"] = min_t(actual.elements, expected.elements, expected.dtype)
            truth = oracle[index] if oracle is not None else None
            if truth is not None and truth.elements.shape == expected.elements.shape:
                row["rmse_baseline"] = _rmse(expected, truth)
                row["rmse_candidate"] = _rmse(actual, truth)
                row["rms_oracle"] = _rms(truth)
        rows.append(row)
    return rows


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def find_wrong_elements(expected: Output, actual: Output, t: float) -> list[dict[str, Any]]:
    """Return the first element that fails at `t`, and the element with the largest error.

    Each is a mapping with `index`, `candidate` and `baseline` as in `WRONG_FIELDS`. An element that
    is NaN or infinite in only one arm counts as an infinite error. The list is empty if all
    elements pass. The shapes and dtypes of both outputs agree.

    >>> eager = Output("float32", np.zeros((2, 2), "f4"))
    >>> candidate = Output("float32", np.array([[0, 0.5], [2, 0]], "f4"))
    >>> [(item["index"], item["candidate"]) for item in find_wrong_elements(eager, candidate, -3)]
    [([0, 1], '0.5'), ([1, 0], '2')]
    """
    atol, rtol = tolerances(t, expected.dtype)
    first: int | None = None
    largest, largest_error = 0, -1.0
    pairs = _chunk_pairs(actual.elements, expected.elements)
    for number, (x_raw, r_raw) in enumerate(pairs):
        x, r = decode_wide(x_raw, expected.dtype), decode_wide(r_raw, expected.dtype)
        difference = np.abs(x - r)
        is_same = (x == r) | (np.isnan(x) & np.isnan(r))
        difference = np.where(is_same, 0.0, np.nan_to_num(difference, nan=np.inf, posinf=np.inf))
        is_wrong = ~is_same & ~(difference <= atol + rtol * np.abs(r))
        is_wrong |= ~is_same & (np.isfinite(x) != np.isfinite(r))
        if first is None and is_wrong.any():
            first = number * _CHUNK + int(is_wrong.argmax())
        worst = int(difference.argmax())
        if difference[worst] > largest_error:
            largest, largest_error = number * _CHUNK + worst, float(difference[worst])
    if first is None:
        return []
    return [_describe_element(expected, actual, place) for place in (first, largest)]


def _describe_element(expected: Output, actual: Output, place: int) -> dict[str, Any]:
    """Return the index and the values of the element at a place in the flattened elements."""
    position = range(math.prod(expected.shape))[expected.part or slice(None)][place]
    index = np.unravel_index(position, expected.shape)
    element: dict[str, Any] = {"index": [int(part) for part in index]}
    for name, output in (("candidate", actual), ("baseline", expected)):
        value = decode(output.elements.reshape(-1)[place : place + 1], output.dtype)[0].item()
        element[name] = f"{value:.6g}" if isinstance(value, float | complex) else str(value)
    return element


def overall_min_t(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return the smallest t at which all outputs pass; None if an output was not compared.

    >>> overall_min_t([{"min_t": -3.5}, {"min_t": -5.0}])
    -3.5
    """
    values = [row["min_t"] for row in rows]
    return max(values) if values and None not in values else None


def overall_null_t(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return the smallest t at which a control (zeros, means or the first call) passes everywhere.

    From this t on, the check says nothing about the sample. The mean is not a control for an output
    with equal elements (`null_mean_t` is None), because it reproduces the output.

    >>> overall_null_t([{"null_t": 0.0, "null_mean_t": -0.5}, {"null_t": -1.0, "null_mean_t": 0.2}])
    -0.5
    >>> overall_null_t([{"null_t": 0.0, "null_mean_t": None}])
    0.0
    """
    if not rows or any(row["null_t"] is None for row in rows):
        return None
    # A control may combine zeros for one output with the mean for another, so each output uses its
    # easiest control.
    controls = ("null_t", "null_mean_t", "constant_t")
    return max(min(row[name] for name in controls if row.get(name) is not None) for row in rows)


def overall_stale_t(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the smallest t at which the outputs of the first call pass for the later calls.

    Returns None if an output was not compared in a later call.

    >>> overall_stale_t([{"constant_t": -4.4}, {"constant_t": -5.0}])
    -4.4
    """
    values = [row["constant_t"] for row in rows]
    return max(values) if values and None not in values else None


def eager_t(baseline: Sequence[Output], oracle: Sequence[Output | None]) -> float | None:
    """Return the smallest t at which eager passes against the float64 oracle.

    Outputs without an oracle (None) do not count. Returns None if an output cannot be compared with
    the oracle: the number of outputs or a shape differs, or the dtype has no tolerance and is
    widened.

    >>> eager = Output("float32", np.array([1.0, 2.0], "f4"))
    >>> eager_t([eager], [Output("float64", np.array([1.0, 2.5]))]).__round__(3)
    -0.754
    """
    thresholds = []
    for ours, truth in zip(baseline, oracle, strict=False):
        if truth is None:
            continue
        if ours.shape != truth.shape:
            return None
        thresholds.append(oracle_t(ours.elements, decode(truth.elements, truth.dtype), ours.dtype))
    if not thresholds or len(baseline) != len(oracle) or None in thresholds:
        return None
    return max(threshold for threshold in thresholds if threshold is not None)


def count_not_finite(outputs: Sequence[Output]) -> list[tuple[int, int]]:
    """Return the number of NaN and of infinite elements of each output.

    >>> count_not_finite([Output("float32", np.array([1, np.nan, -np.inf], "f4"))])
    [(1, 1)]
    """
    counts = []
    for output in outputs:
        num_nan = num_infinite = 0
        flat = output.elements.reshape(-1)
        for start in range(0, flat.size, _CHUNK):
            numbers = decode(flat[start : start + _CHUNK], output.dtype)
            if numbers.dtype.kind in "fc" and not np.isfinite(numbers).all():
                num_nan += int(np.isnan(numbers).sum())
                num_infinite += int(np.isinf(numbers).sum())
        counts.append((num_nan, num_infinite))
    return counts


def hash_outputs(outputs: Sequence[Output]) -> str:
    """Return a hash of dtypes, shapes and elements.

    >>> one, other = Output("int8", np.zeros(2, np.int8)), Output("int8", np.ones(2, np.int8))
    >>> hash_outputs([one]) == hash_outputs([other]), len(hash_outputs([one]))
    (False, 16)
    """
    digest = hashlib.blake2b(digest_size=8)
    for output in outputs:
        digest.update(f"{output.dtype}{output.shape}".encode())
        digest.update(np.ascontiguousarray(output.elements).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def oracle_factor(dtype: str, num_elements: int) -> float:
    """Return the allowed ratio of the candidate's distance from the oracle to eager's distance.

    `torch._dynamo.utils.same` allows 2, and 3 for narrow dtypes and for outputs of fewer than 1000
    elements. Chance alone exceeds this for fewer than 12 elements. There, the factor is the square
    root of the 99.9 % quantile of the F distribution with n and n degrees of freedom.

    >>> oracle_factor("float32", 4096), oracle_factor("bfloat16", 4096), oracle_factor("float32", 8)
    (2.0, 3.0, 3.5)
    """
    usual = 3.0 if num_elements < 1000 or dtype in ("float16", "bfloat16") else 2.0
    by_chance = [factor for count, factor in _FACTORS_BY_CHANCE if num_elements >= count]
    return max(usual, by_chance[-1] if by_chance else usual)


_FACTORS_BY_CHANCE = ((1, 636.0), (2, 31.6), (3, 11.9), (4, 7.3), (6, 4.5), (8, 3.5), (12, 0.0))
"""Pairs of a number of elements and the smallest factor from this number on."""


def is_as_close_as_eager(row: dict[str, Any], factor: float | None = None) -> bool | None:
    """Return whether the candidate is at most `factor` times as far from the oracle as eager.

    `factor` defaults to `oracle_factor`. Eager's distance counts as at least half a rounding step
    for outputs of this size, which is the error of a perfect kernel. An eager arm that is exact by
    chance therefore rejects no candidate. Records without `rms_oracle` use the largest magnitude
    instead. If eager has NaN and the oracle does not, no candidate is farther than eager. Returns
    None without an oracle.
    """
    baseline, candidate = row["rmse_baseline"], row["rmse_candidate"]
    if baseline is None or candidate is None:
        return None
    if math.isnan(baseline):
        return True
    if math.isnan(candidate):
        return False
    if factor is None:
        factor = oracle_factor(row["dtype"], row["num_elements"])
    size = row.get("rms_oracle")
    if size is None and rounding_step(row["dtype"]):
        size = largest_magnitude(row["null_t"], row["dtype"])
    least = rounding_step(row["dtype"]) / 2 * (size or 0.0)
    return candidate <= factor * max(baseline, least)


def accuracy_warnings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a warning for each output that is too far from the oracle (`is_as_close_as_eager`)."""
    return [
        f"less_accurate_than_eager: output {index} is {row['rmse_candidate']:.3g} from float64 "
        f"(root mean square), where eager is {row['rmse_baseline']:.3g}."
        for index, row in enumerate(rows)
        if is_as_close_as_eager(dict(row)) is False
    ]


def _description(expected: Output | None, actual: Output | None) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(field.name for field in OUTPUT_FIELDS)
    if expected is not None:
        row["dtype"] = expected.dtype
        row["shape"] = list(expected.elements.shape)
        row["num_elements"] = expected.elements.size
    if actual is not None:
        row["candidate_dtype"] = actual.dtype
        row["candidate_shape"] = list(actual.elements.shape)
    return row


def _is_comparable(expected: Output, actual: Output) -> bool:
    return expected.dtype == actual.dtype and expected.elements.shape == actual.elements.shape


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def _errors(expected: Output, actual: Output) -> dict[str, Any]:
    """Return the largest errors over elements finite in both arms, and counts of differences."""
    max_abs_error = max_rel_error = 0.0
    num_different = 0
    is_nonfinite_mismatch = False
    for x_raw, r_raw in _chunk_pairs(actual.elements, expected.elements):
        is_different = _bits(x_raw) != _bits(r_raw)
        count = int(np.count_nonzero(is_different))
        if count == 0:
            continue
        num_different += count
        if 4 * count < is_different.size:  # extracting elements costs more than reading them
            x_raw, r_raw = x_raw[is_different], r_raw[is_different]
        x, r = decode_wide(x_raw, expected.dtype), decode_wide(r_raw, expected.dtype)
        is_finite = np.isfinite(x) & np.isfinite(r)
        if not is_finite.all():
            odd_x, odd_r = x[~is_finite], r[~is_finite]
            is_nonfinite_mismatch |= not bool(
                ((odd_x == odd_r) | (np.isnan(odd_x) & np.isnan(odd_r))).all()
            )
            x, r = x[is_finite], r[is_finite]
        if x.size == 0:
            continue
        difference = np.abs(x - r)
        relative = np.divide(difference, np.abs(r), where=r != 0, out=np.zeros(x.shape))
        max_abs_error = max(max_abs_error, float(difference.max()))
        max_rel_error = max(max_rel_error, float(relative.max()))
    return {
        "max_abs_error": max_abs_error,
        "max_rel_error": max_rel_error,
        "mismatch_share": num_different / max(1, expected.elements.size),
        "is_nonfinite_mismatch": is_nonfinite_mismatch,
    }


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def _rmse(output: Output, oracle: Output) -> float:
    total, count = 0.0, 0
    for x_raw, truth_raw in _chunk_pairs(output.elements, oracle.elements):
        x, truth = decode_wide(x_raw, output.dtype), decode_wide(truth_raw, oracle.dtype)
        is_finite = np.isfinite(truth)
        total += float((np.abs(x[is_finite] - truth[is_finite]) ** 2).sum())
        count += int(np.count_nonzero(is_finite))
    return math.sqrt(total / count) if count else 0.0


@np.errstate(over="ignore", invalid="ignore")
def _rms(output: Output) -> float:
    total, count = 0.0, 0
    flat = output.elements.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        numbers = np.abs(decode_wide(flat[start : start + _CHUNK], output.dtype))
        numbers = numbers[np.isfinite(numbers)]
        total += float((numbers**2).sum())
        count += numbers.size
    return math.sqrt(total / count) if count else 0.0


def _chunk_pairs(left: npt.NDArray, right: npt.NDArray) -> list[tuple[npt.NDArray, npt.NDArray]]:
    flat_left, flat_right = left.reshape(-1), right.reshape(-1)
    return [
        (flat_left[start : start + _CHUNK], flat_right[start : start + _CHUNK])
        for start in range(0, flat_left.size, _CHUNK)
    ]


def _bits(chunk: npt.NDArray) -> npt.NDArray:
    """Return the elements as integers; elements of 16 bytes become two integers each."""
    contiguous = np.ascontiguousarray(chunk)
    if contiguous.itemsize == 16:
        return contiguous.view(np.complex128).view([("high", "u8"), ("low", "u8")])
    return contiguous.view(f"u{contiguous.itemsize}")

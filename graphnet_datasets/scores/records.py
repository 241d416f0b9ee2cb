"""Run records as arrays, selected by a variant of the scores."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ScoreError
from ..schema import Status
from .conditions import differing_conditions
from .intervals import NORMAL_QUANTILE
from .tolerance import ATOL_RTOL_EXPONENTS
from .undecidable import NONDETERMINISTIC, UNDECIDABLE, undecidable_reason
from .variants import Variant
from .warnings import IMPOSSIBLE, count_kinds, first_of, is_impossible, warnings_of

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_UPSTREAM_CORRECT = "correct"

_VERDICT_COLUMNS = ("status", "undecidable_reason", "min_t", "null_t", "stale_t", "outputs")
"""Columns that `undecidable_reason` reads."""
_COLUMNS = (
    *_VERDICT_COLUMNS,
    *("speedup", "speedup_low", "speedup_high", "eager_t", "determinism_t", "is_deterministic"),
    *("upstream_status", "upstream_speedup", "upstream_min_t", "upstream_passing_t"),
    *("sample_id", "family", "reason", "error_type", "error_message", "warnings"),
)
"""Columns that `make_records` copies. Copying the times of all calls too would take most of its
time."""


@dataclasses.dataclass(frozen=True, slots=True)
class Records:
    """The runs in N of one arm, one element per sample, and the excluded runs.

    `code` is 0 if the run ended well, so that `min_t` decides, and its error code otherwise.
    `passing_t` contains the integer t at which upstream's tools pass the run, if a log lists them.
    They replace `min_t` in upstream's variants (None elsewhere). `log_speedup` is the natural
    logarithm, 0 if the run failed. `log_error` is its standard error from the record's interval, 0
    if unknown. From t = `vacuous_from` on, zeros would pass too (-inf: at every t). Below
    `eager_t`, eager itself would fail. Both are NaN if unknown. `warnings` counts the samples with
    warnings of each kind. A sample without a family forms its own family.
    """

    log_speedup: Floats
    log_error: Floats
    min_t: Floats
    passing_t: tuple[frozenset[int] | None, ...]
    code: Integers
    vacuous_from: Floats
    eager_t: Floats
    family: Integers
    num_families: int
    num_without_family: int
    num_nondeterministic: int
    warnings: dict[str, int]
    conditions: dict[str, dict[str, int]]
    excluded: tuple[dict[str, Any], ...]

    @property
    def num_samples(self) -> int:
        """N, the denominator: the number of counted samples, successful or not."""
        return len(self.code)

    def passes(self, t: Integers) -> npt.NDArray[np.bool_]:
        """Return whether the outputs pass at each t, (rows,), for each sample: (rows, samples)."""
        passes = self.min_t <= t[:, None]
        for place, passing in enumerate(self.passing_t):
            if passing is not None:
                passes[:, place] = [int(row_t) in passing for row_t in t]
        return (self.code == 0) & passes

    def is_vacuous(self, t: Floats | Integers) -> npt.NDArray[np.bool_]:
        """Return whether zeros would pass at each t, (rows,), for each sample: (rows, samples)."""
        return self.vacuous_from <= t[:, None]

    def is_right_at(self, t: float) -> npt.NDArray[np.bool_]:
        """Return which samples pass at t, or just below the t at which zeros pass.

        If zeros pass at `t`, a sample must pass below the t at which they start to pass. Samples
        that t does not decide (`is_decidable_at`) are not right.
        """
        limit = np.fmin(self.vacuous_from, np.inf)
        is_vacuous = limit <= t
        passes = (self.code == 0) & (self.min_t <= t)
        passes &= ~(is_vacuous & (self.min_t >= limit - 1e-8))
        return passes & self.is_decidable_at(t)

    def is_decidable_at(self, t: float) -> npt.NDArray[np.bool_]:
        """Return which samples are decided at t, or just below the t at which zeros pass.

        A sample is undecided if eager itself would fail there or zeros pass at every t.
        """
        return is_decidable(self.vacuous_from, self.eager_t, t)

    def is_undecidable(self, t: Floats | Integers) -> npt.NDArray[np.bool_]:
        """Return, for each t, which samples ended well but are not decided by passing at t."""
        return (self.code == 0) & (self.is_vacuous(t) | (t[:, None] < self.eager_t))


def is_decidable(vacuous_from: Floats, eager_t: Floats, t: float) -> npt.NDArray[np.bool_]:
    """Return which samples are decided at t, or just below the t at which zeros pass (`Records`).

    >>> is_decidable(np.array([9.0, -np.inf, -4.0, -4.0]), np.array([-2.0, -7.0, -5.0, -4.0]), -3.0)
    array([False, False,  True, False])
    """
    limit = np.fmin(vacuous_from, np.inf)
    is_vacuous = limit <= t
    decided_at = np.where(is_vacuous, limit, t)
    is_below = np.where(is_vacuous, decided_at <= eager_t, decided_at < eager_t)
    return ~is_below & (decided_at > -np.inf)


def is_counted(table: pa.Table, variant: Variant) -> npt.NDArray[np.bool_]:
    """Return which run records (from `as_table`) are in N.

    Raises:
        ScoreError: A status or an upstream word is unknown.
    """
    return _codes(table, variant) >= 0


def make_records(table: pa.Table, variant: Variant) -> Records:
    """Select the run records (from `as_table`) that `variant` counts.

    Raises:
        ScoreError: A status or an upstream word is unknown, or an `ok` run lacks its speedup or
            `min_t`.
    """
    code = _codes(table, variant)
    conditions = differing_conditions(table)
    table = table.select(_COLUMNS)
    excluded = table.filter(pa.array(code < 0))
    table = table.filter(pa.array(code >= 0))
    code = code[code >= 0]
    speedup = _floats(table, "speedup")
    min_t = _floats(table, "min_t")
    passing_t: list[frozenset[int] | None] = [None] * len(code)
    if variant.upstream_codes is not None:
        words = table["upstream_status"].to_pylist()
        is_correct = np.array([word == _UPSTREAM_CORRECT for word in words], dtype=bool)
        speedup = _first_known(_floats(table, "upstream_speedup"), speedup)
        min_t = _first_known(_floats(table, "upstream_min_t"), min_t)
        # An upstream success without a speedup counts as a failed run; a success without a compared
        # output counts as correct at every t.
        has_no_time = is_correct & np.isnan(speedup)
        code = np.where(has_no_time, variant.upstream_codes["runtime_fail"], code)
        min_t = np.where(is_correct & np.isnan(min_t), -np.inf, min_t)
        passing_t = [
            None if passing is None else frozenset(passing)
            for passing in table["upstream_passing_t"].to_pylist()
        ]
    has_ended = code == 0
    _check(table, has_ended & ~(np.isfinite(speedup) & (speedup > 0)), "speedup")
    _check(table, has_ended & np.isnan(min_t), "min_t")
    is_random = _is_nondeterministic(table)
    if variant.is_held_against_zeros:
        min_t = np.where(_is_no_better_than_zeros(min_t, _floats(table, "null_t")), np.inf, min_t)
    if variant.has_determinism_floor:
        # Below the difference of eager from itself, a sample cannot be judged wrong.
        min_t = np.where(is_random & (min_t <= _floats(table, "determinism_t")), -np.inf, min_t)
    family, num_families, num_without_family = _families(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_speedup = np.where(has_ended, np.log(speedup), 0.0)
    return Records(
        log_speedup=log_speedup,
        log_error=np.where(has_ended, _log_error(table), 0.0),
        min_t=np.where(has_ended, min_t, np.inf),
        passing_t=tuple(passing_t),
        code=code,
        vacuous_from=_vacuous_from(table),
        eager_t=_floats(table, "eager_t"),
        family=family,
        num_families=num_families,
        num_without_family=num_without_family,
        num_nondeterministic=int(is_random.sum()),
        warnings=count_kinds(table),
        conditions=conditions,
        excluded=tuple(map(_excluded, excluded.to_pylist())),
    )


def _excluded(row: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that describe a run outside N, including the reason."""
    columns = ("sample_id", "status", "reason", "error_type", "error_message")
    description = {name: row[name] for name in columns}
    if row["status"] == Status.OK and is_impossible(row["warnings"]):
        return description | {"reason": IMPOSSIBLE, "error_message": first_of(IMPOSSIBLE, row)}
    if row["status"] == Status.OK and (why := undecidable_reason(row)):
        return description | {"reason": UNDECIDABLE, "error_message": why}
    if row["status"] == Status.OK:
        return description | {
            "reason": "nondeterministic",
            "error_message": NONDETERMINISTIC,
        }
    return description


def _is_no_better_than_zeros(min_t: Floats, null_t: Floats) -> npt.NDArray[np.bool_]:
    """Return which outputs never pass at a t at which zeros, or the means, fail.

    Bit-equal outputs are right even if they are zero. Both numbers are exact to 1e-9.
    """
    return (min_t >= null_t - 1e-8) & (min_t > -np.inf)


def _vacuous_from(table: pa.Table) -> Floats:
    """Return the t from which zeros or a stored answer pass; -inf for outputs that are not finite.

    `null_t` is also inf for outputs that must be equal and vary, and for outputs judged by their
    distribution; such samples are decided at every t.
    """
    null_t = _floats(table, "null_t")
    null_t = np.where((null_t == np.inf) & ~_is_certain(table, null_t), -np.inf, null_t)
    return np.fmin(null_t, _floats(table, "stale_t"))


def known_null_t(table: pa.Table) -> list[float | None]:
    """Return each record's `null_t`; None if unknown or infinite because outputs must be equal."""
    null_t = _floats(table, "null_t")
    is_known = ~np.isnan(null_t) & ~_is_certain(table, null_t)
    return [
        float(value) if is_value_known else None
        for value, is_value_known in zip(null_t, is_known, strict=True)
    ]


def _is_certain(table: pa.Table, null_t: Floats) -> npt.NDArray[np.bool_]:
    """Return where `null_t` is infinite because no control passes some output."""
    is_certain = np.zeros(len(null_t), dtype=bool)
    indices = np.flatnonzero(null_t == np.inf)
    outputs = table["outputs"].take(pa.array(indices)).to_pylist()
    is_certain[indices] = [any(map(_is_decided_at_all, rows or ())) for rows in outputs]
    return is_certain


def _is_decided_at_all(output: dict[str, Any]) -> bool:
    """Return whether an output must be equal or is judged by its distribution."""
    is_exact = output["dtype"] not in ATOL_RTOL_EXPONENTS
    return output["null_t"] == np.inf and (is_exact or output.get("p_value") is not None)


def _log_error(table: pa.Table) -> Floats:
    """Return the standard error of each log speedup; 0 without an interval."""
    low, high = _floats(table, "speedup_low"), _floats(table, "speedup_high")
    is_known = (low > 0) & (high >= low) & np.isfinite(high)
    ratio = np.divide(high, low, out=np.ones(len(low)), where=is_known)
    return np.log(ratio) / (2 * NORMAL_QUANTILE)


def _codes(table: pa.Table, variant: Variant) -> Integers:
    """Return the code of each row: 0 if `min_t` decides, -1 if the row is not in N."""
    known_columns = {
        str(status): 0 if status is Status.OK else variant.codes.get(status, -1)
        for status in Status
    }
    code = _lookup(table, "status", known_columns)
    if variant.upstream_codes is not None:
        words = {_UPSTREAM_CORRECT: 0, **variant.upstream_codes}
        has_word = table["upstream_status"].is_valid().to_numpy()
        code = np.where(has_word, _lookup(table, "upstream_status", words), code)
    impossible = np.array(
        [bool(warnings) and is_impossible(warnings) for warnings in warnings_of(table)], dtype=bool
    )
    is_out = (code == 0) & impossible
    if variant.has_determinism_floor:
        # If eager differs from itself by as much as from zeros, no output can be judged wrong.
        floor, null_t = _floats(table, "determinism_t"), _floats(table, "null_t")
        is_out |= (code == 0) & _is_nondeterministic(table) & (floor >= null_t)
    if variant.is_held_against_zeros:
        is_out |= (code == 0) & is_undecidable(table)
    return np.where(is_out, -1, code)


def is_undecidable(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Return for each record whether its outputs allow no verdict (`undecidable_reason`).

    >>> from .run_sets import as_table
    >>> row = {"sample_id": "a", "status": "ok", "speedup": 2.0, "min_t": -4.0, "stale_t": -4.4}
    >>> is_undecidable(as_table([row, {**row, "min_t": -5.0}])).tolist()
    [True, False]
    """
    min_t, null_t, stale_t = (_floats(table, name) for name in ("min_t", "null_t", "stale_t"))
    may_be = (min_t > -np.inf) & ((null_t == -np.inf) | (min_t >= stale_t - 1e-8))
    may_be |= table["undecidable_reason"].is_valid().to_numpy()
    indices = np.flatnonzero(may_be)
    mask = np.zeros(len(may_be), dtype=bool)
    rows = table.select(_VERDICT_COLUMNS).take(pa.array(indices)).to_pylist()
    mask[indices] = [undecidable_reason(row) is not None for row in rows]
    return mask


def _lookup(table: pa.Table, column: str, values: dict[str, int]) -> Integers:
    """Map the words of a column to numbers; a null in `upstream_status` maps to -1."""
    encoded = table[column].combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    words = encoded.dictionary.to_pylist()
    indices = pc.fill_null(encoded.indices, len(words)).to_numpy(zero_copy_only=False)
    is_wrong = np.array([word not in values for word in words] + [column == "status"])
    if is_wrong[indices].any():
        row = int(np.argmax(is_wrong[indices]))
        value = table[column][row].as_py()
        raise ScoreError(
            f"The run of `{table['sample_id'][row].as_py()}` has the {column} `{value}`, but "
            f"expected one of {', '.join(f'`{word}`' for word in values)}."
        )
    numbers = np.array([values.get(word, -1) for word in words] + [-1])
    return numbers[indices].astype(np.int64)


def _floats(table: pa.Table, column: str) -> Floats:
    """Return a column with NaN for null."""
    return pc.fill_null(table[column], np.nan).to_numpy().astype(np.float64)


def _first_known(first: Floats, second: Floats) -> Floats:
    return np.where(np.isnan(first), second, first)


def _check(table: pa.Table, is_wrong: npt.NDArray[np.bool_], column: str) -> None:
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise ScoreError(
            f"The run of `{table['sample_id'][row].as_py()}` ended `ok`, but its `{column}` is "
            f"{table[column][row].as_py()}. Run the sample again, or leave the record out."
        )


def _is_nondeterministic(table: pa.Table) -> npt.NDArray[np.bool_]:
    return ~pc.fill_null(table["is_deterministic"], True).to_numpy()


def _families(table: pa.Table) -> tuple[Integers, int, int]:
    """Number the families; a sample without a family gets its own number."""
    names = [name or None for name in table["family"].to_pylist()]
    number_of = {name: number for number, name in enumerate(dict.fromkeys(filter(None, names)))}
    index = np.array([number_of[name] if name else -1 for name in names], dtype=np.int64)
    lacks = index < 0
    num_without = int(lacks.sum())
    index[lacks] = len(number_of) + np.arange(num_without)
    return index, len(number_of) + num_without, num_without

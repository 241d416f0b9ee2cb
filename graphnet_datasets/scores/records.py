"""Run records as arrays: what a variant of the scores takes from them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ScoreError
from ..schema import Status
from .variants import Variant

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_UPSTREAM_CORRECT = "correct"


@dataclasses.dataclass(frozen=True, slots=True)
class Records:
    """The runs in N of one arm, one element per sample, and what was left out.

    `code` is 0 where the run ended well, so that `min_t` decides, and its error code otherwise.
    `log_speedup` is the natural logarithm, 0 where the run failed. `null_t` is NaN where unknown.
    Samples without a family are families of their own.
    """

    log_speedup: Floats
    min_t: Floats
    code: Integers
    null_t: Floats
    family: Integers
    num_families: int
    num_without_family: int
    num_nondeterministic: int
    excluded: tuple[dict[str, Any], ...]

    @property
    def num_samples(self) -> int:
        """N, the denominator: the samples that count, whether they succeeded or not."""
        return len(self.code)


def is_counted(table: pa.Table, variant: Variant) -> npt.NDArray[np.bool_]:
    """Tell which run records (as `as_table` gives them) are in N.

    Raises:
        ScoreError: a status or word of upstream's is unknown.
    """
    return _codes(table, variant) >= 0


def make_records(table: pa.Table, variant: Variant) -> Records:
    """Take from run records (as `as_table` gives them) what `variant` counts.

    Raises:
        ScoreError: a status or word of upstream's is unknown, or a run that ended `ok` lacks its
            speedup or `min_t`.
    """
    code = _codes(table, variant)
    excluded = table.filter(pa.array(code < 0))
    table = table.filter(pa.array(code >= 0))
    code = code[code >= 0]
    speedup = _floats(table, "speedup")
    min_t = _floats(table, "min_t")
    if variant.upstream_codes is not None:
        words = table["upstream_status"].to_pylist()
        is_correct = np.array([word == _UPSTREAM_CORRECT for word in words], dtype=bool)
        speedup = _first_known(_floats(table, "upstream_speedup"), speedup)
        min_t = _first_known(_floats(table, "upstream_min_t"), min_t)
        # What upstream calls correct counts as a failed run without a speedup, and as correct at
        # all t without a compared output.
        has_no_time = is_correct & np.isnan(speedup)
        code = np.where(has_no_time, variant.upstream_codes["runtime_fail"], code)
        min_t = np.where(is_correct & np.isnan(min_t), -np.inf, min_t)
    has_ended = code == 0
    _check(table, has_ended & ~(np.isfinite(speedup) & (speedup > 0)), "speedup")
    _check(table, has_ended & np.isnan(min_t), "min_t")
    is_random = _is_nondeterministic(table)
    if variant.has_determinism_floor:
        # Eager differs from itself by as much: below its floor a sample cannot be told wrong.
        min_t = np.where(is_random & (min_t <= _floats(table, "determinism_t")), -np.inf, min_t)
    family, num_families, num_without_family = _families(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_speedup = np.where(has_ended, np.log(speedup), 0.0)
    return Records(
        log_speedup=log_speedup,
        min_t=np.where(has_ended, min_t, np.inf),
        code=code,
        null_t=_floats(table, "null_t"),
        family=family,
        num_families=num_families,
        num_without_family=num_without_family,
        num_nondeterministic=int(is_random.sum()),
        excluded=tuple(
            {
                name: row[name]
                for name in ("sample_id", "status", "reason", "error_type", "error_message")
            }
            for row in excluded.to_pylist()
        ),
    )


def _codes(table: pa.Table, variant: Variant) -> Integers:
    """Return the code of each row: 0 where `min_t` decides, -1 where it is out of N."""
    known = {
        str(status): 0 if status is Status.OK else variant.codes.get(status, -1)
        for status in Status
    }
    code = _lookup(table, "status", known)
    if variant.upstream_codes is not None:
        words = {_UPSTREAM_CORRECT: 0, **variant.upstream_codes}
        has_word = table["upstream_status"].is_valid().to_numpy()
        code = np.where(has_word, _lookup(table, "upstream_status", words), code)
    return code


def _lookup(table: pa.Table, column: str, values: dict[str, int]) -> Integers:
    """Map the words of a column to numbers; a null in `upstream_status` gives -1."""
    encoded = table[column].combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    words = encoded.dictionary.to_pylist()
    indices = pc.fill_null(encoded.indices, len(words)).to_numpy(zero_copy_only=False)
    is_wrong = np.array([word not in values for word in words] + [column == "status"])
    if is_wrong[indices].any():
        row = int(np.argmax(is_wrong[indices]))
        found = table[column][row].as_py()
        raise ScoreError(
            f"The run of `{table['sample_id'][row].as_py()}` has the {column} `{found}`, which is "
            f"none of {', '.join(f'`{word}`' for word in values)}."
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
    """Number the families; a sample without one gets a number of its own."""
    names = [name or None for name in table["family"].to_pylist()]
    number_of = {name: number for number, name in enumerate(dict.fromkeys(filter(None, names)))}
    index = np.array([number_of[name] if name else -1 for name in names], dtype=np.int64)
    lacks = index < 0
    num_without = int(lacks.sum())
    index[lacks] = len(number_of) + np.arange(num_without)
    return index, len(number_of) + num_without, num_without

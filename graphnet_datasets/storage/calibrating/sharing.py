"""Calibrations of graphs that were run, for those of the same weights that cannot be."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from ...inputs.terms import is_whole


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    source: str
    dtype: str
    calibration: str
    by_name: Mapping[str, Mapping[str, Any]]


class SharedCalibrations:
    """What calibration found of each set of weights, for rows that have the same and none of it.

    A set of weights is the names and shapes of all parameters and buffers of a framework but those
    of integers, whatever their precision: a model at another batch, length, image size or dtype has
    the same. Running statistics of normalisations are calibrated in evaluation only, so what was
    found in training serves training.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[_Found]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep what was found of a row that is calibrated."""
        named = _weights(row)
        if not named or not row.get("calibration"):
            return
        names = {index: name for name, (index, _) in named.items()}
        by_name = {
            names[each["input"]]: each
            for each in row.get("calibrated_inputs") or ()
            if each["input"] in names
        }
        found = _Found(
            str(row.get("source")), str(row.get("dtype")), str(row["calibration"]), by_name
        )
        self._found.setdefault(_key(row, named), []).append(found)

    def find(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the columns of calibration for a row of known weights, or None.

        Of several those that were found by a run of the whole graph come first, then those of the
        row's own source, whose weights have the same statistics on record, then those in its own
        dtype, then the earliest.
        """
        named = _weights(row)
        if not named:
            return None
        for mode in ("train", "eval") if row.get("mode") == "train" else ("eval",):
            kept = self._found.get(_key({**row, "mode": mode}, named), ())
            if kept:
                best = min(kept, key=lambda each: _rank(each, row))
                inputs = [{**each, "input": named[name][0]} for name, each in best.by_name.items()]
                inputs.sort(key=lambda each: each["input"])
                return {"calibration": "shared", "calibrated_inputs": inputs or None}
        return None


def _rank(found: _Found, row: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    return (
        found.calibration == "shared",
        found.source != str(row.get("source")),
        found.dtype != str(row.get("dtype")),
    )


def _weights(row: Mapping[str, Any]) -> dict[str, tuple[int, Sequence[int]]]:
    """Return place and shape of each weight by its name; none where two have the same name."""
    named: dict[str, tuple[int, Sequence[int]]] = {}
    for index, each in enumerate(row.get("inputs") or ()):
        if each["role"] in ("parameter", "buffer") and not is_whole(each["dtype"]):
            if each["source_name"] in named or each.get("symbolic_shape"):
                return {}
            named[each["source_name"]] = index, each["shape"]
    return named


def _key(row: Mapping[str, Any], named: Mapping[str, tuple[int, Sequence[int]]]) -> tuple[str, str]:
    told = [f"{name} {[*shape]}" for name, (_, shape) in sorted(named.items())]
    text = "\n".join([str(row.get("framework")), *told])
    mode = "train" if row.get("mode") == "train" else "eval"
    return mode, hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

"""Calibrations shared with graphs that have the same weights but cannot be run."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from ...inputs.signals import with_signals
from ...inputs.terms import is_whole
from ...sample import Sample
from ...schema.to_row import signals_to_row


@dataclasses.dataclass(frozen=True, slots=True)
class _Calibration:
    source: str
    dtype: str
    calibration: str
    has_signals: bool
    compressed: bytes
    """The record of each weight by name, as compressed JSON; as objects, those of a model take
    megabytes."""

    @classmethod
    def of(cls, row: Mapping[str, Any], by_name: Mapping[str, Mapping[str, Any]]) -> _Calibration:
        return cls(
            str(row.get("source")),
            str(row.get("dtype")),
            str(row["calibration"]),
            row.get("signal_outcome") is not None,
            zlib.compress(json.dumps(by_name).encode(), 1),
        )

    def by_name(self) -> dict[str, dict[str, Any]]:
        return json.loads(zlib.decompress(self.compressed))


class SharedCalibrations:
    """Calibrations by set of weights, for rows with the same weights but no calibration.

    A set of weights is identified by the framework and the names and shapes of all non-integer
    parameters and buffers, regardless of precision: models that differ only in batch, length, image
    size or dtype share it. Running statistics of normalisations are calibrated in evaluation mode
    only, so graphs in evaluation mode do not use calibrations of training mode.
    """

    def __init__(self) -> None:
        self._calibrations: dict[tuple[str, str], list[_Calibration]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Store the calibration of a row, if it has any."""
        named = _weights(row)
        if not named or not row.get("calibration"):
            return
        names = {index: name for name, (index, _) in named.items()}
        by_name = {
            names[record["input"]]: record
            for record in row.get("calibrated_inputs") or ()
            if record["input"] in names
        }
        entries = self._calibrations.setdefault(_key(row, named), [])
        entries.append(_Calibration.of(row, by_name))

    def find(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the calibration columns for a row with known weights, or None.

        If there are several, prefer calibrations from a run of the whole graph, then of the row's
        own source, whose recorded statistics are equal, then of its own dtype, then the earliest.
        """
        named = _weights(row)
        if not named:
            return None
        for mode in ("train", "eval") if row.get("mode") == "train" else ("eval",):
            candidates = self._calibrations.get(_key({**row, "mode": mode}, named), ())
            if candidates:
                best = min(candidates, key=lambda candidate: _rank(candidate, row))
                inputs = [
                    {**record, "input": named[name][0]} for name, record in best.by_name().items()
                ]
                inputs.sort(key=lambda record: record["input"])
                columns = {"calibration": "shared", "calibrated_inputs": inputs or None}
                if best.has_signals:
                    sample = with_signals(Sample.from_row(row))
                    columns["signals"] = signals_to_row(sample.inputs)
                return columns
        return None


def _rank(entry: _Calibration, row: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    return (
        entry.calibration == "shared",
        entry.source != str(row.get("source")),
        entry.dtype != str(row.get("dtype")),
    )


def _weights(row: Mapping[str, Any]) -> dict[str, tuple[int, Sequence[int]]]:
    """Return position and shape of each weight by name; empty if names are ambiguous."""
    named: dict[str, tuple[int, Sequence[int]]] = {}
    for index, value in enumerate(row.get("inputs") or ()):
        if value["role"] in ("parameter", "buffer") and not is_whole(value["dtype"]):
            if value["source_name"] in named or value.get("symbolic_shape"):
                return {}
            named[value["source_name"]] = index, value["shape"]
    return named


def _key(row: Mapping[str, Any], named: Mapping[str, tuple[int, Sequence[int]]]) -> tuple[str, str]:
    lines = [f"{name} {[*shape]}" for name, (_, shape) in sorted(named.items())]
    text = "\n".join([str(row.get("framework")), *lines])
    mode = "train" if row.get("mode") == "train" else "eval"
    return mode, hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

"""Validation of many samples, which continues after a stop."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from graphnet_datasets.storage.parts import PartReader
from graphnet_datasets.storage.selection import require
from graphnet_datasets.storage.staging import Staging
from graphnet_datasets.validation import Validation, Validator
from graphnet_datasets.validation.mapping import validate_rows
from tests.validation.graphs import CUSTOM, UNNAMED_PLACE, VALID

SAMPLES = [VALID, CUSTOM, UNNAMED_PLACE]


def validate(
    staging: Staging, *, checks: tuple[str, ...] = ("serializable",), stops_after: int = 99
) -> list[Validation]:
    validations = []
    with contextlib.closing(
        validate_rows(
            require(SAMPLES), checks, Validator, staging, terms={}, keeps_rows=True, jobs=1
        )
    ) as results:
        for validation, result in results:
            (table,) = PartReader().rows(result)
            assert Validation.from_row(table.to_pylist()[0]) == validation
            validations.append(validation)
            if len(validations) == stops_after:
                raise KeyboardInterrupt
    return sorted(validations, key=lambda validation: validation.sample_id)


@pytest.mark.parametrize("stops_after", [1, 2])
def test_a_stop_keeps_finished_samples(tmp_path: Path, stops_after: int) -> None:
    staging = Staging(tmp_path / "mine", "validation")
    staging.parts.mkdir(parents=True)
    with pytest.raises(KeyboardInterrupt):
        validate(staging, stops_after=stops_after)
    kept = {path: path.stat().st_mtime_ns for path in staging.parts.iterdir()}
    assert len(kept) >= stops_after
    validations = validate(staging)
    assert [validation.sample_id for validation in validations] == sorted(
        sample.id for sample in SAMPLES
    )
    now = {path: path.stat().st_mtime_ns for path in staging.parts.iterdir()}
    assert kept.items() <= now.items() and len(now) == len(SAMPLES)


def test_other_checks_have_other_results(tmp_path: Path) -> None:
    staging = Staging(tmp_path / "mine", "validation")
    staging.parts.mkdir(parents=True)
    validate(staging)
    first, *_ = validate(staging, checks=("custom_operators_accessible",))
    assert [result.check for result in first.results] == ["custom_operators_accessible"]
    assert len([*staging.parts.iterdir()]) == 2 * len(SAMPLES)

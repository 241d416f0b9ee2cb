"""Equality of samples to the bit: -0.0 is not 0.0, True is not 1, and NaN is NaN."""

from __future__ import annotations

import dataclasses
from typing import Any

from graphnet_datasets.sample import Sample


def exact(sample: Sample) -> tuple[str, list[Any]]:
    """Return what two samples share only if every field has the same type and the same bits."""
    fields = [(field.name, getattr(sample, field.name)) for field in dataclasses.fields(sample)]
    return repr(fields), [each.data for each in sample.inputs]

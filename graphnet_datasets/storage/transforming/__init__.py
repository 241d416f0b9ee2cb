"""Datasets created from datasets by transforms."""

from .outcomes import GraphOutcome, Refusal, TransformReport, read_report
from .transformer import TRANSFORM_LIMITS, transform_dataset

__all__ = [
    "TRANSFORM_LIMITS",
    "GraphOutcome",
    "Refusal",
    "TransformReport",
    "read_report",
    "transform_dataset",
]

"""Datasets made out of datasets by the transforms."""

from .outcomes import GraphOutcome, Refusal, TransformReport, read_report
from .transformer import EXECUTORS, TRANSFORM_LIMITS, transform_dataset

__all__ = [
    "EXECUTORS",
    "TRANSFORM_LIMITS",
    "GraphOutcome",
    "Refusal",
    "TransformReport",
    "read_report",
    "transform_dataset",
]

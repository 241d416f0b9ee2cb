"""`Sample`, a computational graph as plain, frozen, framework-neutral data."""

from .sample import (
    Constraint,
    CustomOperator,
    Input,
    Op,
    Provenance,
    Sample,
    Statistics,
    Symbol,
    Value,
    hash_source,
)

__all__ = [
    "Constraint",
    "CustomOperator",
    "Input",
    "Op",
    "Provenance",
    "Sample",
    "Statistics",
    "Symbol",
    "Value",
    "hash_source",
]

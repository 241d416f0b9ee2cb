"""The language: from text to instances that a compiler or the interpreter takes."""

from .affine import Affine
from .instance import Instance, InstanceStatement, Precondition, Range, Tensor
from .types import SCALAR_TYPES, ScalarType

__all__ = [
    "SCALAR_TYPES",
    "Affine",
    "Instance",
    "InstanceStatement",
    "Precondition",
    "Range",
    "ScalarType",
    "Tensor",
]

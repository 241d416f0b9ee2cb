"""The Tensor Comprehensions language: parsing, checking, range inference and interpretation."""

from .affine import Affine
from .builtins import BUILTIN_ARITIES, register_function
from .checked import CheckedDefinition
from .checker import check
from .inference import Inference, PreconditionWarning, infer, instantiate
from .instance import Instance, InstanceStatement, Precondition, Range, Tensor
from .printing import canonical_text
from .types import SCALAR_TYPES, ScalarType

__all__ = [
    "BUILTIN_ARITIES",
    "SCALAR_TYPES",
    "Affine",
    "CheckedDefinition",
    "Inference",
    "Instance",
    "InstanceStatement",
    "Precondition",
    "PreconditionWarning",
    "Range",
    "ScalarType",
    "Tensor",
    "canonical_text",
    "check",
    "infer",
    "instantiate",
    "register_function",
]

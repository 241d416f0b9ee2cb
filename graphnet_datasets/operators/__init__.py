"""Entries of operators, from which the library derives all of its tables.

An operator is declared once, in a file of `families/`, as `names: facts`. A fact is a word of
`vocabulary.FACTS`, or `fact=value`. `fact_` holds for the in-place form of the operator, `fact*`
for both forms, and `fact@torch,Tensor_` for the names in these namespaces alone. Operators with
the same facts share a line. Nothing here imports a framework: shape rules, formulas and limits are
named, and the modules that implement them resolve the names.
"""

from .registry import OperatorEntry, OperatorNames, OperatorValues, entries, entry
from .vocabulary import FACTS, NAMESPACES

__all__ = [
    "FACTS",
    "NAMESPACES",
    "OperatorEntry",
    "OperatorNames",
    "OperatorValues",
    "entries",
    "entry",
]

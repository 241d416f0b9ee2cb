"""The table of operators that a torch sample may call.

Looking up a name or its effects does not import torch; resolving an entry does.
"""

from .checked import is_checked, is_walkable
from .effects import draws_random_numbers, drops_nothing, mutates
from .resolve import all_names, dispatched_names, name_of, resolve
from .table import Kind, Operator, canonical, lookup

__all__ = [
    "Kind",
    "Operator",
    "all_names",
    "canonical",
    "dispatched_names",
    "draws_random_numbers",
    "drops_nothing",
    "is_checked",
    "is_walkable",
    "lookup",
    "mutates",
    "name_of",
    "resolve",
]

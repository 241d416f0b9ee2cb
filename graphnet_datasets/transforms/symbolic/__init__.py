"""Conversion of graphs between fixed sizes and symbols."""

from .ladder import make_ladder
from .lifting import find_literals, lift_literals, read_sizes_from_tensors, split_uses
from .refusals import FixedSizesError, Refused
from .reify import reify
from .sizes import DEFAULT_MEMORY_BYTES, spread_sizes
from .smaller import at_smaller_sizes
from .symbolise import Symbolised, symbolise

__all__ = [
    "DEFAULT_MEMORY_BYTES",
    "FixedSizesError",
    "Refused",
    "Symbolised",
    "at_smaller_sizes",
    "find_literals",
    "lift_literals",
    "make_ladder",
    "read_sizes_from_tensors",
    "reify",
    "split_uses",
    "spread_sizes",
    "symbolise",
]

"""Graphs of fixed sizes as graphs over symbols, and back at other sizes."""

from .ladder import make_ladder
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
    "make_ladder",
    "reify",
    "spread_sizes",
    "symbolise",
]

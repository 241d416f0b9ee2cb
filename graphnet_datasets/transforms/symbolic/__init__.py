"""Graphs of fixed sizes as graphs over symbols, and back at other sizes."""

from .refusals import FixedSizesError, Refused
from .reify import reify
from .symbolise import Symbolised, symbolise

__all__ = ["FixedSizesError", "Refused", "Symbolised", "reify", "symbolise"]

"""Samples made from samples."""

from .decompose import Decomposition, Part, decompose
from .translate import translate

__all__ = ["Decomposition", "Part", "decompose", "translate"]

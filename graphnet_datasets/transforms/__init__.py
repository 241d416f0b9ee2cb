"""Samples made from samples."""

from .decompose import Decomposition, Part, decompose

__all__ = ["Decomposition", "Part", "decompose"]

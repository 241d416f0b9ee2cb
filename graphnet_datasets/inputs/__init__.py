"""Seeded inputs: the elements of a sample's tensors as NumPy arrays, equal on every machine."""

from .arrays import MODES, Mode, make_array
from .defaults import default_statistics
from .draws import prepare_blocks
from .storage import STORAGE

__all__ = ["MODES", "STORAGE", "Mode", "default_statistics", "make_array", "prepare_blocks"]

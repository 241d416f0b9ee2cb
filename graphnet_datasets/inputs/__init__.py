"""Seeded inputs: the elements of a sample's tensors as NumPy arrays, equal on every machine."""

from .arrays import DRAWS_VERSION, MODES, Mode, make_array
from .defaults import default_statistics
from .draws import prepare_blocks
from .redraws import redraw
from .roles import InputRole, find_roles
from .storage import STORAGE

__all__ = [
    "DRAWS_VERSION",
    "MODES",
    "STORAGE",
    "InputRole",
    "Mode",
    "default_statistics",
    "find_roles",
    "make_array",
    "prepare_blocks",
    "redraw",
]

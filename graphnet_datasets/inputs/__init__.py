"""Seeded input generation: the elements of a sample's tensors as NumPy arrays, equal on every
machine."""

from .arrays import (
    DRAWS_VERSION,
    MODES,
    Mode,
    drawn_shape,
    find_normals,
    make_array,
    resize_elements,
)
from .defaults import default_statistics
from .distributions import Normals
from .draws import SEGMENT_SIZE, check_interruption, interrupted_by, prepare_blocks
from .memory import packed
from .misfits import misfits
from .redraws import redraw
from .roles import InputRole, find_roles
from .storage import STORAGE

__all__ = [
    "DRAWS_VERSION",
    "MODES",
    "SEGMENT_SIZE",
    "STORAGE",
    "InputRole",
    "Mode",
    "Normals",
    "check_interruption",
    "default_statistics",
    "drawn_shape",
    "find_normals",
    "find_roles",
    "interrupted_by",
    "make_array",
    "misfits",
    "packed",
    "prepare_blocks",
    "redraw",
    "resize_elements",
]

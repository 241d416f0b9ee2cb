"""Directories in GraphNet's layout: reading and writing."""

from .reading import read_directory
from .writing import write_directory

__all__ = ["read_directory", "write_directory"]

"""Directories in GraphNet's layout: reading and writing."""

from .reading import read_directory
from .tree import SampleTree
from .writing import write_directory

__all__ = ["SampleTree", "read_directory", "write_directory"]

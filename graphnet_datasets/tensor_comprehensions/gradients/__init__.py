"""The gradient definition of a definition whose subscripts can be inverted."""

from .deriving import derive_backward

__all__ = ["derive_backward"]

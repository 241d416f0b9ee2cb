"""Gradients of definitions with invertible subscripts."""

from .deriving import derive_backward

__all__ = ["derive_backward"]

"""Gradients of definitions."""

from .deriving import derive_backward

__all__ = ["derive_backward"]

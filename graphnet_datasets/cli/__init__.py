"""The command line `graphnet …`."""

from .app import main

__all__ = ["main"]

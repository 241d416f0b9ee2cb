"""A static site of run records: a leaderboard that needs no server and no script."""

from .writing import write_site

__all__ = ["write_site"]

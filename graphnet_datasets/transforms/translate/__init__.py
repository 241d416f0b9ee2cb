"""Samples of torch as samples of paddle."""

from .registry import RULES, rule
from .translating import translate

__all__ = ["RULES", "rule", "translate"]

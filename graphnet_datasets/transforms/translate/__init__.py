"""Translation of torch samples to paddle samples."""

from .registry import RULES, rule
from .translating import translate

__all__ = ["RULES", "rule", "translate"]

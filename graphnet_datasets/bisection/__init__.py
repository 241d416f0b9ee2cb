"""Bisection of failing graphs to the few operators responsible."""

from .bisecting import bisect
from .failures import Failure, Verdict
from .result import Bisection
from .trials import Budget, Progress

__all__ = ["Bisection", "Budget", "Failure", "Progress", "Verdict", "bisect"]

"""From a graph that a compiler fails on to the few operators that it fails on."""

from .bisecting import bisect
from .failures import Failure, Verdict
from .result import Bisection
from .trials import Budget, Progress

__all__ = ["Bisection", "Budget", "Failure", "Progress", "Verdict", "bisect"]

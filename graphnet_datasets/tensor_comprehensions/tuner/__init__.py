"""Searching for options: a genetic algorithm over compiled, checked and timed candidates."""

from .config import Candidate, Progress, TunerConfig, TuningResult
from .tuning import autotune

__all__ = ["Candidate", "Progress", "TunerConfig", "TuningResult", "autotune"]

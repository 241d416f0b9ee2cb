"""Autotuner: a genetic search over compiled, checked and timed options."""

from .config import Candidate, Progress, TunerConfig, TuningResult
from .tuning import autotune

__all__ = ["Candidate", "Progress", "TunerConfig", "TuningResult", "autotune"]

"""Appending rows to a dataset repository on the Hub or in a Git clone."""

from .push import push_rows, push_runs, push_samples
from .results import Pushed, Skipped
from .submit import Submission, submit_rows, submit_samples

__all__ = [
    "Pushed",
    "Skipped",
    "Submission",
    "push_rows",
    "push_runs",
    "push_samples",
    "submit_rows",
    "submit_samples",
]

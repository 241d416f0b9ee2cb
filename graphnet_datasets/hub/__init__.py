"""Growing a repository on the Hub: samples and run records are appended, never replaced."""

from .push import push_rows, push_runs, push_samples
from .results import Pushed, Skipped

__all__ = ["Pushed", "Skipped", "push_rows", "push_runs", "push_samples"]

"""Timed runs: `run` in the parent, a worker per sample, records on disk."""

from .records import read_runs, write_runs
from .reference import VERDICTS_NAME, Verdicts, compare_with_reference
from .runner import run
from .selection import Filters
from .settings import Settings
from .timing import TimingSettings
from .upstream_log import import_log

__all__ = [
    "VERDICTS_NAME",
    "Filters",
    "Settings",
    "TimingSettings",
    "Verdicts",
    "compare_with_reference",
    "import_log",
    "read_runs",
    "run",
    "write_runs",
]

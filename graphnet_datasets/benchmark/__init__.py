"""Timed runs: `run` in the parent, a worker per sample, records on disk."""

from ..storage.selection import Filters
from ..timing.pairs import TimingSettings
from .judging.reference import VERDICTS_NAME, Verdicts, compare_with_reference
from .records.records import read_runs, write_runs
from .runner import run
from .settings import Settings
from .upstream.log import import_log

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

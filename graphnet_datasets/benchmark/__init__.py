"""Timed runs: `run` in the parent, a worker process per sample, and records on disk."""

from ..storage.filters import Filters
from ..timing.pairs import TimingSettings
from .again import Again, load_record, run_again
from .checking import CheckResult, check
from .expected import expected_verdicts
from .judging.reference import VERDICTS_NAME, Verdicts, compare_with_reference
from .problems import Problem, Verdict, judge, load_problem
from .records.records import read_runs, write_runs
from .runner import run, run_records
from .settings import Settings
from .time_spent import TimeSpent
from .upstream.log import import_log

__all__ = [
    "VERDICTS_NAME",
    "Again",
    "CheckResult",
    "Filters",
    "Problem",
    "Settings",
    "TimeSpent",
    "TimingSettings",
    "Verdict",
    "Verdicts",
    "check",
    "compare_with_reference",
    "expected_verdicts",
    "import_log",
    "judge",
    "load_problem",
    "load_record",
    "read_runs",
    "run",
    "run_again",
    "run_records",
    "write_runs",
]

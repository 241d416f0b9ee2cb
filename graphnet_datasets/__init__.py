"""Real computational graphs as a Hugging Face dataset, and scores for compilers that run them.

Names are imported on first use, so importing the package takes milliseconds and loads neither a
framework nor `datasets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy_names import attributes_on_first_use
from .version import __version__

if TYPE_CHECKING:
    from .benchmark import check, import_log, judge, run
    from .compilers import register_compiler
    from .conversion import convert
    from .directory import read_directory, write_directory
    from .extraction import extract, extract_export, without_weights
    from .frameworks import calibrate, make_inputs, materialize
    from .hub import push_runs, push_samples
    from .sample import Sample
    from .scores import (
        costs,
        error_aware_speedup_score,
        metric_path,
        speedup_score,
        to_metric_inputs,
    )
    from .storage.export import export_dataset
    from .storage.loading import load_dataset
    from .storage.selection import load_sample
    from .storage.table import write_table
    from .transforms import translate
    from .validation import validate
    from .verbosity import disable_progress_bars, enable_progress_bars, set_verbosity

_HOME_OF = {
    "Sample": "sample",
    "calibrate": "frameworks",
    "check": "benchmark",
    "judge": "benchmark",
    "convert": "conversion",
    "costs": "scores",
    "disable_progress_bars": "verbosity",
    "enable_progress_bars": "verbosity",
    "error_aware_speedup_score": "scores",
    "export_dataset": "storage.export",
    "extract": "extraction",
    "extract_export": "extraction",
    "import_log": "benchmark",
    "load_dataset": "storage.loading",
    "load_sample": "storage.selection",
    "make_inputs": "frameworks",
    "materialize": "frameworks",
    "metric_path": "scores",
    "push_runs": "hub",
    "push_samples": "hub",
    "read_directory": "directory",
    "register_compiler": "compilers",
    "run": "benchmark",
    "set_verbosity": "verbosity",
    "speedup_score": "scores",
    "to_metric_inputs": "scores",
    "translate": "transforms",
    "validate": "validation",
    "without_weights": "extraction",
    "write_directory": "directory",
    "write_table": "storage.table",
}

__all__ = [
    "Sample",
    "__version__",
    "calibrate",
    "check",
    "convert",
    "costs",
    "disable_progress_bars",
    "enable_progress_bars",
    "error_aware_speedup_score",
    "export_dataset",
    "extract",
    "extract_export",
    "import_log",
    "judge",
    "load_dataset",
    "load_sample",
    "make_inputs",
    "materialize",
    "metric_path",
    "push_runs",
    "push_samples",
    "read_directory",
    "register_compiler",
    "run",
    "set_verbosity",
    "speedup_score",
    "to_metric_inputs",
    "translate",
    "validate",
    "without_weights",
    "write_directory",
    "write_table",
]


__getattr__ = attributes_on_first_use(__name__, _HOME_OF)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

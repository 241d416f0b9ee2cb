"""Verbosity of the library: its logger and progress bars.

The logger `graphnet_datasets` is silent below WARNING by default. Progress bars are those of
`datasets`: disabling them there, or setting `HF_DATASETS_DISABLE_PROGRESS_BARS=1`, also disables
those of this library.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator

from .credentials import hide_credentials
from .terminal import printable

LEVELS = ("debug", "info", "warning", "error", "critical")
BARS_VARIABLE = "HF_DATASETS_DISABLE_PROGRESS_BARS"
VERBOSITY_VARIABLE = "GRAPHNET_DATASETS_VERBOSITY"

_logger = logging.getLogger("graphnet_datasets")


def set_verbosity(level: str) -> None:
    """Set the logging level of this library: `debug`, `info`, `warning`, `error` or `critical`.

    For the command line, set the environment variable `GRAPHNET_DATASETS_VERBOSITY`.

    Raises:
        ValueError: there is no such level.

    >>> set_verbosity("info")
    >>> get_verbosity()
    'info'
    >>> set_verbosity("warning")
    """
    if level not in LEVELS:
        raise ValueError(f"There is no verbosity `{level}`. Choose one of {', '.join(LEVELS)}.")
    _logger.setLevel(level.upper())


def get_verbosity() -> str:
    """Return the current logging level of this library."""
    return logging.getLevelName(_logger.getEffectiveLevel()).lower()


def log_to_stderr() -> None:
    """Print the library's log to standard error, at the level of the environment variable.

    This is for programs. Users of the library configure `logging` themselves.
    """
    if not _logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_PrintableFormatter("%(levelname)s: %(message)s"))
        _logger.addHandler(handler)
    level = os.environ.get(VERBOSITY_VARIABLE, "warning")
    if level.lower() in LEVELS:
        set_verbosity(level.lower())
    else:
        set_verbosity("warning")
        _logger.warning(
            "%s is `%s`, but expected one of %s.", VERBOSITY_VARIABLE, level, ", ".join(LEVELS)
        )


class _PrintableFormatter(logging.Formatter):
    """Escapes text quoted from data in messages, so that it cannot control the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(hide_credentials(super().format(record)))


def import_progress_bars() -> None:
    """Import the progress bars of `datasets` without tqdm's warning in notebooks.

    Without `ipywidgets`, tqdm warns on import that bars in notebooks are text.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        importlib.import_module("tqdm.auto")


def disable_progress_bars() -> None:
    """Disable the progress bars of this library and of `datasets`."""
    import_progress_bars()
    from datasets.utils import disable_progress_bars

    disable_progress_bars()


def enable_progress_bars() -> None:
    """Enable the progress bars of this library and of `datasets`."""
    import_progress_bars()
    from datasets.utils import enable_progress_bars

    enable_progress_bars()


def are_progress_bars_disabled() -> bool:
    """Return whether progress bars are disabled.

    `datasets` is not imported for this; until it is, only its environment variable can disable
    them.
    """
    if "datasets" not in sys.modules:
        value = os.environ.get(BARS_VARIABLE, "")
        return value.upper() in ("1", "ON", "YES", "TRUE")
    from datasets.utils import are_progress_bars_disabled

    return are_progress_bars_disabled()


@contextlib.contextmanager
def hidden_progress_bars() -> Iterator[None]:
    """Show no progress bars inside the context, for steps too short to be worth one.

    >>> with hidden_progress_bars():
    ...     are_progress_bars_disabled()
    True
    """
    was_disabled = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not was_disabled:
            enable_progress_bars()

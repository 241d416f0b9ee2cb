"""The library's logger and the progress bars."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import datasets.utils
import pytest

from graphnet_datasets import verbosity
from graphnet_datasets.verbosity import LEVELS, VERBOSITY_VARIABLE, get_verbosity, set_verbosity

LOGGER = logging.getLogger("graphnet_datasets")


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    handlers, level = LOGGER.handlers[:], LOGGER.level
    LOGGER.handlers[:] = []
    yield
    LOGGER.handlers[:] = handlers
    LOGGER.setLevel(level)


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_returned_as_set(level: str) -> None:
    set_verbosity(level)
    assert get_verbosity() == level
    name = f"{LOGGER.name}.loading"
    assert logging.getLogger(name).isEnabledFor(logging.getLevelNamesMapping()[level.upper()])


def test_an_unknown_level_names_the_levels() -> None:
    message = "There is no verbosity `loud`. Choose one of debug, info, warning, error, critical."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        set_verbosity("loud")


def test_a_program_logs_to_stderr_once_at_the_level_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VERBOSITY_VARIABLE, "INFO")
    verbosity.log_to_stderr()
    verbosity.log_to_stderr()
    LOGGER.info("said")
    LOGGER.debug("not said")
    assert capsys.readouterr().err == "INFO: said\n"


def test_a_level_of_the_environment_that_does_not_exist_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VERBOSITY_VARIABLE, "loud")
    verbosity.log_to_stderr()
    expected = "is `loud`, but expected one of debug, info, warning, error, critical.\n"
    assert capsys.readouterr().err == f"WARNING: {VERBOSITY_VARIABLE} {expected}"
    assert get_verbosity() == "warning"


def test_progress_bars_are_those_of_datasets() -> None:
    try:
        verbosity.disable_progress_bars()
        assert datasets.utils.are_progress_bars_disabled()
        assert verbosity.are_progress_bars_disabled()
        verbosity.enable_progress_bars()
        assert not datasets.utils.are_progress_bars_disabled()
    finally:
        datasets.utils.enable_progress_bars()


def test_hidden_bars_come_back_as_they_were() -> None:
    was_disabled = verbosity.are_progress_bars_disabled()
    try:
        for disable, expected in (
            (verbosity.enable_progress_bars, False),
            (verbosity.disable_progress_bars, True),
        ):
            disable()
            with verbosity.hidden_progress_bars():
                assert verbosity.are_progress_bars_disabled()
            assert verbosity.are_progress_bars_disabled() is expected
    finally:
        (verbosity.disable_progress_bars if was_disabled else verbosity.enable_progress_bars)()

"""Patterns for untrusted text take linear time."""

from __future__ import annotations

import random
import re
import resource
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from graphnet_datasets.benchmark.solution_files import language_of
from graphnet_datasets.benchmark.upstream import block
from graphnet_datasets.bisection import failures
from graphnet_datasets.credentials import hide_credentials
from graphnet_datasets.paths import without_folders

SIZE = 200_000
LONG_TEXTS = {
    "credentials": (hide_credentials, ("://", ":", "://:", "://a@", "?", "?token", "=a?token=")),
    "package directories": (without_folders, ("/", "a/", "/a", " /a/", "/site-packages")),
    "causes of errors": (failures._INNER.findall, ("\n", "\n ", "a.", "aError")),
    "languages": (language_of, ("\n", " \n", "#\n", "def ", "def f(")),
    "errors in logs": (block._ERROR.search, ("a", "a.", "aError", ".")),
}
_END = r"\s`'\"<>"
QUADRATIC = (
    (rf"(?<=://)[^{_END}]*:[^{_END}]*(?=@)", "***"),
    (rf"(?<=://)[^/?#{_END}]+(?=@)", "***"),
    (
        r"(?i)((?:[?&;#]|%3f|%26)[^=&;\s]*?(?:token|sig|auth)"
        rf"[^=&;{_END}]*=)[^&;{_END}]+",
        r"\1***",
    ),
)
"""A short definition of credentials, which takes quadratic time."""


@pytest.fixture
def ten_seconds() -> Iterator[None]:
    """Raise after ten more seconds of processor time; linear searches take less than one."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    end = int(usage.ru_utime + usage.ru_stime) + 10

    def fail(*_: Any) -> None:
        raise TimeoutError("The search takes quadratic time.")

    before = signal.signal(signal.SIGXCPU, fail)
    resource.setrlimit(resource.RLIMIT_CPU, (end if soft < 0 else min(soft, end), hard))
    yield
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    signal.signal(signal.SIGXCPU, before)


@pytest.mark.parametrize(
    ("function", "piece"),
    [(function, piece) for function, pieces in LONG_TEXTS.values() for piece in pieces],
)
@pytest.mark.usefixtures("ten_seconds")
def test_long_texts_are_searched_in_linear_time(function: Callable[[str], Any], piece: str) -> None:
    function("://" + piece * (SIZE // len(piece)))


def test_credentials_are_the_same_as_by_their_short_definition() -> None:
    chance = random.Random(1)  # noqa: S311 - not a secret
    pieces = ["://", ":", "@", "?", "&", ";", "#", "=", "token", "sig", "a", "/", " ", "'", "%26"]
    for _ in range(5_000):
        text = expected = "".join(chance.choices(pieces, k=chance.randrange(1, 16)))
        for pattern, replacement in QUADRATIC:
            expected = re.sub(pattern, replacement, expected)
        assert hide_credentials(text) == expected

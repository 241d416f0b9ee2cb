"""The project's prose gets no worse: counts of offences stay below limits that only go down."""

from __future__ import annotations

import ast
import json
import subprocess

import pytest

from .prose import counting

STYLE_SINCE = "2026-11-26T18:00:00Z"
"""Commit subjects are checked from this date on."""
MAX_SUBJECT = 72


@pytest.fixture(scope="module")
def prose() -> counting.Prose:
    listing = subprocess.run(["git", "rev-parse"], cwd=counting.ROOT, capture_output=True)
    if listing.returncode != 0:
        pytest.skip("this test needs a Git checkout")
    return counting.measure()


@pytest.mark.parametrize("kind", counting.KINDS)
def test_no_count_exceeds_its_limit(prose: counting.Prose, kind: str) -> None:
    limit = json.loads(counting.LIMITS.read_text())[kind]
    count = prose.counts()[kind]
    assert count <= limit, (
        f"{count} {kind}, at most {limit} are allowed. List those of your change with "
        f"`python -m tests.prose.counting --since main`."
    )


@pytest.mark.usefixtures("prose")
def test_subjects_of_commits_are_short() -> None:
    command = ["git", "log", f"--since={STYLE_SINCE}", "--no-merges", "--format=%s"]
    log = subprocess.run(command, cwd=counting.ROOT, capture_output=True, text=True, check=True)
    assert [line for line in log.stdout.splitlines() if len(line) >= MAX_SUBJECT] == []


@pytest.mark.parametrize(
    ("statement", "start"),
    [
        ("raise ValueError(f'begin nothing, {x}')", "begin nothing, "),
        ("raise ValueError('`x` must be 1.')", "`x` must be 1."),
        ("raise ValueError(message)", None),
        ("x = 1", None),
    ],
)
def test_the_start_of_a_message_is_its_first_literal(statement: str, start: str | None) -> None:
    text = counting._message_start(ast.parse(statement).body[0])
    assert text == (start.strip() if start else None)


@pytest.mark.parametrize(
    ("line", "is_odd"),
    [
        ("Return what is stored.", True),
        ("a mask that is none", True),
        ("A search is told its limits.", True),
        ("Return the stored value, or None.", False),
        ("The standard deviation in each column.", False),
    ],
)
def test_odd_phrases_are_found(line: str, is_odd: bool) -> None:
    assert bool(counting.PHRASE.search(line)) == is_odd

"""What the disk or a pipe refuses ends in a sentence in every verb, and nothing is left behind."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphnet_datasets.benchmark.judging import roofline
from graphnet_datasets.cli.app import app
from graphnet_datasets.cli.app import main as run_program
from tests.hub_server import Hub

from .verbs import INVOCATIONS, make_inputs, verbs, words_of

pytest.importorskip("torch", reason="torch is not installed")

READING = [
    (verb, name)
    for verb in INVOCATIONS
    for name in set(re.findall(r"{read:(\w+)}", INVOCATIONS[verb]))
]
SLOW = {"run", "validate", "calibrate", "tasks", "records import"}
"""Verbs that start processes which import a framework, before they write anything."""
TWICE_IS_SLOW = {"bisect", "check", "convert", "kernels", "plot", "report", "transform"}
"""The same of verbs of which one kind of output is tried quickly."""
WRITING = [verb for verb in INVOCATIONS if "{write:" in INVOCATIONS[verb]]


def maybe_slow(verbs: list[str]) -> list[Any]:
    return [pytest.param(verb, marks=[pytest.mark.slow] if verb in SLOW else []) for verb in verbs]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub) -> Path:  # noqa: ARG001
    """Work in an empty folder, with caches and a Hub of its own, and a quick look at the device."""
    monkeypatch.setitem(roofline.MATRIX_SIZE, "cpu", 64)
    monkeypatch.setattr(roofline, "COPY_BYTES", 2**20)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def check_failed(words: list[str], here: Path) -> str:
    """Call a verb that has to fail, and return what it said."""
    before = listing(here)
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (1, 2, 3), result.output
    assert "Traceback" not in result.output
    assert re.search(r"\.$", result.stderr.strip()), result.stderr
    assert "site-packages" not in result.output
    assert listing(here) == before
    return result.stderr


def test_every_verb_is_tried() -> None:
    assert set(verbs()) == set(INVOCATIONS), "add the verb to INVOCATIONS in tests/cli/verbs.py"


@pytest.mark.parametrize("fault", ["below a file", "missing", "folder", "device", "bytes"])
@pytest.mark.parametrize(("verb", "name"), sorted(READING))
def test_unreadable_files_end_in_a_sentence(
    verb: str, name: str, fault: str, inputs: dict[str, Path], elsewhere: Path
) -> None:
    (elsewhere / "file").write_text("mine")
    (elsewhere / "folder").mkdir()
    (elsewhere / "bytes.parquet").write_bytes(bytes(range(256)) * 8)
    place = {
        "below a file": elsewhere / "file" / "x",
        "missing": elsewhere / "missing" / "x",
        "folder": elsewhere / "folder",
        "device": Path("/proc/self/mem"),
        "bytes": elsewhere / "bytes.parquet",
    }[fault]
    check_failed(words_of(verb, {**inputs, name: place}, elsewhere / "out"), elsewhere)


@pytest.mark.parametrize("fault", ["below a file", "forbidden", "below forbidden"])
@pytest.mark.parametrize("verb", WRITING)
def test_where_nothing_can_be_written_a_sentence_says_so(
    verb: str, fault: str, inputs: dict[str, Path], elsewhere: Path
) -> None:
    (elsewhere / "file").write_text("mine")
    out = {
        "below a file": elsewhere / "file",
        "forbidden": Path("/sys"),
        "below forbidden": Path("/proc/nothing/here"),
    }[fault]
    check_failed(words_of(verb, inputs, out), elsewhere)
    assert (elsewhere / "file").read_text() == "mine"


@pytest.mark.parametrize("verb", ["calibrate", "show", "tc bench"])
def test_the_place_of_the_result_is_tried_before_the_work(
    verb: str, inputs: dict[str, Path], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*words: Any, **_: Any) -> None:
        pytest.fail(f"{words} was begun before the place was tried")

    def refuse(dir: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(dir))

    monkeypatch.setattr(subprocess, "Popen", begin)  # a worker, or a compiler of C
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    result = CliRunner().invoke(app, words_of(verb, inputs, elsewhere))
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert "is on a read-only file system" in result.stderr


@contextlib.contextmanager
def no_space(limit: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes: what a full disk does, with another number."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# What `records import` makes is written by a worker, which has limits of its own.
@pytest.mark.parametrize("verb", maybe_slow([e for e in WRITING if e != "records import"]))
def test_without_space_nothing_is_left_behind(
    verb: str, inputs: dict[str, Path], elsewhere: Path
) -> None:
    if verb == "show":  # makes no folders
        (elsewhere / "out").mkdir()
    with no_space(1):
        check_failed(words_of(verb, inputs, elsewhere / "out"), elsewhere)


OUTPUTS = [
    pytest.param(
        verb,
        output,
        marks=[pytest.mark.slow]
        if verb in SLOW or (verb in TWICE_IS_SLOW and output == "closed")
        else [],
    )
    for verb in sorted(INVOCATIONS)
    for output in ("full", "closed")
]


@pytest.mark.parametrize(("verb", "output"), OUTPUTS)
def test_output_that_cannot_be_written_ends_in_a_sentence(
    verb: str, output: str, inputs: dict[str, Path], elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (elsewhere / "out").mkdir()
    words = words_of(verb, inputs, elsewhere / "out")
    if verb in ("export", "run"):
        (elsewhere / "out").rmdir()
    if output == "full":
        stream: io.TextIOBase = open("/dev/full", "w")  # noqa: SIM115, PTH123
    else:
        reading, writing = os.pipe()
        os.close(reading)
        stream = os.fdopen(writing, "w")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "argv", ["graphnet", "--quiet", *words])
    with pytest.raises(SystemExit) as ended:
        run_program()
    assert ended.value.code == 1
    messages = capsys.readouterr().err
    assert "Traceback" not in messages
    # A reader such as `head` ends as soon as it has enough lines, which is not an error.
    is_full = output == "full"
    assert bool(re.search("^Error: There is no space left", messages, re.MULTILINE)) == is_full
    assert ("Error:" in messages) == is_full
    stream.close()

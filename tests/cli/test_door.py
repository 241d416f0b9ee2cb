"""What a newcomer meets first: narrow terminals, full disks, odd words, closed pipes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from graphnet_datasets.cli import datasets
from graphnet_datasets.cli.app import app
from graphnet_datasets.compilers import resolve_name
from graphnet_datasets.errors import CompilerError
from tests.tables import chain, write_dataset

GRAPHNET = Path(sys.executable).with_name("graphnet")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "source")


@pytest.mark.parametrize("columns", [60, 80, 120, 20])
def test_a_list_drops_columns_and_cuts_nothing(
    root: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = invoke("list", "--dataset", root).stdout.splitlines()
    monkeypatch.setattr(datasets, "width", lambda: columns)
    narrow = invoke("list", "--dataset", root).stdout.splitlines()
    assert len(narrow) == len(whole)
    assert all(len(line) <= max(columns, len("nlp/chain-1")) for line in narrow[:-1])
    for line, complete in zip(narrow[1:-1], whole[1:-1], strict=True):
        assert set(line.split()) <= set(complete.split())
        assert line.split()[0] == complete.split()[0]


def test_a_list_is_filtered_by_a_part_of_the_name_in_any_case(root: Path) -> None:
    lines = invoke("list", "--dataset", root, "--name", "CHAIN-2").stdout.splitlines()
    ids = [line.split()[0] for line in lines[1:-1]]
    assert ids == ["cv/chain-2", "nlp/chain-2", *(f"cv/chain-{size}" for size in range(20, 26))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "cv", "--framework", "tensorflow"), "There is no framework `tensorflow`."),
        (("list", "--framework", "torhc"), "There is no framework `torhc`. Did you mean `torch`?"),
        (("list", "cvs"), "has no config `cvs`. Did you mean `cv`?"),
        (("show", "cv/chian-2"), "Did you mean `cv/chain-2`"),
        (("run", "cv", "--compiler", "inducter"), "Did you mean `inductor`"),
        (("run", "cv", "--compiler", "missing.py:Mine"), "There is no file `missing.py`"),
        (("show", "cv/chain-2", "--svg", "no/such/a.svg"), "There is no directory `no/such`"),
    ],
)
def test_odd_words_end_in_a_sentence_and_leave_nothing(
    root: Path, tmp_path: Path, arguments: tuple[str, ...], message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    result = invoke(*arguments, "--dataset", root)
    assert result.exit_code == 1
    assert message in result.stderr
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "{file}/x"),
        ("export", "{file}/x", "--format", "graphnet"),
        ("show", "cv/chain-2", "--svg", "{file}/a.svg"),
        ("import", "{samples}", "--out", "{file}/x.parquet"),
        ("translate", "cv/chain-2", "--out", "{file}/x.parquet"),
        ("list", "--dataset", "{file}/x"),
        ("score", "{file}/x"),
    ],
    ids=lambda arguments: " ".join(arguments[:1]),
)
def test_a_file_where_a_folder_should_be_ends_in_a_sentence(
    root: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    from graphnet_datasets import write_directory

    write_directory(chain("a/b", 2), tmp_path / "samples" / "b")
    (tmp_path / "file").write_text("mine")
    filled = [
        each.format(file=tmp_path / "file", samples=tmp_path / "samples") for each in arguments
    ]
    has_dataset = arguments[0] in ("export", "show", "translate")
    result = invoke(*filled, *(("--dataset", root) if has_dataset else ()))
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    assert re.search(r"^Error: .*\.$", result.stderr, re.MULTILINE)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("output", ["full", "closed"])
def test_output_that_cannot_be_written_ends_in_a_sentence(root: Path, output: str) -> None:
    command = f"{GRAPHNET} list --dataset {root} " + (
        "> /dev/full" if output == "full" else "| true"
    )
    done = subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    if output == "full":
        assert done.returncode == 1
        assert done.stderr.startswith("Error: There is no space left")


def test_a_compiler_in_a_file_is_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "my_own_compiler.py").write_text("")
    monkeypatch.chdir(tmp_path)
    found = f"{tmp_path / 'deep' / 'my_own_compiler.py'}:Mine"
    for name in ("deep/my_own_compiler.py:Mine", "./deep/my_own_compiler.py:Mine", found):
        assert resolve_name(name) == found
    monkeypatch.chdir(tmp_path / "deep")
    assert resolve_name("my_own_compiler:Mine") == found
    assert resolve_name("inductor") == "inductor"
    with pytest.raises(CompilerError, match="There is no file"):
        resolve_name("other.py:Mine")


def test_a_sample_is_one_line_and_a_picture() -> None:
    sample = chain("cv/chain-2", 2)
    assert repr(sample) == (
        "Sample('cv/chain-2', torch, 2 operators, 0 parameters, inputs float32[2, 3])"
    )
    page = sample._repr_html_()
    assert "<svg" in page
    assert "<code>Sample(&#x27;cv/chain-2&#x27;" in page

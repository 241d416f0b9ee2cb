"""What a newcomer meets first: narrow terminals, full disks, odd words, closed pipes."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import graphnet_datasets
from graphnet_datasets.cli import datasets
from graphnet_datasets.cli.app import app
from tests.tables import chain, write_dataset

GRAPHNET = Path(sys.executable).with_name("graphnet")


def torch_sees_cuda() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


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
        (
            ("show", "cv/chain-2", "--svg", "no/such/a.svg"),
            "The directory `no/such` of the picture does not exist.",
        ),
        pytest.param(
            ("run", "cv", "--option", "mode=fast"),
            "The option `mode` of the compiler `inductor`",
            marks=pytest.mark.torch,
        ),
        pytest.param(
            ("run", "cv", "--compiler", "eager", "--option", "mode=x"),
            "has no option `mode`",
            marks=pytest.mark.torch,
        ),
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
    if output == "closed":
        assert done.stderr == ""
    if output == "full":
        assert done.returncode == 1
        assert done.stderr.startswith("Error: There is no space left")


@pytest.mark.torch
@pytest.mark.skipif(torch_sees_cuda(), reason="this machine has a CUDA device")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cpu,cuda"])
def test_a_device_that_is_not_there_stops_a_run_before_its_first_sample(
    root: Path, tmp_path: Path, device: str
) -> None:
    result = invoke(
        "run", "cv", "--dataset", root, "--device", device, "--compiler", "eager",
        "--out", tmp_path / "runs",
    )  # fmt: skip
    assert result.exit_code == 1
    assert re.search(r"^Error: .*(cuda|CUDA).*\.$", result.stderr, re.MULTILINE)
    assert not (tmp_path / "runs").exists()


def test_graphs_of_a_framework_that_is_not_installed_are_skipped() -> None:
    script = (
        "import sys; sys.modules['paddle'] = None\nfrom graphnet_datasets.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "validate", "paddle/lenet", "--json"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = {each["check"]: each for each in json.loads(done.stdout)["checks"]}
    assert results["runnable"]["outcome"] == "skipped"
    assert "paddle" in results["runnable"]["reason"]
    assert "failed" not in {each["outcome"] for each in results.values()}


@pytest.mark.parametrize("place", [0, 1, 3])
def test_quiet_is_taken_before_and_after_the_verb(
    root: Path, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    disabled = []
    monkeypatch.setattr(
        sys.modules["graphnet_datasets.cli.app"],
        "disable_progress_bars",
        lambda: disabled.append(True),
    )
    words = ["list", "--dataset", str(root)]
    assert invoke(*words[:place], "--quiet", *words[place:]).exit_code == 0
    assert disabled == [True]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_installed(shell: str, tmp_path: Path) -> None:
    environment = os.environ | {
        "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / ".config"),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }  # fmt: skip
    for option in ("--install-completion", "--show-completion"):
        done = subprocess.run(
            [str(GRAPHNET), option, shell], check=True, capture_output=True, text=True,
            env=environment,
        )  # fmt: skip
    assert "_GRAPHNET_COMPLETE" in done.stdout
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_GRAPHNET_COMPLETE" in text for text in written)


def test_the_help_of_run_names_the_compiler_that_it_takes_by_itself() -> None:
    text = " ".join(re.sub(r"[^\w.,;:`'/-]", " ", invoke("run", "--help").stdout).split())
    assert "Default: inductor" in text
    assert "paddle-to-static" in text


@pytest.mark.parametrize(
    "words",
    [
        "list cvs", "list --task cvs", "show torch/no-such", "run torch/no-such", "validate cvs",
        "translate cvs --out x.parquet", "tc from-graph cvs", "export here --dataset nothing",
        "push cv org/name", "run cv --compiler nothing", "calibrate cv", "score cv",
    ],
)  # fmt: skip
def test_no_message_names_where_the_library_is_installed(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*words.split())
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert str(Path(graphnet_datasets.__file__).parent) not in result.output


def test_disk_errors_do_not_name_where_the_library_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Path(graphnet_datasets.__file__).parent / "starter" / "graphnet" / "cv" / "x.parquet"

    def fail(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(place))

    monkeypatch.setattr("graphnet_datasets.storage.selection.read_local_rows", fail)
    result = invoke("list")
    assert result.stderr == (
        "Error: You have no right to read or write `graphnet/cv/x.parquet`. Ask its owner, or "
        "choose another place.\n"
    )


def test_a_sample_is_one_line_and_a_picture() -> None:
    sample = chain("cv/chain-2", 2)
    assert repr(sample) == (
        "Sample('cv/chain-2', torch, 2 operators, 0 parameters, inputs float32[2, 3])"
    )
    page = sample._repr_html_()
    assert "<svg" in page
    assert "<code>Sample(&#x27;cv/chain-2&#x27;" in page

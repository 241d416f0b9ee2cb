"""Typical mistakes at the command line, each answered by one sentence with the way out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result

from graphnet_datasets.benchmark.records.records import write_runs
from graphnet_datasets.compilers.registry import import_reference
from graphnet_datasets.errors import CompilerError

from ..scores.run_rows import FOUR
from ..tables import write_dataset
from .calling import call

GRAPHNET = Path(sys.executable).with_name("graphnet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a dataset, a hidden copy of it, and no runs."""
    write_dataset(tmp_path / "folder")
    write_dataset(tmp_path / "folder" / ".cache")
    return tmp_path / "folder"


@pytest.mark.parametrize("verb", ["score", "plot"])
def test_a_folder_with_tables_but_no_runs(verb: str, folder: Path, tmp_path: Path) -> None:
    out = ["--out", tmp_path / "plots"] if verb == "plot" else []
    result = call(verb, folder, *out, exit_code=1)
    assert result.stderr == (
        f"Error: There are no run records at `{folder}`. The 3 Parquet files there hold other "
        f"tables. Create some with `graphnet run … --out {folder}`.\n"
    )


def test_score_finds_the_runs_among_other_tables(folder: Path) -> None:
    rows = [{**row, "run_id": str(index)} for index, row in enumerate(FOUR)]
    for name in ("runs", ".hidden"):
        (folder / name).mkdir()
        write_runs(rows, folder / name / "runs.parquet")
    assert call("score", folder).stdout.splitlines()[1].split()[:3] == ["inductor", "4", "1"]


def test_a_misspelled_attribute_of_a_file_is_suggested(folder: Path) -> None:
    path = folder / "mine.py"
    path.write_text("def compile_fast(module, example_inputs):\n    return module\n")
    with pytest.raises(CompilerError) as caught:
        import_reference(f"{path}:compile_fat")
    assert str(caught.value) == (
        f"The compiler `{path}:compile_fat` cannot be imported: `{path}` has no `compile_fat`. Did "
        "you mean `compile_fast`? Check the name after the colon."
    )


def test_a_negative_limit_is_refused(folder: Path) -> None:
    result = call("list", "cv", "--dataset", folder, "--limit", "-3", exit_code=2)
    expected = "Expected an integer of at least 1, got `-3`."
    assert _usage(result) == f"Invalid value for '--limit': {expected}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("list --min-ops 1e3", "Invalid value for '--min-ops': Expected an integer, got `1e3`."),
        ("score runs --b x", "Invalid value for '--b': Expected a number, got `x`."),
        (
            "run cv --tolerance 9",
            "Invalid value for '--tolerance': Expected an integer from -10 to 5, got `9`.",
        ),
        ("show a/b --trials 3", "No such option: --trials. It is an option of `tune`."),
        (
            "show a/b nlp",
            "Got unexpected extra argument(s) (nlp). Example: graphnet show torchvision/resnet18",
        ),
    ],
)
def test_a_command_line_that_cannot_be_parsed(words: str, message: str) -> None:
    assert _usage(call(*words.split(), exit_code=2)) == message


def _usage(result: Result) -> str:
    """Return the message in the frame of a usage error."""
    frame = result.stderr.partition("─╮")[2].rpartition("╰─")[0]
    return " ".join(frame.replace("│", "").split())


@pytest.mark.parametrize("offline", ["0", "1"])
def test_a_hub_that_cannot_be_reached_is_named_at_once(offline: str, tmp_path: Path) -> None:
    environment = os.environ | {
        "HF_HUB_OFFLINE": offline,
        "HF_ENDPOINT": "http://127.0.0.1:9",  # nobody listens
        "HF_HOME": str(tmp_path / "cache"),
    }
    process = subprocess.run(
        [GRAPHNET, "list", "cv", "--dataset", "nosuch/nosuch"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 1
    assert process.stderr == (
        "Error: `nosuch/nosuch` cannot be loaded: the Hub (http://127.0.0.1:9) cannot be reached, "
        "and the repository is not in the cache. Check the network, or name a local dataset "
        "(`./…`).\n"
    )


def test_a_file_that_is_not_a_table_is_not_to_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text("def kernel(x): return x\n")
    result = call("score", path, exit_code=1)
    assert result.stderr == (
        f"Error: `{path}` is not a Parquet file. Name the directory or the file that `graphnet run "
        "--out` wrote, or `graphnet` for the records in the package.\n"
    )


def test_a_site_is_not_written_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "site.txt"
    path.write_text("notes")
    result = call("report", "graphnet", "--out", path, exit_code=2)
    assert "Name a directory for a site, or an .html file" in _usage(result)
    assert path.read_text() == "notes"


@pytest.mark.parametrize(
    "words", ["show cv", "bisect cv --compiler eager", "check cv {file}", "tc from-graph cv"]
)
@pytest.mark.torch
def test_a_config_where_one_sample_is_needed(words: str, folder: Path) -> None:
    path = folder / "mine.py"
    path.write_text("def candidate(x):\n    return (x,)\n")
    arguments = words.format(file=path).split()
    message = call(*arguments, "--dataset", folder, exit_code=1).stderr
    ids = ", ".join(f"`cv/chain-{number}`" for number in range(1, 6))
    assert message == (
        f"Error: `cv` selects 25 samples, but one is needed. Choose one by its id: {ids} …\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("select --cover , --count 2", "No kind to cover was named. Choose from operators, "),
        ("run cv --compiler .:Mine", "`.` in `.:Mine` is a directory. Name a file in it: "),
        ("run cv --seed 99999999999999999999", "The setting `seed` is 99999999999999999999; it "),
        ("run cv --launch cuda_graph", "The launch mode `cuda_graph` replays kernels of a GPU, "),
        ("convert cv --to networkx --out mine.py", "`mine.py` exists already. Choose another "),
        ("show cv/chain-1 --svg a.svg", "`a.svg` is a directory, not a file. Choose a file."),
        ("select --count 2 --out a.svg", "`a.svg` is a directory, not a file. Choose a file."),
        ("tune --replay mine", "`mine` contains no operators to tune: There is no dataset `mine`."),
        ("list ./nothing", "The path `nothing` does not exist. Check it."),
        ("list cv/chian-2", "`cv/chian-2` is neither a config nor the id of a sample of "),
    ],
)
def test_mistakes_are_answered_by_a_sentence(
    words: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mine.py").touch()
    (folder / "a.svg").mkdir()
    monkeypatch.chdir(folder)
    result = call(*words.split(), "--dataset", folder, exit_code=1)
    assert result.stderr.startswith(f"Error: {message}")


@pytest.mark.parametrize("words", ["show a/b --svg a.pdf", "report graphnet --out a.pdf"])
def test_files_of_other_formats_are_refused(words: str) -> None:
    message = _usage(call(*words.split(), exit_code=2))
    assert "`a.pdf`" in message and (".svg" in message or ".html" in message)


@pytest.mark.parametrize(
    ("arguments", "missing", "example"),
    [
        (["score"], "'runs'", "Example: graphnet score"),
        (["transform", "cv"], "'--out'", "Example: graphnet transform"),
        (["bisect", "torch/mlp-mnist"], "'--compiler'", "Example: graphnet bisect"),
        (["check", "torch/mlp-mnist"], "'FILE'", "Example: graphnet check"),
    ],
)
def test_a_missing_argument_is_answered_by_an_example(
    arguments: list[str], missing: str, example: str
) -> None:
    message = " ".join(call(*arguments, exit_code=2).stderr.split())
    assert missing in message
    assert example in message

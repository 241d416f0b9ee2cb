"""`graphnet list` and `show`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import DatasetNotFoundError
from tests.tables import write_dataset

from .calling import call

GRAPHNET = Path(sys.executable).with_name("graphnet")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "source")


def listed(*options: str | Path) -> list[str]:
    output = call("list", *options, "--json").stdout
    return [json.loads(line)["id"] for line in output.splitlines()]


def test_list_reads_one_file(root: Path) -> None:
    assert listed("--dataset", root / "nlp" / "train-0000.parquet") == [
        f"nlp/chain-{number}" for number in range(1, 6)
    ]


def test_list_prints_a_table_by_size(root: Path) -> None:
    lines = call("list", "nlp", "--dataset", root, "--limit", "2").stdout.splitlines()
    assert [line.split() for line in lines] == [
        [
            *("id", "framework", "task", "source", "kind", "family", "ops", "params", "flops"),
            *("dtype", "dynamic", "license"),
        ],
        [
            *("nlp/chain-1", "torch", "nlp", "nlp-library", "graph", "odd", "1", "0", "6"),
            *("float32", "no"),
        ],
        [
            *("nlp/chain-2", "torch", "nlp", "nlp-library", "graph", "even", "2", "0", "12"),
            *("float32", "no"),
        ],
        ["5", "graphs,", "3", "not", "shown"],
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["cv/chain-20", "nlp/chain-2", "nlp/chain-2"], ["nlp/chain-2", "cv/chain-20"]),
        (["nlp", "cv", "--min-ops", "25"], ["cv/chain-25"]),
        (["nlp", "nlp/chain-2", "--max-ops", "1"], ["nlp/chain-1"]),
        (["--max-ops", "2"], ["cv/chain-1", "nlp/chain-1", "cv/chain-2", "nlp/chain-2"]),
        (["--min-ops", "23", "--family", "od"], ["cv/chain-23", "cv/chain-25"]),
        (["--task", "nlp", "--task", "audio", "--limit", "1"], ["nlp/chain-1"]),
        (["cv", "--tag", "small"], ["cv/chain-1", "cv/chain-2"]),
        (
            ["nlp", "--tag", "chain", "--tag", "smallish", "--min-ops", "2"],
            ["nlp/chain-2", "nlp/chain-3"],
        ),
        (["--tag", "none"], []),
        (["cv", "--source", "nlp-library"], []),
        (["--framework", "paddle"], []),
        (["--kind", "subgraph"], []),
        (["nlp", "--kind", "graph", "--dtype", "float32", "--max-ops", "1"], ["nlp/chain-1"]),
        (["--dtype", "bfloat16"], []),
        (["--dynamic"], []),
        (["nlp", "--static", "--max-ops", "1"], ["nlp/chain-1"]),
        (["--license", "MIT"], []),
        (["--min-flops", "1.5e2"], ["cv/chain-25"]),
        (["--max-flops", "6.5", "--min-params", "0"], ["cv/chain-1", "nlp/chain-1"]),
        (["--min-params", "1"], []),
        (
            ["--max-params", "0", "--min-ops", "20", "--max-ops", "21"],
            ["cv/chain-20", "cv/chain-21"],
        ),
    ],
    ids=str,
)
def test_list_filters(root: Path, options: list[str], expected: list[str]) -> None:
    assert listed("--dataset", root, *options) == expected


def test_an_empty_list_names_the_nearest_filters(root: Path) -> None:
    result = call("list", "cv", "--dataset", root, "--dtype", "bfloat16", "--max-ops", "1")
    assert result.stdout.endswith("\n0 graphs\n")
    assert result.stderr == ("Without `--dtype bfloat16`, 1 graph remains, with `float32` (1).\n")


def test_list_refuses_filters_of_other_tables() -> None:
    result = call("list", "cv", "--found-by", "rules", exit_code=1)
    assert result.stderr.endswith("list a config of `sole_op`, `fusible` or `typical`.\n")
    result = call("list", "tuning_tasks", "--kind", "graph", exit_code=1)
    assert result.stderr.startswith("Error: `--kind graph` filters by `kind`, which ")


@pytest.mark.parametrize(
    ("config", "heads"),
    [
        ("failures", ["id", "task", "kind", "stage", "reason"]),
        ("duplicates", ["id", "task", "same_as"]),
        ("tuning_tasks", ["task_id", "task_name"]),
        ("tuning_records", ["task_id", "tuner", "trial"]),
    ],
)
def test_list_shows_the_rows_of_any_config(config: str, heads: list[str]) -> None:
    head, *rows, count = call("list", config, "--limit", "2").stdout.splitlines()
    assert set(heads) <= set(head.split())
    assert len(rows) == 2
    assert "rows, " in count and count.endswith(" not shown")
    rows = call("list", config, "--limit", "1", "--json").stdout.splitlines()
    assert len(rows) == 1 and json.loads(rows[0])


def test_list_says_which_configs_there_are(root: Path) -> None:
    result = call("list", "vision", "--dataset", root, exit_code=1)
    assert result.stderr == (
        f"Error: `{root}` has no config `vision`. Its configs are cv, nlp, all.\n"
    )
    assert result.stdout == ""


def test_debug_shows_the_traceback_wherever_it_stands(root: Path) -> None:
    for arguments in (["--debug", "list", "vision"], ["list", "vision", "--debug"]):
        result = CliRunner().invoke(app, [*arguments, "--dataset", str(root)])
        assert isinstance(result.exception, DatasetNotFoundError)


def test_show_prints_a_graph(root: Path) -> None:
    output = call("show", "cv/chain-2", "--dataset", root).stdout
    head, inputs, source = output.split("\n\n", 2)
    assert "num_ops         2" in head.splitlines()
    assert inputs == "input_0         float32[2, 3]                   mean 0, std 1"
    assert source.count("torch.relu(") == 2


def test_show_draws_a_graph(root: Path, tmp_path: Path) -> None:
    picture = tmp_path / "chain.svg"
    result = call("show", "cv/chain-20", "--dataset", root, "--svg", picture, "--max-boxes", "8")
    assert result.stdout.endswith(f"\nThe picture is `{picture}`.\n")
    assert "relu  x 20</text>" in picture.read_text()


def test_show_wants_one_sample(root: Path) -> None:
    result = call("show", root / "nlp" / "train-0000.parquet", exit_code=1)
    ids = ", ".join(f"`nlp/chain-{size}`" for size in range(1, 6))
    path = root / "nlp" / "train-0000.parquet"
    message = f"Error: `{path}` selects 5 samples, but one is needed. Choose one by its id: {ids}"
    assert result.stderr.splitlines()[-1] == message
    assert call("show", "cv/chain-2", "--names", "short", exit_code=2).stdout == ""


@pytest.mark.parametrize("command", ["list", "show"])
def test_every_command_has_help_with_an_example(command: str) -> None:
    assert f"Example: graphnet {command} " in call(command, "--help").stdout


def test_the_console_script_and_the_module_are_the_same_program(root: Path) -> None:
    arguments = ["list", "nlp", "--dataset", str(root), "--json"]
    outputs = [
        subprocess.run(
            [*program, *arguments], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        for program in ([str(GRAPHNET)], [sys.executable, "-m", "graphnet_datasets"])
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 5
    failed = subprocess.run(
        [str(GRAPHNET), "show", "no/such", "--dataset", str(root)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (failed.returncode, failed.stdout) == (1, "")
    message = "Error: `no/such` is neither a config nor the id of a sample"
    assert failed.stderr.splitlines()[-1].startswith(message)
    assert "Traceback" not in failed.stderr

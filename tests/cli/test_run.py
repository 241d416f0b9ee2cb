"""`graphnet run`, from the command line to the records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from graphnet_datasets.benchmark import read_runs
from graphnet_datasets.cli.app import app
from graphnet_datasets.cli.counting import PARTLY
from graphnet_datasets.schema import COMPILER_BUGS_SCHEMA, sample_to_row
from graphnet_datasets.schema.tables import COMPILER_BUGS
from graphnet_datasets.scores import speedup_score
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import write_arrow, write_table

from ..tables import chain, write_dataset
from ..validation.graphs import WITH_SOURCE


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("dataset"))


@pytest.mark.torch
def test_run_writes_records_that_can_be_scored_and_does_nothing_twice(
    dataset: Path, tmp_path: Path
) -> None:
    command = (
        "--quiet", "run", "cv", "nlp", "--dataset", dataset, "--compiler", "eager",
        "--out", tmp_path / "runs", "--min-ops", 3, "--limit", 2, "--budget", 0.1,
        "--threads", 1, "--memory-limit", 1, "--timeout", "run=30", "--weights", "inputs",
    )  # fmt: skip
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Speedups over eager on cpu (")
    assert [line.split()[:3] for line in lines[2:4]] == [
        ["cv/chain-3", "eager", "right"],
        ["nlp/chain-3", "eager", "right"],
    ]
    assert lines[-4].startswith("eager: 2 of 2 right. S(-3) = ")
    assert lines[-1] == (
        f"Records: {tmp_path / 'runs'} (graphnet score {tmp_path / 'runs'}, "
        f"graphnet plot {tmp_path / 'runs'})"
    )
    runs = read_runs(tmp_path / "runs")
    assert sorted(runs["sample_id"].to_pylist()) == ["cv/chain-3", "nlp/chain-3"]
    assert runs["weights"].to_pylist() == ["inputs"] * 2
    assert speedup_score(tmp_path / "runs").at(0)["num_correct"] == 2
    assert invoke(*command).exit_code == 0
    assert read_runs(tmp_path / "runs").equals(runs)


DOUBLES = """
from torch.utils import _pytree as pytree

def doubles(module, example_inputs):
    return lambda **inputs: pytree.tree_map(lambda output: output * 2, module(**inputs))
"""


def write_bugs(root: Path, compiler: str, verdicts: Mapping[str, str]) -> Path:
    """Write a dataset of graphs that expect these verdicts of a compiler, by name."""
    write_dataset(root)
    rows = [
        {
            **sample_to_row(chain(f"compiler_bugs/{name}", 2)),
            "bug_compiler": compiler,
            "is_verified": verdict != "right",
            "expected": [
                {
                    "compiler": compiler,
                    "options": "{}",
                    "num_variations": 0,
                    "version": "2.0",
                    "verdict": verdict,
                }
            ],
        }
        for name, verdict in verdicts.items()
    ]
    table = pa.Table.from_pylist(rows, schema=COMPILER_BUGS_SCHEMA)
    write_arrow(table, root / "compiler_bugs" / "train-0000.parquet", COMPILER_BUGS)
    write_readme(root)
    return root


@pytest.mark.torch
@pytest.mark.parametrize(
    ("verdict", "line", "status"),
    [
        pytest.param(
            *("wrong", "  1 known bug still reproduces: compiler_bugs/a", 0),
            marks=pytest.mark.slow,
        ),
        ("right", "    compiler_bugs/a: wrong, expected right", PARTLY),
    ],
)
def test_known_bugs_are_compared_after_the_run_and_strictly_if_asked(
    tmp_path: Path, verdict: str, line: str, status: int
) -> None:
    candidate = tmp_path / "mine.py"
    candidate.write_text(DOUBLES)
    root = write_bugs(tmp_path / "dataset", f"{candidate}:doubles", {"a": verdict})
    command = (
        "--quiet", "run", "compiler_bugs", "--dataset", root, "--compiler", f"{candidate}:doubles",
        "--out", tmp_path / "runs", "--threads", 1, "--budget", 0.1, "--memory-limit", 4,
    )  # fmt: skip
    lenient = invoke(*command)
    assert (lenient.exit_code, line in lenient.stdout.splitlines()) == (0, True), lenient.output
    assert ":doubles 2.0: " in lenient.stdout
    assert invoke(*command, "--strict").exit_code == status


@pytest.mark.slow
@pytest.mark.torch
def test_custom_operators_are_run_where_that_is_allowed(tmp_path: Path) -> None:
    path = write_table([WITH_SOURCE], tmp_path / "one.parquet")
    command = (
        "--quiet", "run", path, "--compiler", "aot_eager", "--out", tmp_path / "runs", "--threads",
        1, "--budget", 0.1, "--memory-limit", 4,
    )  # fmt: skip
    assert "not counted  eager failed: UntrustedCodeError" in invoke(*command).stdout
    (refused,) = read_runs(tmp_path / "runs").to_pylist()
    assert refused["error_type"].endswith("UntrustedCodeError")
    assert "`graphnet_tests::double`" in refused["error_message"]
    result = invoke(*command, "--trust-remote-code")
    assert "aot_eager: 1 of 1 right" in result.stdout, result.output
    run = read_runs(tmp_path / "runs").to_pylist()[-1]
    assert (run["status"], run["min_t"]) == ("ok", float("-inf"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["cv", "--compiler", "gcc"],
            "Error: There is no compiler `gcc` for torch. There are: ",
        ),
        (["resnet"], "Error: `resnet` is neither a config nor the id of a sample of "),
        (
            ["cv", "--min-ops", 10**6],
            "Error: No sample of `cv` matches `--min-ops 1000000`. Without",
        ),
        (
            ["cv", "--timeout", "compile"],
            "Error: `compile` is not a timeout. Write it as `phase=seconds`, for example ",
        ),
        (["cv", "--timeout", "judge=3"], "Error: There is no phase `judge`. "),
        (["cv", "--weights", "both"], "Error: The setting `weights` is 'both'; "),
        (["cv", "--option", "x"], "Error: `x` is not a compiler option. "),
        (
            ["cv", "--compiler", "eager", "--compiler", "inductor", "--option", "x=1"],
            "Error: `--option` sets an option of one compiler, but several compilers were given. ",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_1(
    dataset: Path, tmp_path: Path, arguments: list[object], message: str
) -> None:
    result = invoke("run", *arguments, "--dataset", dataset, "--out", tmp_path / "runs")
    assert result.exit_code == 1
    assert result.stderr.startswith(message)
    assert "Traceback" not in result.output


def test_help_has_an_example() -> None:
    result = invoke("run", "--help")
    assert result.exit_code == 0
    assert "Example: graphnet run cv nlp" in result.stdout

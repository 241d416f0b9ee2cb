"""`graphnet transform`, and what it makes in the other verbs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import write_table
from tests.storage.transforming.test_transformer import overflowing
from tests.tables import chain, write_dataset

from .calling import call
from .verbs import QUICK


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "source")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "No transform was selected. Pass one or more of `--symbolise`, "),
        (
            ["--cast", "float16", "--partition", "min_cut"],
            "`--partition` applies to `--backward`. Pass `--backward` too, or omit `--partition`.",
        ),
        (["--emulate"], "`--emulate` applies to `--cast`. Pass `--cast` too, or omit `--emulate`."),
        (["--cast", "int8"], "`dtype` of the transform `cast` is 'int8'. Choose one of bfloat16"),
        (["--autocast", "float64"], "`dtype` of the transform `autocast` is 'float64'."),
        (["--parts", "cv"], "`config` of the transform `parts` is 'cv'. Choose one of sole_op"),
        (
            ["--method", "rules"],
            "`--method` applies to `--parts`. Pass exactly one `--parts` with it.",
        ),
        (["--parts", "typical", "--method", "rules"], "Parts for `typical` cannot be found"),
        (["--parts", "typical", "--cast", "float16"], "depend on all graphs, so they"),
        (["--cast", "float16", "--executor", "slurm"], "There is no executor `slurm`."),
        (["--cast", "float16", "--min-ops", "999"], "No sample of"),
        (["--cast", "float16", "--family", "?"], "No sample of"),
        (["--cast", "float16", "--task", "vision"], "There is no task `vision`."),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_what_cannot_be_is_an_error_before_anything_is_done(
    root: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    words = ["transform", "nlp", "--dataset", root, *options, "--out", tmp_path / "mine"]
    assert message in call(*words, exit_code=1).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_an_unknown_name_is_an_error(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    words = ["transform", "npl", "--dataset", root, "--cast", "float16", "--out", out]
    assert "`npl` is neither a config nor the id of a sample" in call(*words, exit_code=1).stderr
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.torch
def test_refusals_are_reported_and_the_rest_is_done(tmp_path: Path) -> None:
    graphs = write_table([chain("a/good", 2), overflowing("a/bad")], tmp_path / "two.parquet")
    words = ["--cast", "float16", "--jobs", "1", "--out"]
    done = call("transform", graphs, *words, tmp_path / "mine", exit_code=3)
    assert "a/bad: `a/bad/float16` overflows: operator 1 (`torch.exp`)" in done.stderr
    assert "1 sample written to" in done.stdout
    assert "2 graphs: 1 transformed, 1 refused" in done.stdout
    assert "1 refused in 1 graph: it overflows (`torch.exp`)" in done.stdout
    report = (tmp_path / "mine" / "transform-report.jsonl").read_text().splitlines()
    assert {(row := json.loads(line))["id"]: row["num_made"] for line in report} == {
        "a/good": 1,
        "a/bad": 0,
    }
    bad = write_table([overflowing("a/bad")], tmp_path / "one.parquet")
    nothing = call("transform", bad, *words, tmp_path / "none", exit_code=1)
    assert "Nothing written; 1 graph: 0 transformed, 1 refused" in nothing.stdout
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
@pytest.mark.torch
def test_parts_are_listed_shown_and_run_as_tasks_are(tmp_path: Path) -> None:
    dataset = tmp_path / "source"
    write_table([chain("cv/chain-3", 3, "cv")], dataset / "cv" / "train-0000.parquet")
    write_readme(dataset)
    mine = tmp_path / "mine"
    call(
        "transform", "cv", "--dataset", dataset, "--parts", "sole_op", "--jobs", "1", "--out", mine
    )
    (mine / "sole_op").rename(dataset / "sole_op")
    write_readme(dataset)
    (whole,) = call("list", "--dataset", dataset, "--json").stdout.splitlines()
    assert json.loads(whole)["id"] == "cv/chain-3", "`all` is whole graphs"
    (part,) = call("list", "sole_op", "--dataset", dataset, "--json").stdout.splitlines()
    assert json.loads(part) == {
        "id": "cv/chain-3/ops_0", "framework": "torch", "task": "cv", "num_ops": 1,
        "num_params": 0, "flops": 6, "dtype": "float32", "num_occurrences": 3, "num_families": 1,
        "method": "sole_op",
    }  # fmt: skip
    rare = ["list", "sole_op", "--dataset", dataset, "--min-occurrences", "4", "--json"]
    assert call(*rare).stdout == ""
    by_rules = ["--dataset", dataset, "--found-by", "rules", "--json"]
    assert call("list", "sole_op", *by_rules).stdout == ""
    refused = call("list", "all", *by_rules, exit_code=1).output
    assert "`--found-by rules` filters by `method`, which graphs do not have" in refused
    shown = call("show", "cv/chain-3/ops_0", "--dataset", dataset).stdout
    assert re.search(r"parent_ops +\[0\]", shown)
    assert "relu" in shown
    runs = tmp_path / "runs"
    printed = call("run", "sole_op", "--dataset", dataset, "--out", runs, *QUICK.split()).stdout
    assert "eager: 1 of 1 right." in printed

"""The table of problems: grouping of parts by canonical form."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from builder.__main__ import main
from builder.canonical import calling_convention, canonical_form
from builder.capturing import EMBEDDED
from builder.hidden import hide, resized_workloads
from builder.problems import MIN_WORKLOADS, build, find_problems, problem_name
from graphnet_datasets import load_dataset
from graphnet_datasets.analysis.attributes import attributes_of
from graphnet_datasets.analysis.splits import split_of
from graphnet_datasets.benchmark import judge, load_problem
from graphnet_datasets.errors import DatasetNotFoundError, GraphNetError
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema.tables import PROBLEMS
from graphnet_datasets.storage.table import read_table
from tests.benchmark.samples import quick
from tests.problem_sets import SIZES, linear_relu, softmax, write_parts, write_problem_parts

pytestmark = pytest.mark.torch


def test_parts_that_differ_in_numbers_share_a_form_and_a_convention() -> None:
    chains = [linear_relu(*sizes) for sizes in SIZES]
    assert len({canonical_form(chain) for chain in chains}) == 1
    assert len({calling_convention(chain) for chain in chains}) == 1
    rows, columns = softmax(4, 8, 0), softmax(4, 16, 1)
    assert canonical_form(rows) == canonical_form(columns) != canonical_form(chains[0])
    assert (attributes_of(rows), attributes_of(columns)) == ({"op0_dim": 0}, {"op0_dim": 1})


def test_spellings_casts_and_frameworks_share_a_form_but_no_convention() -> None:
    value = Input("input", Value("float32", (4, 8)))
    torch, cast, paddle = (
        Sample("test/silu", framework, "other", (value,), ops, (Ref(len(ops)),))
        for framework, ops in (
            ("torch", (Op("torch.nn.functional.silu", (Ref(0),)),)),
            ("torch", (Op("torch.Tensor.half", (Ref(0),)), Op("torch.ops.aten.silu", (Ref(1),)))),
            ("paddle", (Op("paddle._C_ops.swish", (Ref(0),)),)),
        )
    )
    assert canonical_form(torch) == canonical_form(cast) == canonical_form(paddle)
    assert len(set(map(calling_convention, (torch, cast, paddle)))) == 3


def test_the_order_of_inputs_is_part_of_the_convention_only() -> None:
    sample = linear_relu(4, 16, 8)
    linear, relu = sample.ops
    swapped = dataclasses.replace(
        sample,
        inputs=sample.inputs[::-1],
        ops=(dataclasses.replace(linear, args=(Ref(1), Ref(0))), relu),
    )
    assert canonical_form(sample) == canonical_form(swapped)
    assert calling_convention(sample) != calling_convention(swapped)


def test_equal_parts_of_several_tables_are_one_workload(tmp_path: Path) -> None:
    write_problem_parts(tmp_path)
    chain, rows = sorted(find_problems(tmp_path), key=lambda problem: -len(problem.operators))
    assert (len(chain.workloads), len(rows.workloads)) == (5, 5)
    (shared,) = [part for part in chain.workloads if part.row["id"] == "test/linear-4-16-8"]
    assert shared.splits == {"train", "test"} and shared.num_occurrences == 3
    assert shared.parents == {"model/16"}


def test_a_dataset_without_parts_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GraphNetError, match="python -m builder subgraphs"):
        find_problems(tmp_path)


def test_a_missing_table_is_explained_with_its_command(tmp_path: Path) -> None:
    write_problem_parts(tmp_path)
    with pytest.raises(DatasetNotFoundError, match=r"`python -m builder problems`\."):
        load_dataset(tmp_path, "problems")


def test_problems_are_built_loaded_and_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, work = tmp_path / "graphnet", tmp_path / "build"
    write_problem_parts(dataset)
    rows = build(dataset, work, jobs=1)
    assert "2 computations with at least 5 workloads" in capsys.readouterr().out
    assert [row["num_workloads"] for row in rows] == [MIN_WORKLOADS] * 2
    splits = load_dataset(dataset, "problems")
    loaded = [row for split in splits.values() for row in split]
    assert {row["problem_id"] for row in loaded} == {row["problem_id"] for row in rows}
    for split, part in splits.items():
        assert {split_of(group) for group in part["split_group"]} <= {split}
    rows_of = {row["category"]: row for row in rows}
    chain, softmaxes = rows_of["matmul"], rows_of["reductions"]
    assert chain["parent_splits"] == ["test", "train"] and chain["attributes"] == []
    assert softmaxes["attributes"] == ["op0_dim"] and softmaxes["licenses"] == ["MIT"]
    workload = next(item for item in chain["workloads"] if item["shapes"][0] == [4, 16])
    assert workload["flops"] >= 2 * 4 * 16 * 8
    assert workload["bytes"] == 4 * (4 * 16 + 8 * 16 + 4 * 8)
    assert -7 < workload["eager_t"] < -4 and workload["tolerance_t"] in (-5, -4)
    assert set(rows[0]) == set(PROBLEMS.schema.names)
    files = {path: path.read_bytes() for path in dataset.glob("problems/*.parquet")}
    parts = sorted((work / ".problems.problems" / "parts").iterdir())
    times = [path.stat().st_mtime_ns for path in parts]
    arguments = ["problems", "--all", "--out", str(dataset), "--build", str(work), "--jobs", "1"]
    assert main(arguments) == 0
    assert [path.stat().st_mtime_ns for path in sorted(parts[0].parent.iterdir())] == times
    assert {path: path.read_bytes() for path in dataset.glob("problems/*.parquet")} == files


def test_only_workloads_of_new_parts_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_problem_parts(tmp_path)
    rows = build(tmp_path, tmp_path / "build", jobs=1)
    write_parts(tmp_path, [softmax(4, 48, 1)], "sole_op")
    capsys.readouterr()
    more_rows = build(tmp_path, tmp_path / "again", jobs=1)
    assert "1 workload to measure of 11" in capsys.readouterr().out
    workloads, more_workloads = (
        {item["part_id"]: item for row in table for item in row["workloads"]}
        for table in (rows, more_rows)
    )
    added = more_workloads.pop("test/softmax-4-48-1")
    assert added["bytes"] == 2 * 4 * 4 * 48 and more_workloads == workloads


def test_a_workload_that_eager_cannot_run_is_left_out(tmp_path: Path) -> None:
    broken = [
        dataclasses.replace(
            sample, ops=(sample.ops[0], dataclasses.replace(sample.ops[1], target="torch.det"))
        )
        for sample in (linear_relu(*sizes) for sizes in SIZES)
    ]
    write_parts(tmp_path, broken)
    with pytest.raises(GraphNetError, match=r"No computation .* 5 workloads.*--min-workloads"):
        build(tmp_path, tmp_path / "build", jobs=1)


def test_a_category_has_the_problems_of_the_most_families(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_problem_parts(tmp_path)
    rows = build(tmp_path, tmp_path / "build", 1, min_workloads=1, max_per_category=1)
    categories = [row["category"] for row in rows]
    assert len(categories) == len(set(categories)) >= 1
    everything = build(tmp_path, tmp_path / "build", 1, min_workloads=1)
    assert {row["problem_id"] for row in rows} <= {row["problem_id"] for row in everything}
    capsys.readouterr()


def test_hidden_sizes_follow_from_the_seed(tmp_path: Path) -> None:
    write_problem_parts(tmp_path / "public")
    (problem,) = [item for item in find_problems(tmp_path / "public") if "mm" in item.operators]

    def sizes(seed: str) -> list[Any]:
        return [row["inputs"] for row in resized_workloads(problem, seed)]

    assert sizes("secret") == sizes("secret") != sizes("other")
    public = [workload.row["inputs"][0]["shape"] for workload in problem.workloads]
    hidden = [row["inputs"][0]["shape"] for row in resized_workloads(problem, "secret")]
    assert len(hidden) == MIN_WORKLOADS
    assert not [shape for shape in hidden if shape in public]


@pytest.mark.slow
def test_a_solution_of_a_public_problem_is_judged_on_hidden_sizes(tmp_path: Path) -> None:
    write_problem_parts(tmp_path / "public")
    out = tmp_path / "contest"
    (public,) = [item for item in find_problems(tmp_path / "public") if "mm" in item.operators]
    name = problem_name(public.operators, public.form)
    arguments = ["--dataset", str(tmp_path / "public"), "--build", str(tmp_path / "build")]
    assert main(["problems", "--hidden", "secret", "--split", "train", "--out", str(out),
                 "--jobs", "1", *arguments]) == 0  # fmt: skip
    verdict = judge(
        load_problem(name, source=out),
        "def candidate(x, weight):\n    return (x @ weight.t()).relu()\n",
        settings=quick(has_oracle=False, has_profile=False),
    )
    assert verdict.is_accepted and len(verdict.results) == MIN_WORKLOADS, verdict
    with pytest.raises(GraphNetError, match="contains a dataset already"):
        hide(tmp_path / "public", out, tmp_path / "build", 1, seed="secret", split="train")


def test_the_embedded_problems_refer_to_embedded_parts() -> None:
    rows = [
        row
        for path in sorted((EMBEDDED / "problems").glob("*.parquet"))
        for row in read_table(path).to_pylist()
    ]
    assert len(rows) >= 400
    assert len({row["form"] for row in rows}) == len(rows)
    workloads = [workload for row in rows for workload in row["workloads"]]
    assert min(row["num_workloads"] for row in rows) >= MIN_WORKLOADS
    parts = {
        (config, part["id"], part["subgraph_hash"])
        for config in {workload["config"] for workload in workloads}
        for path in (EMBEDDED / config).glob("*.parquet")
        for part in read_table(path, ["id", "subgraph_hash"]).to_pylist()
    }
    for workload in workloads:
        assert (workload["config"], workload["part_id"], workload["subgraph_hash"]) in parts

"""Problems in the formats of flashinfer-bench and SOL-ExecBench."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.benchmark.problems import Problem, load_problem
from graphnet_datasets.conversion.definitions import export_problem, write_exported
from graphnet_datasets.sample import Sample
from graphnet_datasets.scores.tolerance import tolerances
from tests.problem_sets import linear_relu, softmax, write_problems

pytestmark = pytest.mark.torch

NOTES = {"bytes": 1, "eager_t": None}


def problem_of(folder: Path, *samples: Sample) -> Problem:
    (name,) = write_problems(folder, samples, NOTES)
    return load_problem(name, source=folder)


def test_equal_sizes_are_one_axis(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, linear_relu(4, 16, 8), linear_relu(2, 32, 8))
    exported = export_problem(problem)
    (definition,) = exported.definitions
    assert exported.left_out == {}
    x, weight = (definition["inputs"][name]["shape"] for name in ("input_0", "parameter_0"))
    assert x[1] == weight[1] and definition["outputs"]["output_0"]["shape"] == [x[0], weight[0]]
    assert definition["axes"][weight[0]] == {"type": "const", "value": 8}
    assert definition["axes"][x[0]] == {"type": "var"}
    sizes = {
        (item["workload"]["axes"][x[0]], item["workload"]["axes"][x[1]])
        for item in exported.workloads
    }
    assert sizes == {(4, 16), (2, 32)}


def test_numeric_arguments_make_definitions(tmp_path: Path) -> None:
    exported = export_problem(problem_of(tmp_path, softmax(4, 8, 0), softmax(4, 16, 1)))
    assert len(exported.definitions) == len(exported.workloads) == 2


def test_a_strided_workload_is_left_out_with_the_reason(tmp_path: Path) -> None:
    plain = softmax(4, 8, 1)
    value = dataclasses.replace(plain.inputs[0].value, stride=(1, 4))
    strided = dataclasses.replace(
        plain, id="test/strided", inputs=(dataclasses.replace(plain.inputs[0], value=value),)
    )
    exported = export_problem(problem_of(tmp_path, plain, strided))
    assert exported.left_out == {"test/strided": "The input `input_0` has strides of its own."}
    assert len(exported.workloads) == 1


def test_files_have_the_layout_and_the_reference_runs(tmp_path: Path) -> None:
    import torch

    problem = problem_of(tmp_path / "data", linear_relu(4, 16, 8), linear_relu(2, 32, 8))
    paths = write_exported(export_problem(problem), tmp_path / "out")
    assert {path.relative_to(tmp_path / "out").parts[0] for path in paths} == {
        "definitions",
        "workloads",
    }
    definition = json.loads(paths[0].read_text())
    names: dict[str, Any] = {}
    exec(definition["reference"], names)  # noqa: S102 - our own sample
    x, weight = torch.randn(2, 32), torch.randn(8, 32)
    assert torch.equal(names["run"](x, weight), torch.relu(x @ weight.t()))
    assert len(paths[1].read_text().splitlines()) == 2


def test_the_files_are_valid_for_flashinfer_bench(tmp_path: Path) -> None:
    data = pytest.importorskip("flashinfer_bench.data")
    problem = problem_of(tmp_path / "data", linear_relu(4, 16, 8), linear_relu(2, 32, 8))
    write_exported(export_problem(problem), tmp_path / "out")
    traces = data.TraceSet.from_path(str(tmp_path / "out"))
    (name,) = traces.definitions
    assert len(traces.workloads[name]) == 2


def test_sol_execbench_has_a_folder_per_definition_and_tolerances(tmp_path: Path) -> None:
    problem = problem_of(tmp_path / "data", linear_relu(4, 16, 8), linear_relu(2, 32, 8))
    paths = write_exported(export_problem(problem), tmp_path / "out", "sol-execbench")
    assert [path.name for path in paths] == ["definition.json", "workload.jsonl"]
    definition = json.loads(paths[0].read_text())
    assert paths[0].parent.name == definition["name"] and "tags" not in definition
    for line in paths[1].read_text().splitlines():
        workload = json.loads(line)
        atol, rtol = tolerances(problem.workloads[0]["tolerance_t"], "float32")
        assert workload["tolerance"] == {
            "max_atol": atol, "max_rtol": rtol, "required_matched_ratio": 1.0
        }  # fmt: skip
        assert set(workload["inputs"]) == set(definition["inputs"])


def test_the_files_are_valid_for_sol_execbench(tmp_path: Path) -> None:
    data = pytest.importorskip("sol_execbench.core.data")
    problem = problem_of(tmp_path / "data", linear_relu(4, 16, 8), linear_relu(2, 32, 8))
    paths = write_exported(export_problem(problem), tmp_path / "out", "sol-execbench")
    definition = data.Definition.model_validate_json(paths[0].read_text())
    for line in paths[1].read_text().splitlines():
        workload = data.Workload.model_validate_json(line)
        assert set(workload.axes) == set(definition.var_axes)

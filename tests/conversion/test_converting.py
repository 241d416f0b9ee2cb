"""`convert`: files that are loaded again and agree with eager, and rows for failures."""

from __future__ import annotations

import dataclasses
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.conversion import FORMATS, Format, convert, find_format
from graphnet_datasets.errors import ConversionError, GraphNetError, MissingExtraError, RunError
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from tests.benchmark.samples import (
    DROPOUT,
    HUGE,
    IN_PLACE,
    INTEGERS,
    LINEAR,
    NO_OUTPUTS,
    RUNNING_STATISTICS,
    make_sample,
)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def write(sample: Any, name: str, folder: Path) -> tuple[Path, float | None]:
    """Convert in this process, and return the file and the t of its outputs."""
    from graphnet_datasets.conversion.programs import write_program

    path = folder / f"converted{FORMATS[name].suffix}"
    return path, write_program(sample, name, path)


@pytest.mark.parametrize("sample", [LINEAR, RUNNING_STATISTICS, INTEGERS, IN_PLACE])
@pytest.mark.parametrize("name", ["fx-text", "kernelbench"])
def test_source_computes_what_eager_computes(sample: Any, name: str, tmp_path: Path) -> None:
    _, t = write(sample, name, tmp_path)
    assert t == float("-inf")


def test_a_graph_without_outputs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="has no output tensors"):
        write(NO_OUTPUTS, "fx-text", tmp_path)


def test_random_outputs_are_compared_by_shape(tmp_path: Path) -> None:
    assert write(DROPOUT, "fx-text", tmp_path)[1] is None


def test_a_kernelbench_problem_has_a_model_with_weights_and_inputs(tmp_path: Path) -> None:
    path, _ = write(LINEAR, "kernelbench", tmp_path)
    problem = runpy.run_path(str(path))
    model = problem["Model"](*problem["get_init_inputs"]())
    assert {name: tuple(weight.shape) for name, weight in model.named_parameters()} == {
        "parameter_0": (8, 16)
    }
    (inputs,) = problem["get_inputs"]()
    assert model(inputs).shape == (4, 8)


def test_a_variance_of_a_kernelbench_problem_stays_positive() -> None:
    import numpy as np

    from graphnet_datasets.conversion.problems import _moments

    mean, deviation = _moments(np.array([0.0, 5.0, 1.0]))
    assert mean == 2.0
    assert mean - 6 * deviation >= 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pt2", "onnx", "stablehlo"])
def test_a_program_computes_what_eager_computes(name: str, tmp_path: Path) -> None:
    try:
        find_format(name).check_installed()
    except MissingExtraError as error:
        pytest.skip(str(error))
    path, t = write(LINEAR, name, tmp_path)
    assert t is not None
    assert t < -5
    assert path.stat().st_size > 8 * 16 * 4  # the weights


def test_a_program_whose_outputs_differ_is_refused() -> None:
    from graphnet_datasets.conversion.programs import Workload

    workload = Workload(LINEAR)
    with pytest.raises(ConversionError, match=r"differ from eager's: they agree from t = .* on"):
        workload.compare(lambda **inputs: 1.5 * workload.module(**inputs))
    with pytest.raises(ConversionError) as raised:
        workload.compare(lambda **inputs: workload.module(**inputs).double())
    assert str(raised.value) == (
        "The outputs of the converted graph differ from eager's. Output 0 has dtype float64, but "
        "eager's has float32."
    )


def test_each_sample_has_a_file_or_a_reason(tmp_path: Path) -> None:
    paddle = dataclasses.replace(LINEAR, id="test/paddle", framework="paddle", ops=(
        Op("paddle.nn.functional.linear", (Ref(0), Ref(0))),
    ), outputs=Ref(2))  # fmt: skip
    report = convert([LINEAR, HUGE, paddle], "fx-text", tmp_path / "out", jobs=1)
    assert [outcome.id for outcome in report.outcomes] == [
        "test/linear",
        "test/huge",
        "test/paddle",
    ]
    right, huge, other = report.outcomes
    assert right.path == tmp_path / "out" / "test" / "linear.py"
    assert right.min_t == -99
    assert right.status == "bit-equal"
    assert "GraphModule" in runpy.run_path(str(right.path))
    assert huge.path is None
    assert huge.status == "failed"
    assert "memory" in huge.reason
    assert other.reason == (
        "`fx-text` is a format for graphs of torch, and `test/paddle` is of paddle. Convert it to "
        "`networkx` or `pyg`."
    )
    assert [path.name for path in (tmp_path / "out").rglob("*.py")] == ["linear.py"]
    assert report.summary() == f"1 file of 3 samples in {tmp_path / 'out'}; 2 failures"
    assert json.loads(json.dumps(right.to_dict()))["path"] == str(right.path)


def test_an_unknown_format_and_a_missing_package_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"There is no format `onx`\. Did you mean `onnx`\?"):
        convert(LINEAR, "onx", tmp_path)
    with pytest.raises(MissingExtraError) as raised:
        Format("mine", ".mine", ("no_such_package",), "convert").check_installed()
    assert str(raised.value) == (
        "Converting to `mine` needs the package `no_such_package`, which is not installed. "
        "Install it with `pip install 'graphnet-datasets[convert]'`."
    )


def test_a_name_that_leaves_the_directory_is_refused(tmp_path: Path) -> None:
    value = Value("float32", (2,))
    sample = make_sample("x", Op("torch.relu", (Ref(0),)), inputs=(Input("input", value),))
    with pytest.raises(GraphNetError):
        convert(dataclasses.replace(sample, id="../x"), "networkx", tmp_path / "out", jobs=1)
    assert list(tmp_path.rglob("*.json")) == []

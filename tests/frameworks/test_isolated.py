"""Isolated modules give eager's outputs, and survive graphs that crash, hang or lie."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, ClassVar

import pytest

from graphnet_datasets import materialize
from graphnet_datasets.errors import IsolatedCallError, MaterializeError, UnknownOperatorError
from graphnet_datasets.frameworks import make_inputs
from graphnet_datasets.frameworks.isolated import read_tensors, rebuild
from graphnet_datasets.isolation.linux import children
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref

from ..benchmark.samples import LINEAR

torch = pytest.importorskip("torch", reason="torch is not installed")
X = Input("input", Value("float32", (2, 3)))


def sample_of(*ops: Op, outputs: object) -> Sample:
    return Sample("example/isolated", "torch", "other", (X,), ops, outputs)  # type: ignore[arg-type]


def test_outputs_are_those_of_the_module() -> None:
    inputs = make_inputs(LINEAR)
    expected = materialize(LINEAR)(**inputs)
    with materialize(LINEAR, isolated=True) as isolated:
        for _ in range(2):
            outputs = isolated(**inputs)
            torch.testing.assert_close(outputs, expected, rtol=0, atol=0)
        torch.testing.assert_close(isolated(*inputs.values()), expected, rtol=0, atol=0)


def test_structures_and_dtypes_survive() -> None:
    sample = sample_of(
        Op("torch.Tensor.bfloat16", (Ref(0),)),
        Op("torch.sum", (Ref(0),)),
        outputs=(Ref(1), (Ref(2), None)),
    )
    inputs = make_inputs(sample)
    expected = materialize(sample)(**inputs)
    with materialize(sample, isolated=True) as isolated:
        outputs = isolated(**inputs)
    assert type(outputs) is type(expected)
    assert outputs[1][1] is None
    assert torch.equal(outputs[0], expected[0])


def test_a_call_that_fails_raises_our_error_and_the_next_one_runs() -> None:
    with materialize(LINEAR, isolated=True) as isolated:
        inputs = make_inputs(LINEAR)
        wrong = {name: torch.ones(1, 1, 1) for name in inputs}
        with pytest.raises(IsolatedCallError, match="The graph failed in its process"):
            isolated(**wrong)
        isolated(**inputs)


class NotATensor:
    """An object that lies about its shape and its memory."""

    shape = (2**20, 2**20)
    __array_interface__: ClassVar = {"shape": shape, "typestr": "<f4", "data": (4096, False)}


def test_arguments_that_are_no_tensors_raise_our_error() -> None:
    with materialize(LINEAR, isolated=True) as isolated:
        for argument in (NotATensor(), "text", None):
            with pytest.raises(IsolatedCallError, match="An argument of the isolated module is"):
                isolated(**{**make_inputs(LINEAR), "input_0": argument})


def test_a_process_that_dies_costs_one_call() -> None:
    inputs = make_inputs(LINEAR)
    isolated = materialize(LINEAR, isolated=True)
    isolated(**inputs)
    server = isolated._worker._server
    (job,) = children(server.pid)
    os.kill(job, signal.SIGSEGV)
    with pytest.raises(IsolatedCallError, match=r"ended \(crash\)"):
        isolated(**inputs)
    isolated(**inputs)
    isolated.close()


@pytest.mark.parametrize(
    "answer",
    [
        {"values": [], "kinds": ["tensor"], "structure": None},
        {"values": [{"dtype": [], "shape": [], "offset": 0}], "kinds": ["int"], "structure": 0},
        {
            "values": [{"dtype": "float32", "shape": [2], "offset": 0}],
            "kinds": ["int"],
            "structure": 0,
        },
    ],
)
def test_an_answer_that_contradicts_itself_raises_our_error(answer: dict[str, Any]) -> None:
    inputs = make_inputs(LINEAR)
    with materialize(LINEAR, isolated=True) as isolated:
        isolated(**inputs)
        os.write(isolated._worker._pipes[1], json.dumps(answer).encode() + b"\n")
        with pytest.raises(IsolatedCallError):
            isolated(**inputs)


def test_an_unknown_operator_is_named() -> None:
    sample = sample_of(Op("torch.nothing", (Ref(0),)), outputs=Ref(1))
    with pytest.raises(UnknownOperatorError):
        materialize(sample)
    with pytest.raises(MaterializeError, match=r"torch\.nothing"):
        materialize(sample, isolated=True)(**make_inputs(sample))


def test_a_gpu_is_refused() -> None:
    with pytest.raises(MaterializeError, match="runs on the CPU"):
        materialize(LINEAR, isolated=True, device="cuda")


@pytest.mark.parametrize(
    "described",
    [
        None,
        [1],
        [{"dtype": "object", "shape": [1], "offset": 0}],
        [{"dtype": "float32", "shape": [2**40], "offset": 0}],
        [{"dtype": "float32", "shape": [-1], "offset": 0}],
        [{"dtype": "float32", "shape": [1], "offset": -4}],
        [{"dtype": "float32", "shape": [True], "offset": 0}],
    ],
)
def test_descriptions_that_do_not_fit_are_refused(described: object, tmp_path: Path) -> None:
    (tmp_path / "outputs").write_bytes(bytes(8))
    with pytest.raises(IsolatedCallError):
        read_tensors(tmp_path / "outputs", described, 2**20)


@pytest.mark.parametrize(
    "structure", ["x", 3, -1, True, {"set": []}, {"dict": [[[], 0]]}, {"list": 0}]
)
def test_unknown_structures_are_refused(structure: object) -> None:
    with pytest.raises(IsolatedCallError):
        rebuild(structure, ["leaf"])

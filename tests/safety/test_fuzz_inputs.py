"""A short run of the fuzzer of inputs, and the boundary that it looks at."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import graphnet_datasets
from graphnet_datasets import Sample, make_inputs, translate
from graphnet_datasets.errors import (
    DiskError,
    GraphNetError,
    MemoryLimitError,
    SampleError,
    raises_only,
)
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.transforms import cast

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.slow
def test_mutations_raise_our_errors_only() -> None:
    script = str(REPOSITORY / "benchmarks" / "fuzz_inputs.py")
    counts = ("--rows", "60", "--records", "20", "--traces", "4", "--folders", "12", "--npz", "20")
    done = subprocess.run(
        [sys.executable, script, *counts, "--seed", "3"], cwd=REPOSITORY, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    *verbs, summary, left = map(json.loads, done.stdout.splitlines())
    assert [line for line in verbs if line["foreign"] or line["deaths"] or line["slow"]] == []
    assert summary["mutations"] >= 116
    assert summary["wrong"] == 0
    assert [left[key] for key in ("processes_left", "files_left", "files_outside")] == [[], [], []]
    assert done.returncode == 0, done.stderr[-2000:]


def sample_of(*ops: Op, value: Value, framework: Any = "torch") -> Sample:
    inputs = (Input("input", value),)
    return Sample("example/odd", framework, "other", inputs, ops, Ref(len(ops)))


@pytest.mark.paddle
def test_a_dtype_that_paddle_cannot_convert_is_our_error() -> None:
    odd = sample_of(
        Op("paddle._C_ops.relu", (Ref(0),)), value=Value("float8_e4m3fn", (4,)), framework="paddle"
    )
    for verb in (make_inputs, graphnet_datasets.materialize, graphnet_datasets.calibrate):
        with pytest.raises(GraphNetError):
            verb(odd)
            raise SampleError("The verb takes it.")


def test_tensors_beyond_all_memory_are_our_error() -> None:
    huge = sample_of(Op("torch.relu", (Ref(0),)), value=Value("float32", (2**45,)))
    for verb in (graphnet_datasets.calibrate, lambda sample: cast(sample, "float16")):
        with pytest.raises(GraphNetError):
            verb(huge)


def test_a_row_without_its_columns_is_our_error() -> None:
    for rows in ([{}], [{"id": "a"}], [{"id": None, "task": 3}], [None], [3]):
        with pytest.raises(GraphNetError):
            select_rows(rows)


def test_an_operator_that_returns_no_tensor_is_our_error() -> None:
    matrix = Value("float32", (2, 3))
    for target, args in (("torch.Tensor.size", (Ref(0),)), ("operator.getitem", (Ref(0), None))):
        with pytest.raises(GraphNetError):
            translate(sample_of(Op(target, args), value=matrix))
            raise SampleError("It is translated.")


@pytest.mark.parametrize(
    ("cause", "own"),
    [
        (KeyError("x"), SampleError),
        (AttributeError("x"), SampleError),
        (RecursionError("x"), SampleError),
        (MemoryError(), MemoryLimitError),
        (RuntimeError("can't allocate memory: you tried to allocate 9 bytes"), MemoryLimitError),
        (PermissionError(13, "x"), DiskError),
        (OSError(errno.ENOSPC, "x"), DiskError),
        (OSError(errno.ENOSPC, "x", "a.parquet"), DiskError),
    ],
)
def test_the_boundary_of_public_functions(cause: Exception, own: type[GraphNetError]) -> None:
    @raises_only(SampleError)
    def fail() -> None:
        raise cause

    @raises_only(SampleError)
    def yield_and_fail() -> Iterator[int]:
        yield 1
        raise cause

    def consume() -> None:
        list(yield_and_fail())

    calls: list[Callable[[], None]] = [fail, consume]
    for call in calls:
        with pytest.raises(own) as caught:
            call()
        assert type(caught.value) is own
        assert caught.value.__cause__ is cause


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    @raises_only(SampleError)
    def fail(*path: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", *path)

    with pytest.raises(DiskError, match=rf"for the output or for temporary files in `{tmp_path}`"):
        fail()
    with pytest.raises(DiskError, match=r"no space left for `a.parquet`"):
        fail("a.parquet")


def test_our_own_errors_and_missing_extras_pass_the_boundary() -> None:
    for error in (DiskError("Full."), ImportError("No module named `torch`.")):

        @raises_only(SampleError)
        def fail(error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error)) as caught:
            fail()
        assert caught.value is error

"""Timed runs of paddle samples: the runtime's tensors bit by bit, and whole runs end to end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphnet_datasets import run
from graphnet_datasets.benchmark.handover import read_outputs
from graphnet_datasets.compilers.paddle_base import PaddleCompiler
from graphnet_datasets.errors import CompilerUnavailableError
from graphnet_datasets.frameworks.outputs import OutputTypeError
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref
from graphnet_datasets.sample.vocabulary import ITEM_SIZE_BYTES
from graphnet_datasets.timing.pairs import TimingSettings

from ..frameworks.paddle.installed import paddle

pytestmark = pytest.mark.paddle

CORE = "paddle._C_ops."
QUICK = TimingSettings(min_pairs=3, max_pairs=4, warmup_s=0.01)
DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


@pytest.fixture
def runtime() -> Iterator[Any]:
    from graphnet_datasets.frameworks.paddle.runtime import PaddleRuntime

    with paddle.no_grad():  # the runtime switches gradients off for its whole process
        yield PaddleRuntime("cpu", 1)
    paddle.set_grad_enabled(True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_arrives_bit_by_bit(runtime: Any, tmp_path: Path, dtype: str) -> None:
    from graphnet_datasets.frameworks.paddle.tensors import dtype_of

    data = np.arange(6 * ITEM_SIZE_BYTES[dtype], dtype=np.uint8)
    if dtype == "bool":
        data %= 2
    plain = paddle.to_tensor(data)
    tensor = (plain.astype("bool") if dtype == "bool" else plain.view(dtype_of(dtype))).reshape(
        [2, 3]
    )
    described = runtime.write_outputs((tensor, [tensor.transpose([1, 0])], None), tmp_path / "out")
    first, second = read_outputs(tmp_path / "out", described)
    assert (first.dtype, first.elements.shape) == (dtype, (2, 3))
    assert first.elements.tobytes() == data.tobytes()
    assert second.elements.T.tobytes() == data.tobytes()


def test_numbers_and_empty_tensors_are_outputs_and_text_is_not(
    runtime: Any, tmp_path: Path
) -> None:
    outputs = {"a": 3, "b": (2.5, True), "c": paddle.zeros([0, 4])}
    found = read_outputs(tmp_path / "out", runtime.write_outputs(outputs, tmp_path / "out"))
    assert [(each.dtype, each.elements.shape) for each in found] == [
        ("int64", ()),
        ("float64", ()),
        ("bool", ()),
        ("float32", (0, 4)),
    ]
    with pytest.raises(OutputTypeError, match=r"^Output 0 is a `builtins\.str`, not a plain"):
        runtime.write_outputs("text", tmp_path / "out")


def test_outputs_are_overwritten_and_protected_memory_is_not(runtime: Any) -> None:
    weight = paddle.ones([4, 4])
    output, view = paddle.ones([4, 4]), weight[1:].transpose([1, 0])
    runtime.poison({"a": output.transpose([1, 0]), "b": [view, None]}, runtime.storages(weight))
    assert bool(output.isnan().all())
    assert bool((weight == 1).all())


def test_a_change_of_one_element_changes_the_checksum(runtime: Any) -> None:
    tensor = paddle.arange(13).astype("int8")
    before, copy = runtime.checksum(tensor), runtime.clone(tensor)
    tensor[12] = 7
    assert runtime.checksum(tensor) != before
    assert not runtime.is_equal(tensor, copy)
    runtime.restore(tensor, copy)
    assert runtime.is_equal(tensor, copy)
    assert runtime.checksum(tensor) == before


def test_a_seed_makes_random_operators_repeat(runtime: Any) -> None:
    runtime.seed(5)
    first = paddle.rand([8])
    runtime.seed(5)
    assert runtime.is_equal(first, paddle.rand([8]))


def make_sample(name: str, *ops: Op, outputs: Any = None) -> Sample:
    drawn = Statistics(0.0, 0.5, -2.0, 2.0)
    value = Value("float32", (16, 16))
    roles: tuple[Any, ...] = ("input", "parameter", "buffer")
    return Sample(
        f"test/{name}",
        "paddle",
        "other",
        tuple(Input(role, value, statistics=drawn) for role in roles),
        ops,
        Ref(2 + len(ops)) if outputs is None else outputs,
    )


MATMUL = Op(f"{CORE}matmul", (Ref(0), Ref(1), False, False))
GOOD = make_sample("good", MATMUL, Op(f"{CORE}gelu", (Ref(3), False)))
INPLACE = make_sample(
    "inplace",
    Op(f"{CORE}add_", (Ref(2), Ref(0))),
    Op(f"{CORE}scale", (Ref(3), 2.0, 0.0, True)),
)
BROKEN = make_sample("broken", Op(f"{CORE}matmul", (Ref(0), ListArg((1, 2)), False, False)))
DRAWN = make_sample(
    "random",
    Op(f"{CORE}dropout", (Ref(0), None, 0.5, False, "upscale_in_train", 0, False)),
    Op("operator.getitem", (Ref(3), 0)),
    Op(f"{CORE}cast", (Ref(4), Named("dtype", "float64"))),
)


class Wrong(PaddleCompiler):
    """Gives outputs that are off by a tenth."""

    name = "wrong"

    def compile(self, module: Any, example_inputs: Any) -> Any:  # noqa: ARG002
        return lambda **inputs: module(**inputs) * 1.1


class Raises(PaddleCompiler):
    """Raises what paddle raises when its operators refuse a shape."""

    name = "raises"

    def compile(self, module: Any, example_inputs: Any) -> Any:  # noqa: ARG002
        return paddle.matmul(paddle.ones([2, 3]), paddle.ones([2, 3]))


class Aborts(PaddleCompiler):
    """Dies in its compiled code."""

    name = "aborts"

    def compile(self, module: Any, example_inputs: Any) -> Any:  # noqa: ARG002
        import os

        return lambda **_: os.abort()


def run_quickly(samples: list[Sample], compiler: str, tmp_path: Path) -> list[dict[str, Any]]:
    records = run(samples, compiler=compiler, out=tmp_path / "runs", timing=QUICK)
    return [dict(record) for record in records]


@pytest.mark.parametrize(
    "compiler",
    [
        pytest.param("paddle-eager", marks=pytest.mark.slow),
        "paddle-to-static",
        pytest.param("paddle-inference", marks=pytest.mark.slow),
    ],
)
def test_a_run_ends_with_times_and_correct_outputs(compiler: str, tmp_path: Path) -> None:
    good, broken = run_quickly([GOOD, BROKEN], compiler, tmp_path)
    assert (good["status"], good["framework"], good["compiler"]) == ("ok", "paddle", compiler)
    assert good["min_t"] <= -5
    assert good["speedup"] > 0
    assert good["compile_time_s"] >= 0
    assert good["compiler_version"] == paddle.__version__
    assert broken["status"] == "baseline_failed"


def test_eager_against_itself_is_exact_also_where_it_writes_or_draws(tmp_path: Path) -> None:
    inplace, drawn = run_quickly([INPLACE, DRAWN], "paddle-eager", tmp_path)
    assert (inplace["status"], inplace["min_t"]) == ("ok", float("-inf"))
    assert (drawn["status"], drawn["min_t"]) == ("ok", float("-inf"))
    assert drawn["is_deterministic"]


@pytest.mark.slow
def test_failures_end_in_their_phase(tmp_path: Path) -> None:
    results = {
        name: run_quickly([GOOD], f"{__name__}:{name}", tmp_path)[0]
        for name in ("Wrong", "Raises", "Aborts")
    }
    assert results["Wrong"]["status"] == "ok"
    assert results["Wrong"]["min_t"] > -3
    assert (results["Raises"]["status"], results["Raises"]["reason"]) == (
        "compile_failed",
        "exception",
    )
    assert (results["Aborts"]["status"], results["Aborts"]["reason"]) == ("run_failed", "crash")


@pytest.mark.slow
def test_cinn_is_refused_before_any_sample_runs(tmp_path: Path) -> None:
    if paddle.is_compiled_with_cinn():
        pytest.skip("this paddle has CINN")
    with pytest.raises(CompilerUnavailableError) as caught:
        run([GOOD], compiler="cinn", out=tmp_path / "runs")
    assert str(caught.value) == (
        "The compiler `cinn` cannot run here: this paddle was built without CINN."
    )


def test_the_parent_of_a_run_imports_no_framework(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from graphnet_datasets import Sample, run, read_directory\n"
        f"(sample,) = read_directory({str(tmp_path / 'good')!r})\n"
        "from graphnet_datasets.timing.pairs import TimingSettings\n"
        "timing = TimingSettings(min_pairs=3, max_pairs=4, warmup_s=0.01)\n"
        "(record,) = run([sample], compiler='paddle-eager', timing=timing)\n"
        "assert record['status'] == 'ok', record['error_message']\n"
        "assert not {'torch', 'paddle'} & set(sys.modules)\n"
    )
    from graphnet_datasets import write_directory

    write_directory(GOOD, tmp_path / "good")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

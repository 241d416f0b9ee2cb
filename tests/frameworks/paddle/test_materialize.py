"""Materialized paddle samples: bit-equal to the original text, safe, and within memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphnet_datasets.errors import (
    MaterializeError,
    MemoryLimitError,
    SampleError,
    UnknownOperatorError,
)
from graphnet_datasets.inputs import make_array
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import DictArg, ListArg, Named, Ref, SliceArg

from .installed import paddle

pytestmark = pytest.mark.paddle

CORE = "paddle._C_ops."
REPOSITORY = Path(__file__).parents[3]
FAST = (
    "PaddleX/TimesNet/subgraph_5",
    "PaddleX/YOLOv3-DarkNet53/subgraph_2",
    "PaddleX/PicoDet_layout_1x/subgraph_0",
    "PaddleNLP/albert-chinese-small",
    "PaddleScience/euler_beam/subgraph_1",
)
FAILING_ORIGINALS = {
    "PaddleX/MaskRCNN-ResNet50-vd-FPN/subgraph_4": "original fails",
    "PaddleX/Cascade-FasterRCNN-ResNet50-FPN/subgraph_6": "original aborts",
    "PaddleX/Cascade-FasterRCNN-ResNet50-FPN/subgraph_15": "original aborts",
}
"""Their region proposals are drawn from statistics, which makes boxes that no level takes."""


def make_sample(*ops: Op, outputs: Any = None, inputs: int = 2) -> Sample:
    value = Value("float32", (2, 3))
    roles: tuple[Any, ...] = ("parameter", "input", "buffer")
    return Sample(
        id="test/sample",
        framework="paddle",
        task="other",
        inputs=tuple(
            Input(roles[i % 3], value, f"x{i}", statistics=Statistics(0.0, 1.0, -3.0, 3.0))
            for i in range(inputs)
        ),
        ops=ops,
        outputs=Ref(inputs + len(ops) - 1) if outputs is None else outputs,
    )


def materialize(sample: Sample, **options: Any) -> Any:
    from graphnet_datasets.frameworks import materialize as dispatch

    return dispatch(sample, **options)


def make_inputs(sample: Sample, **options: Any) -> dict[str, Any]:
    from graphnet_datasets.frameworks import make_inputs as dispatch

    return dispatch(sample, **options)


def compare_with_original(folder: Path) -> str:
    command = [sys.executable, "-m", "tests.frameworks.paddle.original", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-2000:]
    return json.loads(lines[-1])["status"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if place > 1 else ())
        for place, name in enumerate(FAST)
    ],
)
def test_outputs_are_those_of_the_original(upstream_samples: Path, name: str) -> None:
    assert compare_with_original(upstream_samples / "paddle_samples" / name) == "equal"


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_outputs_are_those_of_every_original_that_runs(upstream_samples: Path) -> None:
    root = upstream_samples / "paddle_samples"
    statuses = {
        str(path.parent.relative_to(root)): compare_with_original(path.parent)
        for path in sorted(root.rglob("model.py"))
    }
    others = {name: status for name, status in statuses.items() if status != "equal"}
    too_large = {name for name, status in others.items() if status == "too large"}
    assert {name: others[name] for name in others.keys() - too_large} == FAILING_ORIGINALS
    assert len(statuses) - len(others) >= 40


def test_inputs_hold_the_numbers_that_every_framework_gets() -> None:
    sample = make_sample(Op(f"{CORE}add", (Ref(0), Ref(1))))
    inputs = make_inputs(sample, seed=3)
    assert list(inputs) == ["parameter_0", "input_0"]
    for index, tensor in enumerate(inputs.values()):
        np.testing.assert_array_equal(tensor.numpy(), make_array(sample, index, 3))
    assert list(make_inputs(sample, weights="parameters")) == ["input_0"]
    other = make_inputs(sample, seed=4)["input_0"]
    assert not bool((other == inputs["input_0"]).all())


@pytest.mark.parametrize(
    "dtype",
    [
        "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
        "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
    ],
)  # fmt: skip
def test_tensors_have_the_bits_of_their_arrays(dtype: str) -> None:
    sample = Sample(
        "test/dtype",
        "paddle",
        "other",
        (Input("input", Value(dtype, (3, 2)), statistics=Statistics(0.5, 1.0, 0.0, 1.0)),),
        (),
        Ref(0),
    )
    tensor = make_inputs(sample)["input_0"]
    assert str(tensor.dtype) == f"paddle.{dtype}"
    expected = make_array(sample, 0).tobytes()
    found = tensor.view("uint8") if dtype.startswith("float8") else tensor
    assert found.numpy().tobytes() == expected


def test_a_dtype_that_paddle_lacks_is_named() -> None:
    value = Value("uint32", (2,))
    sample = Sample("test/dtype", "paddle", "other", (Input("input", value),), (), Ref(0))
    with pytest.raises(MaterializeError, match=r"`uint32` is not a dtype of paddle \(accepted: "):
        make_inputs(sample)


def test_weights_are_held_where_they_are_parameters() -> None:
    sample = make_sample(
        Op(f"{CORE}matmul", (Ref(0), Ref(1), False, True)),
        Op(f"{CORE}matmul", (Ref(3), Ref(2), False, False)),
        inputs=3,
        outputs=DictArg((("y", ListArg((Ref(4), 7, (Ref(3), None)))),)),
    )
    held = materialize(sample, weights="parameters", seed=5)
    assert [name for name, _ in held.named_parameters()] == ["parameter_0"]
    assert [name for name, _ in held.named_buffers()] == ["buffer_0"]
    assert not held.training
    taking = materialize(sample)
    inputs = make_inputs(sample, seed=5)
    first = taking(**inputs)["y"]
    second = held(**make_inputs(sample, weights="parameters", seed=5))["y"]
    assert first[1] == second[1] == 7
    assert first[2][1] is None
    assert bool((first[0] == second[0]).all())
    by_position = taking(*inputs.values())["y"]
    assert bool((by_position[0] == first[0]).all())


@pytest.mark.parametrize("weights", ["inputs", "parameters"])
def test_the_layer_can_be_traced_by_to_static(weights: Any) -> None:
    sample = make_sample(
        Op(f"{CORE}split_with_num", (Ref(1), 3, 1)),
        Op("operator.getitem", (Ref(2), 2)),
        Op(f"{CORE}concat", (ListArg((Ref(3), Ref(0))), 1)),
        Op(f"{CORE}dropout", (Ref(4), None, 0.5, True, "upscale_in_train", 0, False)),
        Op("operator.getitem", (Ref(5), 0)),
    )
    layer = materialize(sample, weights=weights)
    inputs = make_inputs(sample, weights=weights)
    with paddle.no_grad():
        expected = layer(**inputs)
        found = paddle.jit.to_static(layer, full_graph=True)(**inputs)
    assert bool((found == expected).all())


def test_keywords_slices_and_devices() -> None:
    sample = make_sample(
        Op("paddle.arange", (0, 6), (("dtype", Named("dtype", "float32")),)),
        Op("paddle.Tensor.reshape", (Ref(2), ListArg((2, 3)))),
        Op("operator.getitem", (Ref(3), (SliceArg(None, None, None), SliceArg(1, None, None)))),
        Op(
            f"{CORE}full",
            (ListArg((2, 2)), 2.0, Named("dtype", "float32"), Named("place", "expected")),
        ),
        Op("operator.add", (Ref(4), Ref(5))),
    )
    assert materialize(sample)(**make_inputs(sample)).tolist() == [[3.0, 4.0], [6.0, 7.0]]


def test_values_die_at_their_last_use() -> None:
    import gc
    import weakref

    from graphnet_datasets.frameworks.paddle.plan import Plan

    sample = make_sample(
        Op(f"{CORE}exp", (Ref(0),)),
        Op(f"{CORE}concat", (ListArg((Ref(2), Ref(1))), 0)),
        Op(f"{CORE}abs", (Ref(3),)),
    )
    plan = Plan(sample)
    seen: list[Any] = []
    step = plan.steps[-1]
    assert step.own == 4

    def spy(value: Any) -> Any:
        gc.collect()
        seen.append([ref() for ref in refs])
        return paddle.abs(value)

    refs: list[Any] = []
    first = plan.steps[0]

    def remember(value: Any) -> Any:
        result = paddle.exp(value)
        refs.append(weakref.ref(result))
        return result

    plan.steps[0] = first._replace(call=remember)
    plan.steps[-1] = step._replace(call=spy)
    plan.run([paddle.ones([2, 3])] * 2)
    assert seen == [[None]]


@pytest.mark.parametrize("target", ["paddle.load", "os.system", "paddle._C_ops.run_program"])
def test_an_unknown_operator_never_runs(target: str) -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        materialize(make_sample(Op(target, ("x",))))
    assert str(caught.value).startswith(
        f"Op 0 (`{target}`) of `test/sample` cannot run: `{target}` is not in paddle's operator "
    )


def test_layouts_and_unknown_devices_are_rejected() -> None:
    with pytest.raises(MaterializeError) as caught:
        materialize(make_sample(Op(f"{CORE}abs", (Named("layout", "strided"),))))
    assert str(caught.value) == (
        "Op 0 (`paddle._C_ops.abs`) of `test/sample` cannot run: A layout cannot be passed to "
        "paddle."
    )
    with pytest.raises(MaterializeError) as caught:
        materialize(make_sample(), device="tpu:0")
    assert str(caught.value) == (
        "`device='tpu:0'` is not a device of paddle (accepted: cpu, gpu, gpu:0, …)."
    )
    with pytest.raises(MaterializeError, match="this paddle cannot reach a GPU"):
        materialize(make_sample(), device="cuda:0")
    with pytest.raises(MaterializeError, match=r"`weights='some'` is unknown"):
        materialize(make_sample(), weights="some")
    with pytest.raises(MaterializeError, match=r"`mode='some'` is unknown"):
        materialize(make_sample(), mode="some")
    with pytest.raises(SampleError, match="integer beyond 64 bits"):
        make_sample(Op(f"{CORE}abs", (10**30,)))
    layer = materialize(make_sample(Op(f"{CORE}abs", (Ref(0),))))
    with pytest.raises(TypeError, match="The graph takes 2 inputs, got 1"):
        layer(paddle.ones([1]))


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (
            Op(
                f"{CORE}full",
                (ListArg((10**9, 10**9)), 1.0, Named("dtype", "float32"), Named("place", "cpu")),
            ),
            "The result has more than 2147483647 elements. ",
        ),
        (
            Op(f"{CORE}expand", (Ref(0), ListArg((10**12, 2, 3)))),
            "The result has more than 2147483647 elements. ",
        ),
        (
            Op(f"{CORE}tile", (Ref(0), ListArg((10**6, 10**6)))),
            "The result has more than 2147483647 elements. ",
        ),
        (
            Op(f"{CORE}eye", (10**7, 10**7, Named("dtype", "float64"), Named("place", "cpu"))),
            "The result has about 1e+14 elements, more than the limit of ",
        ),
        (
            Op(f"{CORE}pad", (Ref(0), ListArg((10**8, 10**8, 10**8, 10**8)), 0.0)),
            "Expected a padding of at most 1048576 elements, got 100000000. ",
        ),
    ],
    ids=lambda each: each.target if isinstance(each, Op) else "",
)
def test_bombs_are_refused_before_memory_is_spent(op: Op, reason: str) -> None:
    with pytest.raises(MemoryLimitError) as caught:
        materialize(make_sample(op))
    assert str(caught.value).startswith(
        f"Op 0 (`{op.target}`) of `test/sample`: `{op.target}` cannot run: {reason}"
    )
    assert str(caught.value).lower().endswith("skip the sample.")
    with pytest.raises(MemoryLimitError, match=r"`test/sample` needs about .* GiB for its tensors"):
        materialize(make_sample(op), allow_unchecked_operators=True)


def test_joint_requirements_of_calls_are_checked() -> None:
    size = ListArg((2**10, 2**10))
    ops = [
        Op(f"{CORE}full", (size, 1.0, Named("dtype", "float32"), Named("place", "cpu")))
        for _ in range(3)
    ]
    sample = make_sample(*ops, outputs=ListArg((Ref(2), Ref(3), Ref(4))))
    with pytest.raises(MemoryLimitError, match=r"`test/sample` needs about .* GiB for its tensors"):
        materialize(sample, memory_limit_bytes=2**23)


@pytest.mark.parametrize(
    ("args", "keywords"), [((10**12,), ()), ((0,), (("end", 10**12),)), ((0, 10**12, 1), ())]
)
def test_the_size_of_a_range_is_checked_for_each_form_of_the_call(args: Any, keywords: Any) -> None:
    dtype = ("dtype", Named("dtype", "float32"))
    with pytest.raises(MemoryLimitError, match=r"has about 1e\+12 elements"):
        sample = make_sample(Op("paddle.arange", args, (*keywords, dtype)))
        materialize(sample)


def test_the_memory_limit_is_the_callers() -> None:
    sample = make_sample(Op(f"{CORE}exp", (Ref(0),)))
    needed = 3 * 24
    materialize(sample, memory_limit_bytes=needed)
    with pytest.raises(MemoryLimitError):
        materialize(sample, memory_limit_bytes=needed - 1)


def test_inputs_alone_may_be_too_much() -> None:
    value = Value("float32", (10**9, 10**9))
    sample = Sample("test/big", "paddle", "other", (Input("input", value),), (), Ref(0))
    with pytest.raises(MemoryLimitError):
        materialize(sample)


def test_importing_torch_is_not_needed() -> None:
    code = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "sys.modules['torch'] = None\n"
        "from graphnet_datasets.frameworks import materialize, make_inputs\n"
        "from graphnet_datasets.sample import Input, Op, Sample, Value\n"
        "from graphnet_datasets.sample.arguments import Ref\n"
        "s = Sample('a', 'paddle', 'other', (Input('input', Value('float32', (2,))),),\n"
        "    (Op('paddle._C_ops.abs', (Ref(0),)),), Ref(1))\n"
        "assert materialize(s)(**make_inputs(s)).shape == [2]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

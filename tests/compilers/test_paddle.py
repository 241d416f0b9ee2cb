"""The compilers of paddle: eager's outputs and structure, weights in and out, no CINN."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.compilers import find_entry, list_entries, make_compiler
from graphnet_datasets.errors import CompilerUnavailableError
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import DictArg, ListArg, Named, Ref

from ..frameworks.paddle.installed import paddle

pytestmark = pytest.mark.paddle

CORE = "paddle._C_ops."
NAMES = ("paddle-eager", "paddle-to-static", "paddle-inference")


def make_sample(op_count: int = 1, outputs: Any = None) -> Sample:
    value = Value("float32", (4, 4))
    drawn = Statistics(0.0, 0.5, -1.0, 1.0)
    ops = [Op(f"{CORE}matmul", (Ref(0), Ref(1), False, False))]
    for _ in range(op_count):
        ops.append(Op(f"{CORE}add", (Ref(len(ops) + 2), Ref(2))))
    return Sample(
        "test/compiled",
        "paddle",
        "other",
        (
            Input("input", value, statistics=drawn),
            Input("parameter", value, statistics=drawn),
            Input("buffer", value, statistics=drawn),
        ),
        tuple(ops),
        Ref(len(ops) + 2) if outputs is None else outputs,
    )


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return list(left) == list(right) and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return (
            type(left) is type(right)
            and len(left) == len(right)
            and all(equal(*pair) for pair in zip(left, right, strict=True))
        )
    if isinstance(left, paddle.Tensor):
        return (
            isinstance(right, paddle.Tensor)
            and left.dtype == right.dtype
            and list(left.shape) == list(right.shape)
            and bool(paddle.allclose(left, right, rtol=1e-5, atol=1e-6))
        )
    return left == right


OUTPUTS: dict[str, Any] = {
    "tensor": None,
    "list of one": ListArg((Ref(3),)),
    "tuple": (Ref(3), Ref(4)),
    "nested": DictArg((("a", ListArg((Ref(4), None))), ("b", ((Ref(3),), 7)))),
}


@pytest.mark.parametrize("weights", ["inputs", "parameters"])
@pytest.mark.parametrize("structure", OUTPUTS)
@pytest.mark.parametrize("name", NAMES)
def test_compiled_outputs_equal_eager(name: str, structure: str, weights: Any) -> None:
    from graphnet_datasets.frameworks import make_inputs, materialize

    sample = make_sample(1, OUTPUTS[structure])
    expected_of = materialize(sample, weights=weights)
    compiler = make_compiler(name, "paddle")
    with paddle.no_grad():
        compiled = compiler.compile(
            materialize(sample, weights=weights), make_inputs(sample, weights=weights)
        )
        for seed in (0, 1):
            inputs = make_inputs(sample, seed, weights=weights)
            expected = expected_of(**inputs)
            assert equal(compiled(**inputs), expected)
    assert compiler.version() == paddle.__version__
    assert compiler.num_compilations() == 1
    assert paddle.in_dynamic_mode()


@pytest.mark.parametrize("name", NAMES)
def test_many_inputs_keep_their_order(name: str) -> None:
    from graphnet_datasets.frameworks import make_inputs, materialize

    drawn = Statistics(0.0, 1.0, -3.0, 3.0)
    inputs = tuple(Input("input", Value("float32", (2,)), statistics=drawn) for _ in range(13))
    ops = [Op(f"{CORE}subtract", (Ref(0), Ref(1)))]
    # Input 5 is used by nothing.
    for index in (2, 3, 4, 6, 7, 8, 9, 10, 11, 12):
        factor = Op(f"{CORE}scale", (Ref(index), float(index), 0.0, True))
        ops += [factor, Op(f"{CORE}subtract", (Ref(len(ops) + 12), Ref(len(ops) + 13)))]
    sample = Sample("test/many", "paddle", "other", inputs, tuple(ops), Ref(len(ops) + 12))
    values = make_inputs(sample)
    with paddle.no_grad():
        compiled = make_compiler(name, "paddle").compile(materialize(sample), make_inputs(sample))
        assert equal(compiled(**values), materialize(sample)(**values))


def test_errors_of_compiled_code_are_raised_in_the_run() -> None:
    from graphnet_datasets.frameworks import make_inputs, materialize

    value = Value("int64", (2,))
    index = Input("input", value, data=(7).to_bytes(8, "little") * 2)
    table = Input("input", Value("float32", (3, 2)))
    sample = Sample(
        "test/raises",
        "paddle",
        "other",
        (index, table),
        (Op(f"{CORE}embedding", (Ref(0), Ref(1), -1, False)),),
        Ref(2),
    )
    inputs = make_inputs(sample)
    compiler = make_compiler("paddle-to-static", "paddle")
    with paddle.no_grad():
        compiled = compiler.compile(materialize(sample), inputs)
        with pytest.raises(Exception, match=r"index|Variable value") as caught:
            compiled(**inputs)
    assert compiler.phase_of(caught.value) == "run"


def test_numbers_are_fixed_when_compiling() -> None:
    from graphnet_datasets.frameworks import make_inputs, materialize

    scalar = Input("scalar", Value("int64", ()), data=(2).to_bytes(8, "little"))
    tensor = Input("input", Value("float32", (2,)))
    sample = Sample(
        "test/scalar",
        "paddle",
        "other",
        (tensor, scalar),
        (Op("operator.mul", (Ref(0), Ref(1))),),
        Ref(2),
    )
    inputs = make_inputs(sample)
    with paddle.no_grad():
        compiled = make_compiler("paddle-to-static", "paddle").compile(
            materialize(sample), dict(inputs)
        )
        assert equal(compiled(**inputs), inputs["input_0"] * 2)
        with pytest.raises(ValueError, match="The input `scalar_0` was fixed at 2 when the module"):
            compiled(**{**inputs, "scalar_0": 3})


def test_cinn_is_unavailable_in_this_paddle() -> None:
    if paddle.is_compiled_with_cinn():
        pytest.skip("this paddle has CINN")
    entry = find_entry("cinn", "paddle")
    assert entry.load().is_available() == (False, "this paddle was built without CINN")
    with pytest.raises(CompilerUnavailableError) as caught:
        make_compiler("cinn", "paddle")
    assert str(caught.value) == (
        "The compiler `cinn` cannot run here: this paddle was built without CINN."
    )


def test_all_are_listed_under_paddle() -> None:
    names = {each.name for each in list_entries() if each.framework == "paddle"}
    assert names >= {*NAMES, "cinn"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "bool"])
def test_dtypes_are_kept(dtype: str) -> None:
    from graphnet_datasets.frameworks import make_inputs, materialize

    value = Value(dtype, (3, 2))
    sample = Sample(
        "test/dtypes",
        "paddle",
        "other",
        (Input("input", value, statistics=Statistics(0.5, 0.5, 0.0, 1.0)),),
        (
            Op(f"{CORE}reshape", (Ref(0), ListArg((2, 3)))),
            Op(f"{CORE}cast", (Ref(1), Named("dtype", "float32"))),
        ),
        (Ref(1), Ref(2)),
    )
    inputs = make_inputs(sample)
    with paddle.no_grad():
        for name in ("paddle-to-static", "paddle-inference"):
            compiled = make_compiler(name, "paddle").compile(materialize(sample), dict(inputs))
            found, expected = compiled(**inputs), materialize(sample)(**inputs)
            assert [each.dtype for each in found] == [each.dtype for each in expected]
            assert equal(found[1], expected[1])

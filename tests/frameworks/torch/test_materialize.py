"""Samples that run, in the order and with the effects that they were written with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet_datasets.errors import (
    UNKNOWN_ADVICE,
    GraphNetError,
    MaterializeError,
    UnknownOperatorError,
)
from graphnet_datasets.frameworks import make_inputs, materialize
from graphnet_datasets.frameworks.torch.shapes import propagate
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import DictArg, ListArg, Named, Ref, SliceArg

from ... import strategies
from .building import MATRIX, build
from .original import bits, flatten

ALL = SliceArg(None, None, None)
ENTER = "torch.amp.autocast_mode._enter_autocast"
EXIT = "torch.amp.autocast_mode._exit_autocast"


def run(sample: Sample, **changes: Any) -> Any:
    return materialize(sample)(**(make_inputs(sample) | changes))


def test_methods_attributes_functions_and_operators_run() -> None:
    sample = build(
        ("torch.Tensor.T", Ref(0)),
        ("torch._C._nn.linear", Ref(0), Ref(0)),
        ("torch.Tensor.size", Ref(1), 0),
        ("operator.add", Ref(3), 1),
        ("torch.ops.aten.mul.Tensor", Ref(2), Ref(2)),
        ("math.sqrt", Ref(4)),
        ("operator.truediv", Ref(5), Ref(6)),
    )
    matrix = make_inputs(sample)["input_0"]
    product = matrix @ matrix.T
    torch.testing.assert_close(run(sample), product * product / math.sqrt(4))


def test_outputs_keep_their_structure() -> None:
    sample = build(
        ("torch.relu", Ref(0)),
        outputs=(DictArg((("hidden", ListArg((Ref(1),))), ("none", None))), (), Ref(0), 3),
    )
    first, empty, same, number = run(sample)
    assert isinstance(first["hidden"], list)
    assert (first["none"], empty, number) == (None, (), 3)
    assert torch.equal(first["hidden"][0], same.relu())
    assert run(build(outputs=None)) is None


def test_in_place_operators_keep_their_order_and_their_effect() -> None:
    sample = build(
        ("torch.Tensor.clone", Ref(0)),
        ("operator.iadd", Ref(1), 1.0),
        ("torch.Tensor.mul_", Ref(1), 2.0),
        ("operator.setitem", Ref(1), (ALL, 0), float("-inf")),
        Op("torch.nn.functional.relu", (Ref(2),), (("inplace", True),)),
        outputs=(Ref(1), Ref(2)),
    )
    matrix = make_inputs(sample)["input_0"]
    expected = (matrix + 1) * 2
    expected[:, 0] = float("-inf")
    for output in run(sample, input_0=matrix):
        assert torch.equal(output, expected.relu())


def test_operators_that_nobody_uses_are_kept() -> None:
    sample = build(
        ("torch.Tensor.clone", Ref(0)),
        ("torch.Tensor.zero_", Ref(1)),
        ("torch.rand", 2),
        ("torch.relu", Ref(1)),
        ("torch._C._log_api_usage_once", "python.nn_module"),
        outputs=Ref(1),
    )
    module = materialize(sample)
    assert [node.name for node in module.graph.nodes if node.op.startswith("call")] == [
        "clone",
        "zero_",
        "rand",
        "relu",
        "_log_api_usage_once",
    ]
    assert module(**make_inputs(sample)).count_nonzero() == 0


def test_random_operators_draw_in_their_order() -> None:
    sample = build(
        ("torch.rand", 4),
        ("torch.rand", 4),
        Op("torch.nn.functional.dropout", (Ref(0), 0.5), (("training", True),)),
        outputs=(Ref(2), Ref(1), Ref(3)),
    )
    inputs = make_inputs(sample)
    torch.manual_seed(3)
    first, second = torch.rand(4), torch.rand(4)
    dropped = torch.nn.functional.dropout(inputs["input_0"], 0.5, training=True)
    torch.manual_seed(3)
    outputs = materialize(sample)(**inputs)
    assert all(map(torch.equal, outputs, (second, first, dropped)))


def test_augmented_assignment_of_a_number_leaves_the_old_number() -> None:
    """fx prints `a += 1`, after which a later use of `a` would see the new value."""
    size = Input("symbol", Value("int64", ()), "s0")
    sample = build(
        ("operator.iadd", Ref(0), 1),
        ("operator.imul", Ref(0), Ref(1)),
        inputs=(size,),
        outputs=(Ref(0), Ref(1), Ref(2)),
        symbols=(Symbol("s0", 4),),
    )
    assert run(sample) == (4, 5, 20)
    assert run(sample, symbol_0=7) == (7, 8, 56)


@pytest.mark.parametrize(
    ("base", "exponent", "expected"), [(-2, 2, 4), (-2.0, 2, 4.0), (2, 3, 8), (-0.5, 2, 0.25)]
)
def test_a_negative_literal_is_raised_to_a_power_as_a_whole(
    base: float, exponent: int, expected: float
) -> None:
    """fx prints `-2 ** x`, which Python reads as `-(2 ** x)`."""
    size = Input("symbol", Value("int64", ()), "s0")
    sample = build(
        ("operator.pow", base, Ref(0)), inputs=(size,), symbols=(Symbol("s0", exponent),)
    )
    assert run(sample) == expected


@pytest.mark.parametrize(
    "number", [float("inf"), float("-inf"), float("nan"), -0.0, 1e-300, 2**63 - 1, -(2**63)]
)
def test_every_number_survives_being_printed(number: float) -> None:
    sample = build(outputs=(number, DictArg((("a", number),)), ListArg((number,))))
    assert repr(run(sample)) == repr((number, {"a": number}, [number]))


def test_constants_of_torch_survive_being_printed() -> None:
    names = {
        "dtype": ("bfloat16", "float8_e4m3fn", "complex64", "bool"),
        "layout": ("strided", "sparse_coo"),
        "memory_format": ("channels_last", "contiguous_format"),
    }
    named = [Named(kind, name) for kind, of_kind in names.items() for name in of_kind]
    assert run(build(outputs=tuple(named))) == tuple(getattr(torch, each.name) for each in named)


def test_devices_follow_the_argument() -> None:
    zeros = Op("torch.zeros", ((2, 3),), (("device", Named("device", "cuda:0")),))
    sample = build(
        zeros,
        Op("torch.Tensor.to", (Ref(1), Named("device", "cuda:1"))),
        Op("torch.Tensor.to", (Ref(2), "cuda:0"), (("non_blocking", True),)),
        ("torch.Tensor.cuda", Ref(3), 0),
        Op("torch.Tensor.new_zeros", (Ref(4), (2, 3)), (("device", "cuda"),)),
        Op("torch.ones", (1,), (("pin_memory", True), ("device", Named("device", "cpu")))),
    )
    assert run(sample).device.type == "cpu"
    module = materialize(sample, device="meta")
    assert module(torch.empty(2, 3, device="meta")).device.type == "meta"
    assert "cuda" not in module.code


@pytest.mark.parametrize(
    ("target", "args"),
    [
        ("torch.arange", (3,)),
        ("torch.linspace", (0.0, 1.0, 3)),
        ("torch.tensor", (ListArg((1.0, 2.0, 3.0)),)),
        ("torch.as_tensor", (ListArg((1.0, 2.0, 3.0)),)),
        ("torch.zeros", (2, 3)),
        ("torch.full", ((2, 3), 4.0)),
        ("torch.rand", (2, 3)),
        ("torch.eye", (2, 3)),
        ("torch.hann_window", (3,)),
        ("torch.fft.fftfreq", (3,)),
        ("torch.ops.aten.arange.start_step", (0, 3, 1)),
        ("torch.ops.aten.full.default", ((2, 3), 4.0)),
        ("torch.ops.aten.scalar_tensor.default", (2.0,)),
    ],
)
@pytest.mark.parametrize("kwargs", [(), (("device", None),)], ids=["silent", "none"])
def test_new_tensors_follow_the_device_argument(target: str, args: tuple, kwargs: tuple) -> None:
    sample = build(Op(target, args, kwargs), Op("torch.add", (Ref(0), Ref(1))))
    assert run(sample).device.type == "cpu"
    module = materialize(sample, device="meta", allow_unchecked_operators=True)
    assert module(torch.empty(2, 3, device="meta")).device.type == "meta"
    made = next(node for node in module.graph.nodes if node.op == "call_function")
    assert made.kwargs["device"] == torch.device("meta")


def test_like_tensors_stay_on_their_device() -> None:
    sample = build(
        ("torch.zeros_like", Ref(0)),
        ("torch.Tensor.new_ones", Ref(1), (2, 3)),
        ("torch.add", Ref(1), Ref(2)),
    )
    module = materialize(sample, device="meta")
    assert module(torch.empty(2, 3, device="meta")).device.type == "meta"
    assert "device" not in module.code


def test_autocast_regions_are_kept_and_follow_the_device() -> None:
    sample = build(
        (ENTER, "cuda", None, True, None),
        ("torch.mm", Ref(0), Ref(1)),
        (EXIT, Ref(2)),
        ("torch.mm", Ref(0), Ref(1)),
        inputs=(MATRIX, Input("parameter", Value("float32", (3, 3)))),
        outputs=(Ref(3), Ref(5)),
    )
    inside, outside = run(sample)
    assert (inside.dtype, outside.dtype) == (torch.float16, torch.float32)
    assert not torch.is_autocast_enabled("cpu")


def test_vmap_regions_run() -> None:
    prefix = "torch._functorch.predispatch"
    sample = build(
        (f"{prefix}.lazy_load_decompositions",),
        (f"{prefix}._vmap_increment_nesting", 2, "error"),
        (f"{prefix}._add_batch_dim", Ref(0), 0, 1),
        ("torch.Tensor.sum", Ref(3)),
        (f"{prefix}._remove_batch_dim", Ref(4), 1, 2, 0),
        (f"{prefix}._vmap_decrement_nesting",),
        outputs=Ref(5),
    )
    matrix = make_inputs(sample)["input_0"]
    assert torch.equal(run(sample), matrix.sum(1))


def test_grad_mode_is_kept() -> None:
    sample = build(
        ("torch._C._set_grad_enabled", False),
        ("torch.relu", Ref(0)),
        ("torch._C._set_grad_enabled", True),
        ("torch.relu", Ref(0)),
        outputs=(Ref(2), Ref(4)),
    )
    first, second = run(sample, input_0=torch.ones(2, 3, requires_grad=True))
    assert (first.requires_grad, second.requires_grad) == (False, True)


def test_weights_can_be_bound_to_the_module() -> None:
    weight = Input("parameter", Value("float32", (4, 3)))
    buffer = Input("buffer", Value("float32", (4,)))
    constant = Input("constant", Value("int64", (1,)), data=np.array([1], np.int64).tobytes())
    sample = build(
        ("torch.nn.functional.linear", Ref(2), Ref(0), Ref(1)),
        ("torch.Tensor.index_select", Ref(4), 1, Ref(3)),
        inputs=(weight, buffer, MATRIX, constant),
    )
    bound = materialize(sample, weights="parameters", seed=5)
    assert list(dict(bound.named_parameters())) == ["parameter_0"]
    assert sorted(dict(bound.named_buffers())) == ["buffer_0", "constant_0"]
    assert not bound.training
    arguments = make_inputs(sample, seed=5, weights="parameters")
    assert list(arguments) == ["input_0"]
    by_inputs = materialize(sample)(**make_inputs(sample, seed=5))
    assert torch.equal(bound(**arguments), by_inputs)


def test_quantities_that_are_symbols_change_from_call_to_call() -> None:
    sample = build(
        ("operator.floordiv", Ref(1), 2),
        ("operator.getitem", Ref(0), SliceArg(None, Ref(2), None)),
        inputs=(
            Input("input", Value("float32", ("s0",))),
            Input("symbol", Value("int64", ()), "s0"),
        ),
        symbols=(Symbol("s0", 6),),
    )
    module = materialize(sample)
    assert module(**make_inputs(sample)).shape == (3,)
    assert module(**make_inputs(sample, sizes={"s0": 11})).shape == (5,)


@given(strategies.runnable_samples())
@settings(max_examples=25)
def test_both_ways_of_binding_weights_give_the_same_bits(sample: Sample) -> None:
    by_inputs = materialize(sample)(**make_inputs(sample))
    bound = materialize(sample, weights="parameters")(**make_inputs(sample, weights="parameters"))
    assert list(map(bits, flatten(by_inputs))) == list(map(bits, flatten(bound)))


@pytest.mark.slow
@given(strategies.samples(framework="torch"))
@settings(max_examples=60)
def test_any_sample_materializes_or_fails_with_an_error_of_ours(sample: Sample) -> None:
    try:
        module = materialize(sample, memory_limit_bytes=10**6)
    except GraphNetError:
        return
    targets = [node for node in module.graph.nodes if node.op in ("call_function", "call_method")]
    assert len(targets) == sample.num_ops


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (
            Op("torch.relu", (Ref(0),), (("inplace_of", True),)),
            "`torch.relu` does not accept the keyword `inplace_of` (accepted: device, ",
        ),
        (
            Op("operator.add", (Ref(0), 1, 2)),
            "Expected 2 operands, got 3.",
        ),
        (
            Op("operator.add", (Ref(0), 1), (("alpha", 2),)),
            "`operator.add` does not accept the keyword `alpha` (accepted: none).",
        ),
        (
            Op("operator.iadd", (5, Ref(0))),
            "Expected the first operand to be a value of the graph.",
        ),
        (
            Op("torch.Tensor.view", (1, 2)),
            "Expected the first operand to be a value of the graph.",
        ),
        (
            Op("torch.Tensor.T", (Ref(0), 1)),
            "Expected the first operand to be a value of the graph.",
        ),
        (
            Op("torch.relu", ("a\nb",)),
            "Expected strings of printable characters, got 'a\\nb'.",
        ),
        (
            Op("torch.relu", (complex("inf"),)),
            "Expected finite complex numbers, got (inf+0j).",
        ),
        (
            Op("torch.zeros", (2,), (("dtype", Named("dtype", "float7")),)),
            f"`float7` is not a dtype of torch {torch.__version__} (accepted: bool, ",
        ),
        (
            Op("torch.zeros", (2,), (("device", Named("place", "cpu")),)),
            f"The place `cpu` does not exist in torch {torch.__version__}.",
        ),
        (
            Op(EXIT, (Ref(0),)),
            "closes a region that is not the innermost open one. Capture the sample again.",
        ),
        (
            Op(ENTER, ()),
            "Expected the first argument of the region to be a device type.",
        ),
        (
            Op(ENTER, ("cpu",)),
            "opens a region that no operator closes, which would change how everything after the "
            "graph runs. Capture the sample again.",
        ),
    ],
)
def test_an_error_names_the_operator_that_cannot_run(op: Op, message: str) -> None:
    with pytest.raises(MaterializeError) as caught:
        materialize(build(op))
    assert str(caught.value).startswith(f"Op 0 (`{op.target}`) of `example/by_hand` ")
    assert message in str(caught.value)


@pytest.mark.parametrize("check", [materialize, propagate])
def test_an_unknown_operator_is_refused_with_its_place(check: Callable[[Sample], Any]) -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        check(build(("torch.relu", Ref(0)), ("torch.load", "x")))
    assert str(caught.value) == (
        "Op 1 of `example/by_hand` cannot run: `torch.load` is not in the operator table of torch. "
        + UNKNOWN_ADVICE
    )


def test_an_operator_that_the_installed_torch_lacks_is_refused_with_its_place() -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        materialize(build(("torch.ops.aten.add.Nowhere", Ref(0))))
    assert str(caught.value) == (
        "Op 0 of `example/by_hand` cannot run: `torch.ops.aten.add.Nowhere` is in the operator "
        f"table, but the installed torch {torch.__version__} has no operator of that name. Install "
        "the torch with which the sample was captured."
    )


def test_options_are_checked() -> None:
    with pytest.raises(MaterializeError) as caught:
        materialize(build(), weights="fixed")  # type: ignore[arg-type]
    assert str(caught.value) == "`weights='fixed'` is unknown (accepted: 'inputs', 'parameters')."
    with pytest.raises(MaterializeError, match="`device='warp:1'` is not a device of torch: "):
        materialize(build(), device="warp:1")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').abort()",
        "'); __import__('os').abort(); ('",
        '"""); __import__("os").abort()',
        "\\",
        "\\'); __import__('os').abort()  #",
        "{0.__class__}",
        "%s" * 20,
        "\N{FULLWIDTH APOSTROPHE}",
    ],
)
def test_hostile_text_stays_text(text: str) -> None:
    """`os.abort` would kill the test's process."""
    weight = Input("parameter", Value("float32", (2, 3)), source_name=text)
    sample = build(
        ("torch._C._log_api_usage_once", text),
        inputs=(weight, Input("input", Value("float32", (1,)), source_name=text, device=text)),
        outputs=(Ref(0), text, DictArg(((text, ListArg((text,))),))),
    )
    module = materialize(sample)
    _, back, nested = module(**make_inputs(sample))
    assert (back, nested) == (text, {text: [text]})
    placeholders = [node.target for node in module.graph.nodes if node.op == "placeholder"]
    assert placeholders == ["parameter_0", "input_0"]


@given(st.text(max_size=30))
@settings(max_examples=50)
def test_any_text_comes_back_as_it_is_or_is_refused(text: str) -> None:
    try:
        module = materialize(build(outputs=(text,)))
    except MaterializeError:
        assert not text.isprintable()
        return
    assert module(torch.zeros(2, 3)) == (text,)


@pytest.mark.parametrize("keyword", ["lambda", "class", "None"])
def test_reserved_words_of_python_are_rejected_as_keywords(keyword: str) -> None:
    with pytest.raises(MaterializeError, match=f"does not accept the keyword `{keyword}`"):
        materialize(build(Op("torch.relu", (Ref(0),), ((keyword, 1),))))

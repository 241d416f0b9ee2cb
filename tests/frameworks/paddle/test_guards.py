"""Guards of Paddle operators: invalid operands never reach a kernel, and forms are checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphnet_datasets import extract, make_inputs, materialize
from graphnet_datasets.analysis.columns import cost_columns
from graphnet_datasets.errors import MaterializeError, MemoryLimitError
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref

from .installed import paddle

pytestmark = pytest.mark.paddle

CORE = "paddle._C_ops."
FLOAT, WHOLE, PLACE = Named("dtype", "float32"), Named("dtype", "int64"), Named("place", "cpu")


def guarded(name: str) -> Any:
    from graphnet_datasets.frameworks.paddle.guards import Guarded
    from graphnet_datasets.frameworks.paddle.operators import lookup, resolve

    return Guarded(name, resolve(lookup(name)))


def ones(*shape: int) -> Any:
    return paddle.ones(shape)


def whole(*numbers: int, dtype: str = "int64") -> Any:
    return paddle.to_tensor(numbers, dtype)


WINDOWS = ([2, 2], [1, 1], [0, 0])
BOXES = [[0.0, 0.0, 9.0, 9.0], [1.0, 1.0, 4.0, 3.0]]
CALLS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "argmax": ((ones(3, 4), 1, False, False, paddle.int64),
               (ones(3, 4), 5, False, False, paddle.int64)),
    "unique": ((ones(3, 4), True, True, True, [0], paddle.int64),
               (ones(3, 4), True, True, True, [-2], paddle.int64)),
    "bincount": ((whole(1, 2), None, 0), (whole(1, -2), None, 0)),
    "put_along_axis": ((ones(3, 4), whole(1, 2, 0).reshape([3, 1]), ones(3, 1), 1, "add", True),
                       (ones(3, 4), whole(1, 9, 0).reshape([3, 1]), ones(3, 1), 1, "add", True)),
    "index_put": ((ones(3, 4), [whole(1), whole(2)], ones(1), False),
                  (ones(3, 4), [whole(1), whole(4)], ones(1), False)),
    "index_add": ((ones(3, 4), whole(0, 2), ones(2, 4), 0),
                  (ones(3, 4), whole(0, 3), ones(2, 4), 0)),
    "embedding": ((whole(0, 2), ones(3, 4), -1, False), (whole(0, 3), ones(3, 4), -1, False)),
    "cross_entropy_with_softmax": (
        (ones(2, 3), whole(0, -100).reshape([2, 1]), False, True, True, -100, -1),
        (ones(2, 3), whole(0, 3).reshape([2, 1]), False, True, True, -100, -1),
    ),
    "remainder": ((whole(5, 6), whole(2, 3)), (whole(5, 6), whole(2, 0))),
    "gammaincc": ((ones(2, 3), ones(2, 3)), (ones(2, 3), ones(3))),
    "grid_sample": ((ones(2, 3, 4, 4), ones(2, 5, 5, 2), "bilinear", "zeros", True),
                    (ones(2, 3, 4, 1, 4), ones(2, 5, 5, 2), "bilinear", "zeros", True)),
    "gather": ((ones(4, 2), whole(0, 2), whole(0)), (ones(4), whole(0, 2), whole(-2))),
    "conv2d_transpose": (
        (ones(1, 3, 2, 2), ones(3, 4, 2, 2), [1, 1], [0, 0], [], [], "EXPLICIT", 1, [1, 1], "NCHW"),
        (ones(1, 3, 1, 5), ones(3, 4, 1, 4), [1, 2], [7, 9], [], [], "EXPLICIT", 1, [2, 1], "NCHW"),
    ),
    "depthwise_conv2d": (
        (ones(2, 4, 6, 6), ones(4, 1, 3, 3), [1, 1], [1, 1], "EXPLICIT", 4, [1, 1], "NCHW"),
        (ones(2, 4, 6, 6), ones(4, 1, 3, 3), [1, 1], [9, -2], "ii", 4, [1, 1], "NCHW"),
    ),
    "batch_norm": (
        (ones(2, 4, 3), *[ones(4)] * 4, True, 0.9, 1e-5, "NCHW", True, False),
        (ones(2, 4, 3), *[ones(4)] * 3, ones(2), True, 0.9, 1e-5, "NCHW", True, False),
    ),
    "group_norm": ((ones(2, 4, 3), ones(4), ones(4), 1e-5, 2, "NCHW"),
                   (ones(2, 4, 3), ones(4), ones(4), 1e-5, 3, "NCHW")),
    "layer_norm": ((ones(2, 3), ones(3), None, 1e-5, 1), (ones(2, 3), ones(2), None, 1e-5, 1)),
    "prelu": ((ones(2, 4, 3), ones(4), "NCHW", "channel"), (ones(2, 4, 3), ones(3), "NCHW", "all")),
    "bilinear_interp": (
        (ones(1, 2, 4, 4), None, None, None, "NCHW", -1, 8, 8, [], "bilinear", False, 0),
        (ones(1, 2, 4, 4), None, None, None, "NCHW", -1, 8, -7, [], "bilinear", False, 0),
    ),
    "pool2d": (
        (ones(1, 2, 4, 4), *WINDOWS, True, True, "NCHW", "avg", False, False, "VALID"),
        (ones(1, 2, 4, 4), *WINDOWS, True, True, "NCHW", "sum", False, False, "VALID"),
    ),
    "yolo_box": (
        (ones(1, 18, 3, 3), whole(96, 96, dtype="int32").reshape([1, 2]), [10, 13, 16, 30], 4,
         0.005, 32, True, 1.0, False, 0.5),
        (ones(1, 18, 3, 3), whole(96, 96, dtype="int32").reshape([1, 2]), [10, 13, 16, 30],
         2**31 - 1, 0.005, 32, True, 1.0, False, 0.5),
    ),
    "uniform_inplace_": ((ones(3, 3), 0.0, 1.0, 0, 3, 3, 1.0),
                         (ones(3, 3), 0.0, 1.0, 0, 7, 2**31 - 1, 1.0)),
    "assign_value_": ((ones(2), [2], paddle.float32, [1.0, 2.0], paddle.CPUPlace()),
                      (ones(2), [2, 9], paddle.float32, [1.0, 2.0], paddle.CPUPlace())),
    "dropout": ((ones(2), None, 0.5, True, "upscale_in_train", 0, False),
                (ones(2), None, 0.5, True, "upscale", 0, False)),
    "stack": (([ones(2, 3)] * 2, -3), ([ones(2, 3)] * 2, 3)),
    "sum": ((ones(2, 3), [-1, 0], None, False), (ones(2, 3), [-1, 1], None, False)),
    "norm": ((ones(2, 3), 1, 1e-10, False), (ones(2, 3), 2, 1e-10, False)),
    "flatten": ((ones(2, 3, 4), 1, 2), (ones(2, 3), -3, 3)),
    "einsum": (([ones(2, 3)], "ab->ba"), ([ones(2, 3)], "ab")),
    "equal_": ((ones(2), ones(2)), (ones(2), whole(1, 2))),
    "p_norm": ((ones(2, 3), 2.0, -1, 1e-12, False, False),
               (ones(), 2.0, -1, 1e-12, False, False)),
    "diag": ((ones(3), 1, 0.0), (ones(3), 2**31 - 1, 0.0)),
    "unbind": ((ones(2, 3), 0), (ones(), -1)),
    "triangular_solve": ((ones(2, 2), ones(2, 1), True, False, False),
                         (ones(2, 2), ones(9, 2), True, False, False)),
    "multinomial": ((ones(5), whole(2), False), (-ones(5), 2, False)),
    "tensor_unfold": ((ones(3, 4), 1, 2, 1), (ones(3, 4), 1, 9, 1)),
    "set_value_with_tensor": ((ones(3, 4), ones(3, 1), [0], [1], [1], [1], [], []),
                              (ones(3, 4), ones(3, 1), [0], [1], [0], [1], [], [])),
    "set_value": ((ones(3, 4), [0], [1], [1], [1], [], [], [1], [2.0]),
                  (ones(3, 4), [0], [1], [1], [1], [], [], [9], [2.0])),
    "send_u_recv": ((ones(3, 4), whole(0, 1), whole(1, 2), "SUM", [0]),
                    (ones(3, 4), whole(0, 9), whole(1, 2), "SUM", [0])),
    "roi_align": (
        (ones(1, 2, 9, 9), paddle.to_tensor(BOXES), whole(2, dtype="int32"), 2, 2, 1.0, 0, True),
        (ones(1, 2, 9, 9), paddle.to_tensor(BOXES), whole(5, dtype="int32"), 2, 2, 1.0, 0, True),
    ),
    "distribute_fpn_proposals": (
        (paddle.to_tensor(BOXES), whole(2, dtype="int32"), 2, 5, 4, 224, False),
        (paddle.to_tensor(BOXES), whole(9, dtype="int32"), 2, 5, 4, 224, False),
    ),
    "nms": ((paddle.to_tensor(BOXES), 0.5), (ones(2, 3), 0.5)),
    "pow": ((whole(2, 3), 3), (whole(2, 3), -1)),
    "unsqueeze": ((ones(3), [0, 2, 3]), (ones(3), [0, 2, 30])),
    "slice": ((ones(3, 4), [0], [0], [2], [1], []), (ones(3, 4), [7], [0], [2], [1], [])),
}  # fmt: skip
"""For each operator, a valid call, and a call on which its kernel would access invalid memory."""


@pytest.mark.parametrize("name", CALLS)
def test_valid_operands_are_accepted_and_invalid_operands_are_rejected(name: str) -> None:
    call = guarded(CORE + name)
    right, wrong = CALLS[name]
    if name == "set_value":
        call = guarded(f"{CORE}set_value_")
    call(*(arg.clone() if isinstance(arg, paddle.Tensor) else arg for arg in right))
    with pytest.raises(MaterializeError, match=rf"`paddle\._C_ops\.{name}_?` cannot run: [A-Z]"):
        call(*wrong)
    call(*(arg.clone() if isinstance(arg, paddle.Tensor) else arg for arg in right))


@pytest.mark.parametrize(
    ("shapes", "equation", "is_right"),
    [
        (((2, 3), (3, 4)), "ab,bc->ac", True), (((2, 3), (5, 3, 4)), "ab,dbc->dac", True),
        (((5, 2, 3), (5, 3, 4)), "...ab,...bc->...ac", False),
        (((3,),), "A->A", False), (((3, 3),), "aa->a", False), (((3,), (3,)), "a,a->aa", False),
        (((2, 3, 4), (3,)), "a...,b->ab", False), (((2, 3), (3,), (4, 3)), "ab,b,cb->ac", False),
        (((2, 0),), "ab->a", False), (((2, 3), (4, 3)), "ab,ac->bc", False),
        (((2, 3),), "ab->a->b", False), (((2, 3),), "ab ->ba", False), (((2, 3),), "abc->a", False),
        (((2,),), "a->b", False), (((2, 3),), "a.b->a", False), (((2,),), "a\0->a", False),
    ],
)  # fmt: skip
def test_equations_are_read_before_the_kernel_does(
    shapes: tuple[tuple[int, ...], ...], equation: str, is_right: bool
) -> None:
    call, operands = guarded(f"{CORE}einsum"), [ones(*shape) for shape in shapes]
    if is_right:
        result = call(operands, equation)[0]
        expected = np.einsum(equation, *(operand.numpy() for operand in operands))
        np.testing.assert_allclose(result.numpy(), expected)
        return
    with pytest.raises(MaterializeError, match=r"`paddle\._C_ops\.einsum`"):
        call(operands, equation)


def test_tensors_with_more_elements_than_32_bits_can_index_are_rejected() -> None:
    small, large = Value("float32", (2**16, 1)), Value("float32", (1, 2**16))
    inputs = (Input("input", small), Input("input", large))
    ops = (Op(f"{CORE}add", (Ref(0), Ref(1))),)
    sample = Sample("test/large", "paddle", "other", inputs, ops, Ref(2))
    with pytest.raises(MemoryLimitError, match="Op 0"):
        materialize(sample, memory_limit_bytes=2**40)
    empty = (Input("input", Value("float32", (0, 2**40))),)
    relu = (Op(f"{CORE}relu", (Ref(0),)),)
    sample = Sample("test/empty", "paddle", "other", empty, relu, Ref(1))
    with pytest.raises(MemoryLimitError, match="more than 2147483647 elements"):
        materialize(sample, memory_limit_bytes=2**40)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        (
            Op(f"{CORE}unique", (Ref(0), True, True, True, ListArg(()), WHOLE)),
            (Value("int64", (3,)),),
        ),
        (
            Op(f"{CORE}full_", (Ref(0), Ref(1), 1.0, FLOAT, PLACE)),
            (Value("float32", (3, 4)), Value("int64", ())),
        ),
        (Op(f"{CORE}cummin", (Ref(0), 1, -1)), (Value("float32", (3, 4)),)),
        (Op(f"{CORE}cast", (Ref(0), Ref(1))), (Value("int64", ()), Value("float32", (2, 3)))),
        (Op(f"{CORE}einsum", (ListArg((Ref(0),)), "A->A")), (Value("float32", (3,)),)),
        (Op(f"{CORE}squeeze", (Ref(0), Ref(1))), (Value("int64", (9, 1)), Value("int64", (3,)))),
        (Op(f"{CORE}squeeze", (Ref(0), Ref(0))), (Value("int64", (9, 1)),)),
        (Op(f"{CORE}equal_", (Ref(0), Ref(1))), (Value("float32", (3,)), Value("float64", (3,)))),
    ],
)
def test_writing_a_row_survives_operands_that_crash_shape_inference(
    op: Op, inputs: tuple[Value, ...]
) -> None:
    sample_inputs = tuple(Input("input", value) for value in inputs)
    sample = Sample("test/rules", "paddle", "other", sample_inputs, (op,), Ref(len(inputs)))
    from graphnet_datasets.frameworks.paddle.shapes import measure_footprint

    assert cost_columns(sample) is not None
    assert measure_footprint(sample).results == (None,)


@pytest.mark.parametrize("operands", [ones, lambda *_: None], ids=["known", "unknown"])
@pytest.mark.parametrize(
    ("name", "added", "of_scalar"),
    [
        ("softmax", 0, True), ("log_softmax", 0, True), ("argsort", 0, True), ("sum", 0, True),
        ("squeeze", 0, True), ("index_select", 0, False), ("gather", 0, False),
        ("concat", 0, False), ("p_norm", 0, False), ("unbind", 0, False), ("reverse", 0, False),
        ("split_with_num", 0, False), ("stack", 1, False), ("diag_embed", 1, False),
    ],
)  # fmt: skip
def test_axes_outside_the_tensor_are_rejected(
    name: str, added: int, of_scalar: bool, operands: Any
) -> None:
    from graphnet_datasets.frameworks.paddle.axis_guards import check_axes, num_axes

    for shape in ((), (2,), (2, 3), (1, 1, 1, 1)):
        tensor = operands(*shape)
        rank = len(shape) + added if shape or not of_scalar else 1
        count = num_axes(name, [[tensor, tensor]] if name in ("concat", "stack") else [tensor])
        if tensor is None:
            assert count is None
            rank = 9
        assert count in (None, rank)
        for axis in range(-rank, rank):
            check_axes(name, "axis", axis, count)
            check_axes(name, "axis", [axis], count)
        for axis in (rank, -rank - 1, 2**31 - 1, -(2**31), 2**63 - 1):
            for axes in (axis, [0, axis] if rank else [axis]):
                with pytest.raises(MaterializeError, match=rf"`axis` to be in .*, got {axis}\."):
                    check_axes(name, "axis", axes, count)


def test_forms_are_checked_once_and_elements_on_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    call = guarded(f"{CORE}embedding")
    compared: list[Any] = []
    check = call._check_form
    monkeypatch.setattr(call, "_check_form", lambda args: compared.append(args) or check(args))
    for numbers in ((0, 1), (2, 2), (1, 0)):
        call(whole(*numbers), ones(3, 4), -1, False)
    assert len(compared) == 1
    with pytest.raises(MaterializeError, match=r"Expected row indices in \[0, 3\)\."):
        call(whole(0, 3), ones(3, 4), -1, False)
    call(whole(0), ones(3, 4), -1, False)
    call(whole(0), ones(3, 5), -1, False)
    assert len(compared) == 3


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("tile", (ones(2, 2), whole(2**12, 2**12))),
        ("expand", (ones(1, 1), whole(2**12, 2**12))),
        ("full", (whole(2**12, 2**12), 1.0, "float32", None)),
        ("full_with_tensor", (ones(1), whole(2**12, 2**12), "float32")),
        ("one_hot", (whole(1, 2), whole(2**24))),
        ("arange", (ones(1), ones(1) * 2**24, ones(1), "float32", None)),
        ("uniform", (whole(2**12, 2**12), "float32", 0.0, 1.0, 0, None)),
        ("bincount", (whole(2**24), None, 0)),
        ("repeat_interleave", (ones(2, 2), 2**24, 0, -1)),
        ("add", (ones(2**12, 1), ones(1, 2**12))),
        ("matmul", (ones(2**12, 1), ones(1, 2**12), False, False)),
        ("meshgrid", ([ones(2**12), ones(2**12)],)),
    ],
)
def test_data_dependent_sizes_are_compared_with_the_limit(name: str, args: Any) -> None:
    arguments = [
        paddle.CPUPlace() if arg is None and name != "bincount"
        else vars(paddle)[arg] if isinstance(arg, str) else arg
        for arg in args
    ]  # fmt: skip
    call = guarded(CORE + name)
    call.limit_bytes = 2**20
    with pytest.raises(
        MemoryLimitError, match=rf"`paddle\._C_ops\.{name}` cannot run: The result has about"
    ):
        call(*arguments)


def test_the_limit_of_materialize_applies_to_sizes_read_from_tensors() -> None:
    inputs = (Input("input", Value("float32", (2, 2))), Input("input", Value("int64", (2,))))
    sample = Sample("test/tile", "paddle", "other", inputs,
                    (Op(f"{CORE}tile", (Ref(0), Ref(1))),), Ref(2))  # fmt: skip
    layer = materialize(sample, memory_limit_bytes=2**20)
    assert layer(ones(2, 2), whole(3, 2)).shape == [6, 4]
    with pytest.raises(MemoryLimitError, match="Raise `memory_limit_bytes`, or skip the sample"):
        layer(ones(2, 2), whole(2**11, 2**11))


class Picking(paddle.nn.Layer):
    def forward(self, x: Any) -> Any:
        places = paddle.argmin(x, axis=-1, keepdim=True)
        rows = paddle.to_tensor([0, 1])
        return (
            paddle.argmax(x, axis=1),
            paddle.argmax(x),
            places,
            paddle.bincount(paddle.argmax(x, axis=1)),
            paddle.put_along_axis(x, places, paddle.ones([3, 1]), 1),
            paddle.index_add(x, rows, 0, paddle.ones([2, 4])),
            paddle.index_put(
                x, (paddle.to_tensor([0, 1]), paddle.to_tensor([1, 2])), paddle.ones([2])
            ),
            paddle.nn.functional.cross_entropy(x, paddle.argmax(x, axis=1)),
            paddle.nn.functional.one_hot(paddle.argmax(x, axis=1), 5),
        )


def test_indexing_is_captured_and_runs_guarded() -> None:
    capturing: Any = extract(name="test/picking")(Picking())
    x = paddle.to_tensor(np.random.default_rng(0).random((3, 4), np.float32))
    expected = capturing(x)
    (sample,) = capturing.samples
    with paddle.no_grad():
        found = materialize(sample)(x)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left.numpy(), right.numpy())
    assert list(make_inputs(sample)) == ["input_0"]


def test_lists_of_numbers_may_come_out_of_tensors() -> None:
    shape = ListArg((2, 3))
    ops = (
        Op(f"{CORE}full_int_array", (shape, WHOLE, PLACE)),
        Op(f"{CORE}full", (Ref(0), 1.0, FLOAT, PLACE)),
        Op(f"{CORE}roll", (Ref(1), Ref(0), ListArg((0, 1)))),
    )
    sample = Sample("test/lists", "paddle", "other", (), ops, Ref(2))
    assert materialize(sample)().shape == [2, 3]

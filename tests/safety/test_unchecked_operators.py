"""Operators whose kernels trust their operands run nowhere unasked, and never while writing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from graphnet_datasets import materialize
from graphnet_datasets.analysis.columns import cost_columns
from graphnet_datasets.errors import MaterializeError, UncheckedOperatorError
from graphnet_datasets.frameworks.torch.operators import is_checked, lookup
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref
from graphnet_datasets.storage.table import write_table
from tests.frameworks.paddle.installed import paddle

TENSOR = Input("input", Value("float32", (2, 3)))
STORED = Input("constant", Value("float32", ()), data=b"\0\0\x80?")


def sample_of(op: Op, *inputs: Input, framework: Any = "torch") -> Sample:
    inputs = inputs or (TENSOR,)
    return Sample("example/hostile", framework, "other", inputs, (op,), Ref(len(inputs)))


@pytest.mark.parametrize(
    "name",
    [
        "torch.ops.aten._fused_adam_", "torch.ops.aten._fused_sgd_.default",
        "torch.ops.aten._fused_adagrad_", "torch._weight_norm_interface",
        "torch.ops.aten._weight_norm_differentiable_backward", "torch.ops.aten.gather_backward",
        "torch.ops.aten._cholesky_solve_helper", "torch.ops.aten._flash_attention_backward",
        "torch.ops.aten._scaled_dot_product_efficient_attention_backward",
        "torch.segment_reduce", "torch.ops.aten._cdist_backward", "torch._ctc_loss",
        "torch.ops.aten.add.out", "torch.ops.aten.promote_types", "torch.Tensor.lcm_",
        "torch.ops.prims.add", "torch.ops.aten._fft_c2c", "torch._foreach_add_",
    ],
)  # fmt: skip
def test_an_operator_that_trusts_its_operands_is_refused(name: str) -> None:
    sample = sample_of(Op(name, (Ref(0),) * 3))
    with pytest.raises(UncheckedOperatorError) as caught:
        materialize(sample)
    assert str(caught.value) == (
        f"Op 0 (`{name}`) of `example/hostile` is not one of the checked operators: invalid "
        "operands could corrupt the memory of this process. Pass "
        "`allow_unchecked_operators=True` if you trust the sample, or leave it to `graphnet run` "
        "and `graphnet validate`, which run samples in separate processes."
    )


def test_unchecked_operators_are_materialized_if_allowed() -> None:
    sample = sample_of(Op("torch.ops.aten._masked_scale", (Ref(0), Ref(0), 0.5)))
    with pytest.raises(UncheckedOperatorError):
        materialize(sample)
    module = materialize(sample, allow_unchecked_operators=True)
    assert [node.op for node in module.graph.nodes] == ["placeholder", "call_function", "output"]


@pytest.mark.parametrize(
    ("op", "what"),
    [
        (Op("torch.gather", (Ref(0), 0, Ref(0)), (("sparse_grad", True),)), "sparse tensor"),
        (Op("torch.zeros", (2, 2), (("layout", Named("layout", "sparse_coo")),)), "sparse tensor"),
        (Op("torch.add", (Ref(0), 1), (("out", Ref(0)),)), "writes to an operand"),
    ],
)
def test_operands_can_make_a_call_unchecked(op: Op, what: str) -> None:
    with pytest.raises(UncheckedOperatorError, match=what):
        materialize(sample_of(op))


@pytest.mark.parametrize("dtype", [1000, -1, Ref(0), "float32"])
def test_a_dtype_is_a_dtype(dtype: Any) -> None:
    """ATen takes integers for dtypes and looks them up in a table, however large they are."""
    sample = sample_of(Op("torch.ops.aten.sum", (Ref(0),), (("dtype", dtype),)))
    with pytest.raises(MaterializeError, match="that is not a dtype of torch"):
        materialize(sample, allow_unchecked_operators=True)


@pytest.mark.parametrize(
    "op",
    [
        Op("torch.ops.aten._fused_sgd_", (ListArg((Ref(0),)),) * 3,
           tuple((name, 0.1) for name in ("weight_decay", "momentum", "lr", "dampening"))
           + tuple((name, False) for name in ("nesterov", "maximize", "is_first_step"))),
        Op("torch.ops.aten.promote_types", (1000, 1)),
        Op("torch.special.chebyshev_polynomial_t", (Ref(0), 10**18)),
        Op("torch.ops.aten._weight_norm_interface", (Ref(0), Ref(0), 0)),
    ],
)  # fmt: skip
def test_writing_a_row_runs_no_such_kernel(op: Op, tmp_path: Path) -> None:
    sample = sample_of(op, STORED)
    assert cost_columns(sample)["op_histogram"]
    assert write_table([sample], tmp_path / "rows.parquet").exists()


@pytest.mark.parametrize(
    ("weight", "norms"), [((3, 4), (0,)), ((3, 4), (4, 1)), ((3, 0), (3, 1)), ((3, 4), (3, 4))]
)
def test_norms_of_weights_fit_them(weight: tuple[int, ...], norms: tuple[int, ...]) -> None:
    inputs = (Input("input", Value("float32", weight)), Input("input", Value("float32", norms)))
    with pytest.raises(MaterializeError):
        materialize(sample_of(Op("torch._weight_norm", (Ref(0), Ref(1), 0)), *inputs))


@pytest.mark.parametrize(
    "op",
    [
        Op("torch.repeat_interleave", (Ref(0), Ref(1))),
        Op("torch.repeat_interleave", (Ref(1),)),
        Op("torch.Tensor.repeat_interleave", (Ref(0),), (("repeats", Ref(1)), ("dim", 0))),
        Op("torch.ops.aten.repeat_interleave", (Ref(0), Ref(1))),
        Op("torch._C._nn.replication_pad3d", (Ref(2), Ref(1))),
        Op("torch._C._nn.reflection_pad1d", (Ref(0), (1, 2**62))),
        Op("torch.nn.functional.pad", (Ref(0), (0, Ref(1)), "replicate")),
        Op("torch.max_pool1d", (Ref(0), Ref(1))),
        Op("torch.as_strided", (Ref(0), (1,), (1,), Ref(1))),
        Op("torch.as_strided_scatter", (Ref(0), Ref(0), (1,), (1,), Ref(1))),
        Op("torch.ops.aten.as_strided_.default", (Ref(0), (1,), (1,), 2**63 - 1)),
        Op("torch.linalg.matrix_power", (Ref(0), Ref(1))),
        Op("torch.ops.aten.linalg_matrix_power", (Ref(0), Ref(1))),
    ],
)
def test_numbers_that_kernels_trust_are_known_before(op: Op) -> None:
    """Repeats whose sum overflows make a small result, which the kernel writes beyond."""
    inputs = (
        TENSOR,
        Input("input", Value("int64", ())),
        Input("input", Value("float32", (1,) * 5)),
    )
    sample = sample_of(op, *inputs)
    with pytest.raises(
        UncheckedOperatorError, match="uses numbers that are known only at run time"
    ):
        materialize(sample)
    materialize(sample, allow_unchecked_operators=True)
    with pytest.raises(
        UncheckedOperatorError, match="uses numbers that are known only at run time"
    ):
        materialize(sample)
    assert cost_columns(sample)["op_histogram"]


def test_bags_are_rows() -> None:
    """The kernel writes where a negative offset says."""
    numbers = Input("input", Value("int64", (2, 3)), statistics=Statistics(1.0, 0.5, 0.0, 1.0))
    by_rows = Op("torch.nn.functional.embedding_bag", (Ref(1), Ref(0)))
    assert materialize(sample_of(by_rows, TENSOR, numbers))
    for op in (Op(by_rows.target, (Ref(1), Ref(0), Ref(1))),
               Op("torch.embedding_bag", (Ref(0), Ref(1), Ref(1)))):  # fmt: skip
        with pytest.raises(UncheckedOperatorError):
            materialize(sample_of(op, TENSOR, numbers))


@pytest.mark.parametrize(
    "op",
    [
        Op("torch.repeat_interleave", (Ref(0), 2)), Op("torch.repeat_interleave", (Ref(0), 2, 1)),
        Op("torch.nn.functional.pad", (Ref(0), (1, 1), "reflect")),
        Op("torch.max_pool1d", (Ref(0), 2)), Op("torch.as_strided", (Ref(0), (2,), (1,), 1)),
        Op("torch.as_strided_scatter", (Ref(0), Ref(0), (2, 3), (3, 1), 0)),
        Op("torch.as_strided_scatter", (Ref(0),),
           (("src", Ref(0)), ("size", (2, 3)), ("stride", (3, 1)))),
    ],
)  # fmt: skip
def test_numbers_that_are_known_are_taken(op: Op) -> None:
    sample = sample_of(op)
    assert materialize(sample)(torch.ones(2, 3)).numel()


@pytest.mark.parametrize(
    "ops",
    [
        (Op("torch.ops.aten.copy", (None, Ref(0))),),
        (Op("torch.ops.aten.copy.default", (), (("self", None), ("src", Ref(0)))),),
        (Op("torch.ops.aten.cat.default", (ListArg((Ref(0), None)),)),),
        (Op("torch._assert_async", (Ref(0),)), Op("torch.ops.aten.copy.default", (Ref(1), Ref(0)))),
        (Op("operator.setitem", (Ref(0), 0, 1.0)), Op("torch.ops.aten.copy", (Ref(1), Ref(0)))),
    ],
)
def test_a_tensor_of_aten_is_there(ops: tuple[Op, ...]) -> None:
    """The kernel would follow the null pointer of an undefined tensor."""
    sample = Sample("example/none", "torch", "other", (TENSOR,), ops, Ref(len(ops)))
    with pytest.raises(MaterializeError, match="to be a tensor, got None"):
        materialize(sample)


def lying(*ops: Op) -> Sample:
    """Return a sample whose first operator gives another shape than the row records of it.

    Torch has no rule on fake tensors for products of float32 in groups.
    """
    shapes: tuple[tuple[Any, tuple[int, ...]], ...] = (
        ("float32", (2, 8, 2)), ("float32", (2, 2, 2)), ("float32", (1, 400)),
    )  # fmt: skip
    inputs = tuple(Input("input", Value(dtype, shape)) for dtype, shape in shapes)
    product = Op("torch._grouped_mm", (Ref(0), Ref(1)), results=(Value("float32", (400,)),))
    return Sample("example/liar", "torch", "other", inputs, (product, *ops), Ref(2 + len(ops)))


@pytest.mark.parametrize(
    "ops",
    [
        (Op("torch.native_batch_norm", (Ref(2), None, None, Ref(3), Ref(3), True, 0.1, 1e-5)),),
        (
            Op("torch.mul", (Ref(3), 2)),
            Op("torch.native_batch_norm", (Ref(2), None, None, Ref(4), Ref(4), True, 0.1, 1e-5)),
        ),
        (Op("torch.ops.aten.copy.default", (Ref(3), Ref(3))),),
    ],
)
def test_shapes_claimed_by_a_row_are_not_trusted(ops: tuple[Op, ...]) -> None:
    sample = lying(*ops)
    with pytest.raises(UncheckedOperatorError, match="does not check sizes that are known only at"):
        materialize(sample)
    materialize(lying(Op("torch.mul", (Ref(3), 2))))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("torch.ops.aten._native_batch_norm_legit.no_stats", (None, None, False, 0.1, 1e-5)),
        ("torch.ops.aten._native_batch_norm_legit", (None, None, False, 0.1, 1e-5)),
        ("torch.native_batch_norm", (None, None, None, None, False, 0.1, 1e-5)),
        ("torch.native_batch_norm", (None, None, None, None, 1, 0.1, 1e-5)),
    ],
)
def test_statistics_are_there_where_none_are_made(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(MaterializeError, match="Expected `running_mean` and `running_var` to be"):
        materialize(sample_of(Op(name, (Ref(0), *args))))


def test_public_operators_are_checked() -> None:
    for name in ("torch.relu", "torch.Tensor.add_", "torch.ops.aten.convolution.default",
                 "torch.linalg.solve", "operator.add"):  # fmt: skip
        assert is_checked(lookup(name)), name


@pytest.mark.paddle
@pytest.mark.parametrize(
    "name",
    ["argsort_grad", "topk_grad", "kthvalue_grad", "mode_grad", "max_pool2d_with_index_grad",
     "index_select_grad", "lu_solve", "hsigmoid_loss", "ctc_align", "warpctc"],
)  # fmt: skip
def test_paddles_are_refused_too(name: str) -> None:
    assert paddle
    with pytest.raises(UncheckedOperatorError, match="is not one of the checked operators"):
        materialize(sample_of(Op(f"paddle._C_ops.{name}", (Ref(0),) * 3), framework="paddle"))


@pytest.mark.paddle
@pytest.mark.parametrize("target", ["paddle._C_ops.remainder", "paddle._C_ops.floor_divide",
                                    "operator.mod", "operator.floordiv"])  # fmt: skip
def test_integers_are_not_divided_by_zero(target: str) -> None:
    zeros = Input("input", Value("int64", (3,)), statistics=Statistics(0.0, 0.0, 0.0, 0.0))
    sample = sample_of(Op(target, (Ref(0), Ref(0))), zeros, framework="paddle")
    module = materialize(sample)
    with pytest.raises(MaterializeError, match="Integers cannot be divided by zero"):
        module(paddle.zeros([3], "int64"))

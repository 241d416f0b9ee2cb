"""Argument names of Paddle's operators, in the positional order of Paddle's functions."""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping

from ...errors import CaptureError

_ARGUMENTS: Mapping[str, str] = {
    "add_grad": "x y out_grad axis",
    "add_n": "inputs",
    "assign_out_": "x output",
    "cast": "x dtype",
    "conv2d": "input filter strides paddings padding_algorithm dilations groups data_format",
    "conv3d": "input filter strides paddings padding_algorithm groups dilations data_format",
    "divide_grad": "x y out out_grad axis",
    "empty": "shape dtype place",
    "empty_like": "x dtype place",
    "full_like": "x value dtype place",
    "leaky_relu": "x negative_slope",
    "matmul": "x y transpose_x transpose_y",
    "matmul_grad": "x y out_grad transpose_x transpose_y",
    "matmul_with_flatten": "x y x_num_col_dims y_num_col_dims",
    "multiply": "x y",
    "multiply_": "x y",
    "pow": "x y",
    "pow_grad": "x out_grad y",
    "share_data_": "x",
    "slice": "input axes starts ends infer_flags decrease_axis",
    "slice_grad": "input out_grad axes starts ends infer_flags decrease_axis",
    "subtract_grad": "x y out_grad axis",
    "sum_grad": "x out_grad axis keepdim reduce_all",
    "sync_batch_norm_": (
        "x mean variance scale bias is_test momentum epsilon data_format use_global_stats "
        "trainable_statistics"
    ),
}
"""Operators that Paddle does not describe, or whose description is of a sparse operator of that
name."""


def argument_names(name: str, attributes: Container[str] = ()) -> tuple[str, ...]:
    """Return the argument names of a Paddle core operator.

    `attributes` are the attribute names of the program operation, whose spelling differs from the
    function's for a few operators.

    Raises:
        CaptureError: the argument names are unknown.

    >>> argument_names("conv2d")[:3]
    ('input', 'filter', 'strides')
    """
    if name in _ARGUMENTS:
        return tuple(_ARGUMENTS[name].split())
    described = _described()
    if name not in described:
        raise CaptureError(
            f"The order of the arguments of `{name}` is unknown. Leave the sample out, or ask for "
            "the operator on the project's issue page."
        )
    return tuple(
        argument if argument in attributes or f"{argument}_" not in attributes else f"{argument}_"
        for argument in described[name]
    )


def takes_integers(name: str, argument: str) -> bool:
    """Return whether an argument is a list of integers that may be passed as tensors.

    >>> takes_integers("reshape", "shape"), takes_integers("concat", "x")
    (True, False)
    """
    kinds = _kinds().get(name.removeprefix("pd_op."), {})
    return kinds.get(argument) == ""


@functools.cache
def _described() -> dict[str, list[str]]:
    import paddle._C_ops as core

    return vars(core)["get_core_ops_args_info"]()


@functools.cache
def _kinds() -> dict[str, dict[str, str]]:
    import paddle._C_ops as core

    kinds = vars(core)["get_core_ops_args_type_info"]()
    return {
        name: dict(zip(names, kinds[name], strict=True)) for name, names in _described().items()
    }

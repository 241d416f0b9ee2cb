"""Checks of string arguments of Paddle calls: layouts, modes and algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import MaterializeError
from .operator_names import words

_TEXTS = {
    "data_format": words("NC NCL NLC NCW NWC NCHW NHWC NCDHW NDHWC"),
    "padding_algorithm": words("EXPLICIT SAME VALID"),
    "pooling_type": words("avg max"),
    "normalization": words("backward forward ortho"),
    "reduction": words("none mean sum batchmean"),
}
"""Accepted strings by argument name. Kernels do not reject other strings; they take an arbitrary
branch or none."""

_MODES = {
    "dropout": words("upscale_in_train downscale_in_infer downgrade_in_infer"),
    "median": words("avg min"),
    "prelu": words("all channel element"),
    "pad3d": words("constant reflect replicate circular"),
    "grid_sample": words("bilinear nearest"),
    "rnn": words("LSTM GRU RNN_TANH RNN_RELU"),
}


def check_texts(name: str, arguments: Sequence[str], args: Sequence[Any]) -> None:
    """Raise if a string argument is not accepted by the operator.

    Raises:
        MaterializeError: the string is not accepted.

    >>> check_texts("pool2d", ["data_format"], ["NHWC"])
    """
    for argument, arg in zip(arguments, args, strict=True):
        accepted = _MODES.get(name) if argument == "mode" else _TEXTS.get(argument)
        if argument == "interp_method":
            accepted = {name.removesuffix("_interp")}
        if accepted is not None and arg not in accepted:
            raise MaterializeError(
                f"Expected `{argument}` to be one of {', '.join(sorted(accepted))}, got "
                f"{str(arg)[:40]!r}."
            )

"""Which texts a call of paddle may be given: layouts, modes and algorithms are closed sets."""

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
"""By the name of the argument; what is not a known text falls through to some branch of a kernel,
or through all of them."""

_MODES = {
    "dropout": words("upscale_in_train downscale_in_infer downgrade_in_infer"),
    "median": words("avg min"),
    "prelu": words("all channel element"),
    "pad3d": words("constant reflect replicate circular"),
    "grid_sample": words("bilinear nearest"),
    "rnn": words("LSTM GRU RNN_TANH RNN_RELU"),
}


def check_texts(name: str, arguments: Sequence[str], args: Sequence[Any]) -> None:
    """Refuse a text that means nothing to the operator.

    Raises:
        MaterializeError: it does not.

    >>> check_texts("pool2d", ["data_format"], ["NHWC"])
    """
    for argument, arg in zip(arguments, args, strict=True):
        known = _MODES.get(name) if argument == "mode" else _TEXTS.get(argument)
        if argument == "interp_method":
            known = {name.removesuffix("_interp")}
        if known is not None and arg not in known:
            raise MaterializeError(f"has {str(arg)[:40]!r} as `{argument}`.")

"""What a call does beyond giving a value: write to its arguments, draw random numbers."""

from __future__ import annotations

from typing import Any

from ....sample import Op
from . import python
from .table import ATEN_PREFIX, lookup

_UPDATES_STATISTICS = {
    "torch.nn.functional.batch_norm": ("training", 5, False),
    "torch.batch_norm": ("training", 5, False),
    "torch.nn.functional.instance_norm": ("use_input_stats", 5, True),
    "torch.instance_norm": ("use_input_stats", 5, True),
    "torch.ops.aten.native_batch_norm": ("training", 5, False),
    "torch.ops.aten._native_batch_norm_legit": ("training", 5, False),
    "torch.ops.aten.cudnn_batch_norm": ("training", 5, False),
}
"""Operators that write running statistics, and the argument that says whether they do."""

_ALWAYS_UPDATE = frozenset(
    f"{ATEN_PREFIX}{name}"
    for name in [
        "_batch_norm_with_update",
        "fused_moving_avg_obs_fake_quant",
        "rrelu_with_noise",
        "_cummax_helper",
        "_cummin_helper",
    ]
)


def mutates(op: Op) -> bool:
    """Tell whether this call writes to one of its arguments.

    >>> mutates(Op("torch.nn.functional.relu", (), (("inplace", True),)))
    True
    """
    operator = lookup(op.target)
    if operator.is_inplace or any(key == "out" and arg is not None for key, arg in op.kwargs):
        return True
    if operator.name.startswith("torch.nn.functional."):
        position = python.INPLACE_POSITION.get(operator.last_name)
        if position is not None and _argument(op, "inplace", position, False) is not False:
            return True
        if operator.last_name in ("embedding", "embedding_bag"):
            return _argument(op, "max_norm", 3, None) is not None
    if operator.name in _UPDATES_STATISTICS:
        return _argument(op, *_UPDATES_STATISTICS[operator.name]) is not False
    packet = operator.name.rpartition(".")[0]
    if packet in _UPDATES_STATISTICS:
        return _argument(op, *_UPDATES_STATISTICS[packet]) is not False
    return operator.name in _ALWAYS_UPDATE or packet in _ALWAYS_UPDATE


def draws_random_numbers(op: Op) -> bool:
    """Tell whether this call may draw random numbers, given its own arguments.

    >>> draws_random_numbers(Op("torch.nn.functional.dropout", (), (("training", False),)))
    False
    """
    operator = lookup(op.target)
    if not operator.is_random:
        return False
    if operator.name in python.TRAINING_POSITION:
        default = operator.name.startswith("torch.nn.functional.") and operator.last_name not in (
            "alpha_dropout",
            "feature_alpha_dropout",
            "rrelu",
        )
        position = python.TRAINING_POSITION[operator.name]
        return _argument(op, "training", position, default) is not False
    if "scaled_dot_product" in operator.name:
        return _argument(op, "dropout_p", 4, 0.0) != 0
    return True


_RATE_POSITION = {
    "alpha_dropout": 1, "dropout": 1, "dropout1d": 1, "dropout2d": 1, "dropout3d": 1,
    "feature_alpha_dropout": 1, "feature_dropout": 1, "native_dropout": 1,
}  # fmt: skip
_RECURRENT = frozenset({"gru", "lstm", "rnn_relu", "rnn_tanh"})


def drops_nothing(op: Op) -> bool:
    """Return whether a random operator is a dropout whose probability is the literal 0.

    `torch.lstm` and its kin have arguments `(…, num_layers, dropout, train, …)` in two orders. They
    drop nothing with one layer, a dropout of 0 or outside of training.

    >>> drops_nothing(Op("torch.nn.functional.dropout", ("x", 0.0)))
    True
    >>> drops_nothing(Op("torch.nn.functional.dropout", ("x", 0.5)))
    False
    """
    name = lookup(op.target).last_name
    if op.target.startswith(ATEN_PREFIX):
        name = op.target.removeprefix(ATEN_PREFIX).partition(".")[0]
    name = name.removesuffix("_")
    if name in _RATE_POSITION:
        rate = _argument(op, "p", _RATE_POSITION[name], None)
        return type(rate) in (int, float) and rate == 0
    if name == "multi_head_attention_forward":
        rate = _argument(op, "dropout_p", 10, None)
        is_off = _argument(op, "training", 13, True) is False
        return is_off or (type(rate) in (int, float) and rate == 0)
    if name in _RECURRENT:
        for position, rate in enumerate(op.args):
            if type(rate) is float:
                is_training = op.args[position + 1 : position + 2] != (False,)
                return rate == 0 or not is_training or op.args[position - 1] == 1
    return False


def _argument(op: Op, keyword: str, position: int, default: Any) -> Any:
    for key, arg in op.kwargs:
        if key == keyword:
            return arg
    return op.args[position] if len(op.args) > position else default

"""Side effects of calls: writes to arguments and random draws."""

from __future__ import annotations

from typing import Any

from ....operators import OperatorNames, OperatorValues
from ....sample import Op
from .table import ATEN_PREFIX, lookup

_STATISTICS_FLAG = OperatorValues("statistics_flag")

_WRITES = OperatorNames("writes")
_INPLACE_FLAG = OperatorValues("inplace_flag")
_TRAINING_FLAG = OperatorValues("training_flag")


def mutates(op: Op) -> bool:
    """Return whether this call writes to one of its arguments.

    >>> mutates(Op("torch.nn.functional.relu", (), (("inplace", True),)))
    True
    """
    operator = lookup(op.target)
    if operator.is_inplace or any(key == "out" and arg is not None for key, arg in op.kwargs):
        return True
    if operator.name.startswith("torch.nn.functional."):
        position = _INPLACE_FLAG.get(operator.last_name)
        if position is not None and _argument(op, "inplace", int(position), False) is not False:
            return True
        if operator.last_name.startswith("embedding"):
            return _argument(op, "max_norm", 3, None) is not None
    flag = _STATISTICS_FLAG.get(operator.name) or _STATISTICS_FLAG.get(
        operator.name.rpartition(".")[0]
    )
    if flag is not None:
        flag_position, keyword, default = flag.split(".")
        return _argument(op, keyword, int(flag_position), default == "true") is not False
    return operator.name.startswith(ATEN_PREFIX) and operator.packet_name in _WRITES


def draws_random_numbers(op: Op) -> bool:
    """Return whether this call may draw random numbers, given its arguments.

    >>> draws_random_numbers(Op("torch.nn.functional.dropout", (), (("training", False),)))
    False
    """
    operator = lookup(op.target)
    if not operator.is_random:
        return False
    if operator.name in _TRAINING_FLAG:
        default = operator.name.startswith("torch.nn.functional.") and operator.last_name not in (
            "alpha_dropout",
            "feature_alpha_dropout",
            "rrelu",
        )
        position = int(_TRAINING_FLAG[operator.name])
        return _argument(op, "training", position, default) is not False
    if "scaled_dot_product" in operator.name:
        position = next((place for kind, place in _ATTENTION_DROPOUT if kind in operator.name), 4)
        return _argument(op, "dropout_p", position, 0.0) != 0
    return True


_ATTENTION_DROPOUT = (("flash_attention", 3), ("efficient_attention", 5), ("cudnn_attention", 5))
"""The position of the dropout rate in kernels of `scaled_dot_product_attention`."""
_DROP_RATE = OperatorValues("drop_rate")
_RECURRENT = frozenset({"gru", "lstm", "rnn_relu", "rnn_tanh"})


def drops_nothing(op: Op) -> bool:
    """Return whether a random operator is a dropout with no effect.

    `torch.lstm` and similar operators take `(…, num_layers, dropout, train, …)` in two orders. They
    drop nothing with a single layer, with a dropout of 0, or outside training.

    >>> drops_nothing(Op("torch.nn.functional.dropout", ("x", 0.0)))
    True
    >>> drops_nothing(Op("torch.nn.functional.dropout", ("x", 0.5)))
    False
    """
    name = lookup(op.target).last_name
    if op.target.startswith(ATEN_PREFIX):
        name = op.target.removeprefix(ATEN_PREFIX).partition(".")[0]
    name = name.removesuffix("_")
    if name in _DROP_RATE:
        rate = _argument(op, "p", int(_DROP_RATE[name]), None)
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

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


def _argument(op: Op, keyword: str, position: int, default: Any) -> Any:
    for key, arg in op.kwargs:
        if key == keyword:
            return arg
    return op.args[position] if len(op.args) > position else default

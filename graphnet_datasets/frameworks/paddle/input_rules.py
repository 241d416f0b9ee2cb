"""The input rules of Paddle."""

from __future__ import annotations

from ...inputs.consumers import short_name
from ...inputs.rules import InputRules
from ...operators import OperatorValues
from ...sample import Op

_INDEXING = OperatorValues("paddle_index")
_BOXES, _BIAS = OperatorValues("paddle_boxes"), OperatorValues("paddle_bias")
_KEYWORD_ONLY = "99"


class _PaddleRules(InputRules):
    scaling = frozenset({"scale"})

    def indexing(self, op: Op) -> str | None:
        return _INDEXING.get(short_name(op.target))

    def boxes(self, op: Op) -> str | None:
        return _BOXES.get(short_name(op.target))

    def bias(self, op: Op) -> int | None:
        name = short_name(op.target)
        is_convolution = name.startswith(("conv", "depthwise_conv", "deformable_conv"))
        position = _BIAS.get(name, _KEYWORD_ONLY if is_convolution else None)
        return None if position is None else int(position)

    def norm(self, op: Op) -> tuple[int, int, int] | None:  # noqa: ARG002
        return 0, 1, 2

    def is_training(self, op: Op) -> bool:
        flags = [arg for arg in op.args if type(arg) is bool]
        # batch_norm(x, mean, variance, scale, bias, is_test, momentum, epsilon, layout,
        # use_global_stats, trainable_statistics)
        return bool(flags) and not flags[0] and not (len(flags) > 1 and flags[1])


RULES: InputRules = _PaddleRules()

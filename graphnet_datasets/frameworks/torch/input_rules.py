"""The input rules of torch."""

from __future__ import annotations

from ...inputs.consumers import short_name
from ...inputs.rules import InputRules
from ...operators import OperatorValues
from ...sample import Op

_INDEXING, _ATEN_INDEXING = OperatorValues("torch_index"), OperatorValues("aten_index")
_BOXES, _BIAS = OperatorValues("torch_boxes"), OperatorValues("torch_bias")


class _TorchRules(InputRules):
    axis_name = "dim"
    slice_names = ("dim", "start", "end", "step")
    has_single_slices = True

    def indexing(self, op: Op) -> str | None:
        name = short_name(op.target)
        text = _INDEXING.get(name)
        return _ATEN_INDEXING.get(name, text) if op.target.startswith("torch.ops.aten.") else text

    def boxes(self, op: Op) -> str | None:
        return _BOXES.get(short_name(op.target))

    def bias(self, op: Op) -> int | None:
        name = short_name(op.target)
        is_convolution = name.startswith(("conv", "depthwise_conv", "deformable_conv"))
        position = _BIAS.get(name, "2" if is_convolution else None)
        return None if position is None else int(position)

    def norm(self, op: Op) -> tuple[int, int, int] | None:
        has_weight_first = op.target.startswith(("torch.ops.aten.", "torch.batch_norm"))
        return (0, 3, 4) if has_weight_first else (0, 1, 2)

    def is_training(self, op: Op) -> bool:
        return any(arg is True for arg in op.args[:6]) or dict(op.kwargs).get("training") is True


RULES: InputRules = _TorchRules()

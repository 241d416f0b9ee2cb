"""Kinds of operators for a fusing compiler: pointwise, view, reduction, product, source."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from ..operators import OperatorValues
from ..sample.targets import base_name

Kind: TypeAlias = Literal["pointwise", "view", "reduction", "product", "source", "opaque"]

_KINDS = OperatorValues("kind")


def kind_of(target: str) -> Kind:
    """Return the kind of an operator for a fusing compiler; `opaque` operators are not fused.

    In-place operators have the kind of their out-of-place form. A reduction may broadcast its
    result back, like a softmax or a normalization; a source creates elements.

    >>> kind_of("torch.Tensor.add_"), kind_of("paddle._C_ops.matmul"), kind_of("torch.sort")
    ('pointwise', 'product', 'opaque')
    """
    name = base_name(target)
    return cast(Kind, _KINDS.get(name) or _KINDS.get(name.rstrip("_"), "opaque"))

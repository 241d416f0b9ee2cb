"""What common operators give, told from the forms of their operands alone.

Each rule covers the plain use of an operator and gives nothing for all else, of which torch's own
fake tensors are asked then: other dtypes than one, memory formats, sizes that only a run tells,
operands that do not fit. A rule says nothing that torch does not say
(`tests/frameworks/torch/walking/test_rules.py` compares them), and no operator that trusts its
operands has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .copy_rules import COPY_RULES
from .element_rules import ELEMENT_RULES
from .forms import Scalar, UnfitError
from .layer_rules import LAYER_RULES
from .making_rules import MAKING_RULES
from .mask_rules import MASK_RULES
from .number_rules import NUMBER_RULES, PAIR_RULES
from .order_rules import ORDER_RULES
from .scalar_rules import apply_to_scalars
from .sum_rules import SUM_RULES
from .value_rules import VALUE_RULES
from .view_rules import VIEW_RULES

RULES: Mapping[str, Callable[..., Any]] = {
    **ELEMENT_RULES,
    **MASK_RULES,
    **VALUE_RULES,
    **LAYER_RULES,
    **VIEW_RULES,
    **COPY_RULES,
    **MAKING_RULES,
    **SUM_RULES,
    **ORDER_RULES,
    **NUMBER_RULES,
}
"""Rules by the names that the table of operators keeps."""


def apply_rule(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return what the rule of an operator gives, `NotImplemented` where none covers the call.

    >>> import torch
    >>> from .forms import Form
    >>> apply_rule("torch.Tensor.unsqueeze", (Form((2, 3), None, torch.float32), 0), {}).shape
    (1, 2, 3)
    """
    rule = RULES.get(name)
    if rule is None:
        return NotImplemented
    if args and type(args[0]) is int:
        rule = PAIR_RULES.get(name, rule) if type(args[-1]) is int else rule
    try:
        if Scalar in map(type, args):
            return apply_to_scalars(name, rule, args, kwargs)
        return rule(*args, **kwargs)
    except (UnfitError, TypeError):  # TypeError: arguments that the rule does not know
        return NotImplemented

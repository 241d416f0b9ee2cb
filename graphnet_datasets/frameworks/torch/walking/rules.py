"""Rules that compute the results of common operators from the forms of their operands.

Each rule covers the ordinary use of an operator. Unusual dtypes, memory formats, run-time sizes and
mismatched operands are left to torch's fake tensors. A rule must agree with torch
(`tests/frameworks/torch/walking/test_rules.py` compares them). Operators whose kernels do not check
their operands have no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....operators import OperatorValues
from . import (
    copy_rules,
    element_rules,
    layer_rules,
    making_rules,
    mask_rules,
    number_rules,
    order_rules,
    sum_rules,
    value_rules,
    view_rules,
)
from .forms import Scalar, UnfitError
from .number_rules import PAIR_RULES
from .scalar_rules import apply_to_scalars

_MODULES = {
    "copy": copy_rules,
    "element": element_rules,
    "layer": layer_rules,
    "making": making_rules,
    "mask": mask_rules,
    "number": number_rules,
    "order": order_rules,
    "sum": sum_rules,
    "value": value_rules,
    "view": view_rules,
}


def _resolve(rule: str) -> Callable[..., Any]:
    """Return the function that an operator entry names as `module.function`."""
    module, _, function = rule.partition(".")
    return getattr(_MODULES[module], function)


RULES: Mapping[str, Callable[..., Any]] = {
    **{name: _resolve(rule) for name, rule in OperatorValues("rule").items()},
    **number_rules.OVERLOAD_RULES,
}
"""Rules by canonical operator name."""


def apply_rule(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of the operator's rule, or `NotImplemented` if no rule covers the call.

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
    except (UnfitError, TypeError):  # TypeError: the rule does not accept these arguments
        return NotImplemented

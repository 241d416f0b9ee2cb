"""Registry of rules, which translate torch operators by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from ...frameworks.torch.operators.table import find_entry

Rule: TypeAlias = Callable[..., Any]
"""Takes the writer and the operator's arguments; returns tensors, numbers or tuples of these."""

RULES: dict[str, Rule] = {}
"""Rules by the canonical name of the torch operator."""

SPACES = ("torch.", "torch.Tensor.", "torch.nn.functional.")


def rule(*targets: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of operators, by name.

    A name without a dot means the function of `torch`, the method of `torch.Tensor` and the
    function of `torch.nn.functional`, if torch's operator table contains them. The parameters of
    the function after the writer are those of the operator.
    """

    def register(function: Rule) -> Rule:
        for target in names_of(*targets):
            if target in RULES:
                raise ValueError(f"`{target}` has two rules.")
            RULES[target] = function
        return function

    return register


def names_of(*targets: str) -> list[str]:
    """Return the canonical names of operators for the names of rules.

    >>> names_of("relu", "operator.add")
    ['torch.relu', 'torch.Tensor.relu', 'torch.nn.functional.relu', 'operator.add']
    """
    names: dict[str, None] = {}
    for target in targets:
        spelled = [target] if "." in target else [space + target for space in SPACES]
        entries = map(find_entry, spelled)
        names.update((entry.name, None) for entry in entries if entry is not None)
    return list(names)


def find_rule(target: str) -> tuple[Rule, bool] | None:
    """Return the rule for a canonical name, and whether the operator writes to its first argument.

    An in-place operator uses the rule of its out-of-place form.
    """
    if target in RULES:
        return RULES[target], False
    namespace, _, last = target.rpartition(".")
    if namespace == "operator" and last.startswith("i"):
        plain = f"operator.{last[1:]}"
    elif last.endswith("_") and not last.endswith("__"):
        plain = target[:-1]
    else:
        return None
    for name in (plain, *names_of(plain.rpartition(".")[2])):
        if name in RULES:
            return RULES[name], True
    return None


def does_not_take(function: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return the reason why a rule does not accept the arguments, or None."""
    try:
        inspect.signature(function).bind(None, *args, **kwargs)
    except TypeError as error:
        return str(error)
    return None

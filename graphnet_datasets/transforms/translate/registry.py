"""The table of rules: from the name of a torch operator to the function that writes it anew."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from ...frameworks.torch.operators.table import find_entry

Rule: TypeAlias = Callable[..., Any]
"""Takes the writer and the operator's arguments; gives tensors, numbers or tuples of these."""

RULES: dict[str, Rule] = {}
"""Every rule by the canonical name of the torch operator that it stands for."""

SPACES = ("torch.", "torch.Tensor.", "torch.nn.functional.")


def rule(*targets: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of the operators with these names.

    A name without a dot stands for the function of `torch`, the method of `torch.Tensor` and the
    function of `torch.nn.functional` at once, as far as torch's operator table has them. The
    parameters of the function, after the writer, are those of the operator.
    """

    def register(function: Rule) -> Rule:
        for target in names_of(*targets):
            if target in RULES:
                raise ValueError(f"`{target}` has two rules.")
            RULES[target] = function
        return function

    return register


def names_of(*targets: str) -> list[str]:
    """Return the canonical names that names of rules stand for.

    >>> names_of("relu", "operator.add")
    ['torch.relu', 'torch.Tensor.relu', 'torch.nn.functional.relu', 'operator.add']
    """
    found: dict[str, None] = {}
    for target in targets:
        spelled = [target] if "." in target else [space + target for space in SPACES]
        entries = map(find_entry, spelled)
        found.update((entry.name, None) for entry in entries if entry is not None)
    return list(found)


def find_rule(target: str) -> tuple[Rule, bool] | None:
    """Return the rule of a canonical name, and whether the operator writes into its first argument.

    An operator that writes in place follows the rule of the one that does not.
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
    """Say why a rule does not take these arguments, or None if it does."""
    try:
        inspect.signature(function).bind(None, *args, **kwargs)
    except TypeError as error:
        return str(error)
    return None

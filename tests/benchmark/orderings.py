"""Candidates that sort in another way than eager; named by reference."""

# ruff: noqa: ARG001, ARG005 (every candidate has the same arguments, used or not)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Order = Callable[[torch.Tensor], Any]


def _last_tie_first(keys: torch.Tensor) -> torch.Tensor:
    """Return the positions that sort keys, with tied ones in descending order."""
    return keys.shape[-1] - 1 - torch.argsort(keys.flip(-1), dim=-1, stable=True)


def _of_keys(order: Order) -> Callable[..., Any]:
    """Return a compiler whose code computes its outputs from the first input alone."""
    return lambda module, example_inputs: lambda **inputs: order(_digits(inputs))


def _digits(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the integers that the samples sort."""
    return (next(iter(inputs.values())) * 3).long()


def _not_selecting(keys: torch.Tensor) -> torch.Tensor:
    return torch.arange(keys.shape[-1]).expand(keys.shape).clone()


def _repeating(keys: torch.Tensor) -> torch.Tensor:
    order = torch.argsort(keys, dim=-1, stable=True)
    is_tied = torch.gather(keys, -1, order).diff(dim=-1) == 0
    order[..., 1:] = torch.where(is_tied, order[..., :-1], order[..., 1:])
    return order


def _out_of_range(keys: torch.Tensor) -> torch.Tensor:
    return torch.argsort(keys, dim=-1, stable=True) - keys.shape[-1]


def _largest(keys: torch.Tensor) -> Any:
    order = keys.shape[-1] - 1 - torch.argsort(-keys.flip(-1), dim=-1, stable=True)
    order = order[..., :5]
    return torch.gather(keys, -1, order), order


def _write_by_other_ties(module: torch.nn.Module, example_inputs: Any) -> Callable[..., Any]:
    def run(**inputs: torch.Tensor) -> Any:
        digits = _digits(inputs)
        next(module.buffers()).copy_(_last_tie_first(digits))
        return digits

    return run


argsort_to_a_buffer = _write_by_other_ties
argsort_by_other_ties = _of_keys(_last_tie_first)
argsort_not_at_all = _of_keys(_not_selecting)
argsort_repeating = _of_keys(_repeating)
argsort_out_of_range = _of_keys(_out_of_range)
argsort_and_double = _of_keys(lambda keys: (_last_tie_first(keys), _last_tie_first(keys) * 2))
argsort_and_gather = _of_keys(lambda keys: keys.sort(dim=-1, stable=True).values)
topk_by_other_ties = _of_keys(_largest)
topk_least = _of_keys(lambda keys: tuple(torch.topk(keys, 5, largest=False)))


def unique_backwards(module: Any, example_inputs: Any) -> Callable[..., Any]:
    """Return unique elements in descending order, with the inverse and the counts."""

    def call(**inputs: Any) -> Any:
        values, inverse, counts = torch.unique(
            _digits(inputs), return_inverse=True, return_counts=True
        )
        return values.flip(0), values.numel() - 1 - inverse, counts.flip(0)

    return call


def unique_with_a_wrong_inverse(module: Any, example_inputs: Any) -> Callable[..., Any]:
    """Return unique elements in descending order, with the inverse of the ascending one."""

    def call(**inputs: Any) -> Any:
        values, inverse, counts = torch.unique(
            _digits(inputs), return_inverse=True, return_counts=True
        )
        return values.flip(0), inverse, counts.flip(0)

    return call

"""Branches of Python on numbers that a model draws or computes, decided for its capture.

A graph follows one side of each branch, and dynamo breaks, or gives up, where it does not know
which. Of two kinds of branches there is one side that a user sees, and it is taken here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch


@contextlib.contextmanager
def layers_kept() -> Iterator[None]:
    """Let `torch.rand([])` give the number 1, which is below no probability, instead of a tensor.

    Many models draw a number for each layer in train mode and leave the layer out where it is small
    (layerdrop, stochastic depth): the graph of such a call is another one each time. Drawn tensors
    of any other shape, as dropout and noise need them, are drawn as ever.

    >>> with layers_kept():
    ...     torch.rand([]) < 0.1, tuple(torch.rand(2).shape)
    (False, (2,))
    """

    def rand(original: Callable[..., Any], *sizes: Any, **options: Any) -> Any:
        if not options and sizes in (((),), ([],)):
            return 1.0
        return original(*sizes, **options)

    with _replaced("rand", rand):
        yield


class _Finite:
    """What `torch.isfinite` gives where every element is taken for finite."""

    def all(self) -> bool:
        """Return that all are."""
        return True


@contextlib.contextmanager
def taken_for_finite() -> Iterator[None]:
    """Let `torch.isfinite(x).all()` be true without a look at the elements.

    Models of transformers clamp what has overflowed, `if not torch.isfinite(x).all()`, and use the
    function for nothing else; with weights and inputs of usual sizes nothing overflows.

    >>> with taken_for_finite():
    ...     torch.isfinite(torch.ones(2)).all()
    True
    """

    def isfinite(original: Callable[..., Any], tensor: Any) -> _Finite:
        del original, tensor
        return _Finite()

    with _replaced("isfinite", isfinite):
        yield


@contextlib.contextmanager
def _replaced(name: str, function: Callable[..., Any]) -> Iterator[None]:
    original = getattr(torch, name)

    def replacement(*args: Any, **options: Any) -> Any:
        return function(original, *args, **options)

    setattr(torch, name, replacement)
    try:
        yield
    finally:
        setattr(torch, name, original)

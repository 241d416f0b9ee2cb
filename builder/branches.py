"""Fixed values for random and computed Python numbers of a model during its capture.

A graph follows one side of each branch, and dynamo breaks or fails if the side is unknown. For two
kinds of branches only one side is relevant in practice; this module selects it. NumPy computations
on plain numbers also stay out of the graph.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch


@contextlib.contextmanager
def layers_kept() -> Iterator[None]:
    """Make `torch.rand([])` and `numpy.random.rand()` return the number 1, so that no layer is
    dropped.

    Many models draw a number for each layer in train mode and skip the layer if the number is small
    (layerdrop, stochastic depth), so that each call has a different graph. Tensors of other shapes,
    such as those of dropout and noise, are drawn as usual.

    >>> with layers_kept():
    ...     torch.rand([]) < 0.1, tuple(torch.rand(2).shape)
    (False, (2,))
    """

    drawn, drawn_by_numpy = torch.rand, np.random.rand

    def rand(*sizes: Any, **options: Any) -> Any:
        if not options and sizes in (((),), ([],)):
            return 1.0
        return drawn(*sizes, **options)

    def numpy_rand(*sizes: Any) -> Any:
        return drawn_by_numpy(*sizes) if sizes else 1.0

    with _replaced(torch, "rand", rand), _replaced(np.random, "rand", numpy_rand):
        yield


class _Finite:
    """The result of `torch.isfinite` if all elements are assumed to be finite."""

    def all(self) -> bool:
        """Return True."""
        return True


@contextlib.contextmanager
def taken_for_finite() -> Iterator[None]:
    """Make `torch.isfinite(x).all()` true without reading the elements.

    Transformers models use it only to clamp overflown values (`if not torch.isfinite(x).all()`);
    nothing overflows with weights and inputs of usual magnitude.

    >>> with taken_for_finite():
    ...     torch.isfinite(torch.ones(2)).all()
    True
    """

    def isfinite(tensor: Any) -> _Finite:
        del tensor
        return _Finite()

    with _replaced(torch, "isfinite", isfinite):
        yield


_OF_NUMBERS: Mapping[str, Callable[..., Any]] = {
    "exp": math.exp,
    "lcm": math.lcm,
    "log": math.log,
    "log2": math.log2,
    "prod": math.prod,
    "sqrt": math.sqrt,
}
"""Functions of NumPy that models call with numbers, and their equivalents in Python."""


@contextlib.contextmanager
def numbers_of_python() -> Iterator[None]:
    """Compute functions of NumPy in Python if all their arguments are numbers.

    Dynamo converts `numpy.sqrt(64)` to a tensor and an operator that no framework has.

    >>> with numbers_of_python():
    ...     np.sqrt(64), np.prod((2, 3)), np.sqrt(np.ones(2)).tolist()
    (8.0, 6, [1.0, 1.0])
    """
    with contextlib.ExitStack() as stack:
        for name, plain in _OF_NUMBERS.items():
            stack.enter_context(_replaced(np, name, _plain_first(plain, getattr(np, name))))
        yield


def _plain_first(plain: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        if not options and all(_is_of_numbers(arg) for arg in args):
            return plain(*args)
        return original(*args, **options)

    return call


def _is_of_numbers(value: Any) -> bool:
    """Return whether a value is a number, or a shape."""
    return type(value) in (int, float) or (
        isinstance(value, tuple) and all(type(item) is int for item in value)
    )


@contextlib.contextmanager
def _replaced(module: Any, name: str, replacement: Callable[..., Any]) -> Iterator[None]:
    original = getattr(module, name)
    setattr(module, name, replacement)
    try:
        yield
    finally:
        setattr(module, name, original)

"""Captures in train mode in which no layer is dropped by chance.

Many models draw a number for each layer in train mode and leave the layer out where it is small
(layerdrop, stochastic depth): the graph of such a call is another one each time, and dynamo breaks
where Python looks at the number. Here a draw of a single number gives 1, so that all layers stay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


@contextlib.contextmanager
def layers_kept() -> Iterator[None]:
    """Let `torch.rand([])` give the number 1, which is below no probability, instead of a tensor.

    Drawn tensors of any other shape, as dropout and noise need them, are drawn as ever.

    >>> with layers_kept():
    ...     torch.rand([]) < 0.1, tuple(torch.rand(2).shape)
    (False, (2,))
    """
    original = torch.rand

    def rand(*sizes: Any, **options: Any) -> Any:
        if not options and sizes in (((),), ([],)):
            return 1.0
        return original(*sizes, **options)

    torch.rand = rand
    try:
        yield
    finally:
        torch.rand = original

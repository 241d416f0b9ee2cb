"""Reference gradients from eager autograd, and comparison with other gradients."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ....errors import GradientError
from ...gradients import EXPONENTS, least_t
from .calling import Call
from .randomness import Recorder


@dataclasses.dataclass(frozen=True)
class Trial:
    """Inputs and results of one run of eager autograd.

    `tangents` contains output gradients by output index, `gradients` tensor gradients by tensor
    index, and `written` the tensors after the graph's in-place writes.
    """

    outputs: Sequence[torch.Tensor]
    tangents: Mapping[int, torch.Tensor]
    gradients: Mapping[int, torch.Tensor]
    drawn: Sequence[torch.Tensor]
    written: Sequence[torch.Tensor]


def try_eager(call: Call, tensors: Sequence[torch.Tensor], name: str, seed: int) -> Trial:
    """Run a call and its gradients in eager autograd, with standard normal tangents.

    Raises:
        GradientError: If it fails, no output depends on a tensor that requires a gradient, or a
            gradient is not finite.
    """
    copies = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in tensors]
    generator = torch.Generator().manual_seed(seed)
    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            torch.manual_seed(seed)
            with torch.enable_grad(), Recorder() as recorder:
                outputs = call(*copies)
            tangents = {
                place: torch.randn(output.shape, generator=generator, dtype=output.dtype)
                for place, output in enumerate(outputs)
                if output.requires_grad
            }
            wanted = [place for place, tensor in enumerate(copies) if tensor.requires_grad]
            gradient_list: Sequence[torch.Tensor | None] = [None]
            if tangents:
                gradient_list = torch.autograd.grad(
                    [outputs[place] for place in tangents],
                    [copies[place] for place in wanted],
                    list(tangents.values()),
                    allow_unused=True,
                )
    except (RuntimeError, NotImplementedError) as error:
        raise GradientError(
            f"Eager autograd fails on `{name}`: {str(error).splitlines()[0][:300]}"
        ) from error
    gradients = {
        place: gradient
        for place, gradient in zip(wanted, gradient_list, strict=False)
        if gradient is not None
    }
    if not gradients:
        raise GradientError(
            f"No output of `{name}` depends on an input or weight that has a gradient."
        )
    for place, gradient in gradients.items():
        if not bool(torch.isfinite(gradient).all()):
            raise GradientError(
                f"Eager autograd gives `{name}` a gradient of its tensor {place} that is not "
                "finite, so there is no reference."
            )
    return Trial(
        [output.detach() for output in outputs], tangents, gradients, recorder.numbers, copies
    )


def t_of(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the least tolerance t, to a hundredth, at which a tensor matches another.

    The result is -inf if they are bit-equal, and inf if no tolerance applies.

    >>> t_of(torch.ones(2), torch.ones(2)), t_of(torch.ones(2), torch.ones(2) + 1e-6) < -5
    (-inf, True)
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return math.inf
    left, right = _plain(actual), _plain(expected)
    if torch.equal(left, right):
        return -math.inf
    dtype = str(expected.dtype).removeprefix("torch.")
    if dtype not in EXPONENTS:
        return math.inf
    wide: Any = torch.complex128 if expected.is_complex() else torch.float64
    left, right = left.to(wide), right.to(wide)
    if not bool(torch.isfinite(left).all() and torch.isfinite(right).all()):
        return math.inf
    difference, size = (left - right).abs(), right.abs()
    return least_t(dtype, lambda atol, rtol: bool((difference <= atol + rtol * size).all()))


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg()

"""Recorded statistics of tensors, and the elements of tensors that must be stored."""

from __future__ import annotations

import math

import torch

from ...sample import Statistics
from ...sample.vocabulary import Role
from ..moments import (
    CHUNK,
    MASK_MAGNITUDE,
    Moments,
    is_structured,
    must_store,
    round_significant,
)


def measure(tensor: torch.Tensor) -> Statistics | None:
    """Return mean, standard deviation, minimum and maximum over the finite elements of `tensor`.

    Figures are rounded to four significant digits, except for the exact range of integers, which
    bounds indices. The standard deviation is the population's. The real and imaginary parts of
    complex tensors are measured together. Return None if there are no finite elements.
    """
    values = tensor.detach()
    if values.layout is not torch.strided:
        values = values.to_dense()
    if values.is_quantized:
        values = values.int_repr()
    if values.is_complex():
        values = torch.view_as_real(values.resolve_conj())
    if values.numel() == 0:
        return None
    if not values.is_floating_point():
        return _measure_integers(values)
    return _measure_floats(values)


def _measure_integers(values: torch.Tensor) -> Statistics:
    if values.dtype == torch.bool:
        share = values.sum(dtype=torch.int64).item() / values.numel()
        spread = math.sqrt(share * (1 - share))
        low, high = float(values.all()), float(values.any())
        return Statistics(round_significant(share), round_significant(spread), low, high)
    if values.dtype in (torch.uint16, torch.uint32, torch.uint64):
        values = values.to(torch.int64)  # torch has no reductions over the wide unsigned types
    low, high = (float(bound) for bound in torch.aminmax(values))
    floats = _measure_floats(values)
    assert floats is not None  # noqa: S101 - integers are finite
    return Statistics(floats.mean, floats.std, low, high)


def _measure_floats(values: torch.Tensor) -> Statistics | None:
    flat = values.reshape(-1)
    moments = Moments()
    for start in range(0, flat.numel(), CHUNK):
        chunk = flat[start : start + CHUNK].to(torch.float64)
        finite = torch.isfinite(chunk)
        if not bool(finite.all()):
            chunk = chunk[finite]
            if chunk.numel() == 0:
                continue
        mean = chunk.mean().item()
        moments.add(
            chunk.numel(),
            mean=mean,
            squares=(chunk - mean).square_().sum().item(),
            low=chunk.min().item(),
            high=chunk.max().item(),
        )
    limit = torch.finfo(values.dtype if values.is_floating_point() else torch.float64).max
    return moments.statistics(limit)


def encode(tensor: torch.Tensor) -> bytes:
    """Return the elements of `tensor` as little-endian bytes in row-major order."""
    values = tensor.detach().cpu()
    if values.is_quantized:
        values = values.int_repr()
    values = values.resolve_conj().resolve_neg().contiguous().reshape(-1)
    return values.view(torch.uint8).numpy().tobytes()


def elements_to_store(tensor: torch.Tensor, role: Role) -> bytes | None:
    """Return the elements of `tensor` if statistics are not enough to replace them, else None.

    `frameworks.moments.must_store` decides.
    """
    if tensor.layout is not torch.strided:
        return None
    is_stored = must_store(
        role,
        tensor.numel(),
        is_inexact=tensor.is_floating_point() or tensor.is_complex(),
        is_mask=lambda: _is_mask(tensor),
        is_uniform=lambda: bool((tensor == tensor.reshape(-1)[0]).all()),
        is_structured=lambda: _is_structured(tensor),
    )
    return encode(tensor) if is_stored else None


def _is_structured(tensor: torch.Tensor) -> bool:
    """Return whether the elements, or the steps between integer elements, are repetitive."""
    ways = [tensor]
    if not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype != torch.bool:
        flat = tensor.reshape(-1).to(torch.int64)
        ways.append(flat[1:] - flat[:-1])
    return is_structured(map(encode, ways))


def _is_mask(tensor: torch.Tensor) -> bool:
    if tensor.is_complex():
        return False
    as_float = tensor.detach().to(torch.float64)
    return bool((as_float.abs() > MASK_MAGNITUDE).any() or not torch.isfinite(as_float).all())

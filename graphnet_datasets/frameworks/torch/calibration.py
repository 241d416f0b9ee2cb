"""Calibration of a torch sample by running its graph operator by operator."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...errors import CalibrationError
from ...inputs.calibration import Moments
from ...operators import OperatorNames
from ...sample import Op, Sample
from ...sample.targets import base_name
from ..runtime import find_device_problem
from .stepping import Stepper, prepare

PRODUCTS = OperatorNames("product")
_SLOW_IN_FLOAT16 = PRODUCTS | OperatorNames("slow_in_float16")
_FLOAT16_OR_MASK = {torch.float16, torch.bool}

_LARGEST_SHARE = 2**24
"""Moments of larger tensors are computed on this many leading elements."""


@contextlib.contextmanager
def starting(
    sample: Sample,
    *,
    device: str = "cpu",
    memory_limit_bytes: int | None = None,
    trust_remote_code: bool = False,
    allow_unchecked_operators: bool = False,
) -> Iterator[Callable[[Sample, int], _Backend]]:
    """Yield a function that starts a run of a sample with the inputs of a seed.

    Raises:
        CalibrationError: an operator of the graph fails, or the device does not exist.
        UnknownOperatorError, UntrustedCodeError, MemoryLimitError, MaterializeError: as
            `materialize`.
    """
    if problem := find_device_problem("torch", device):
        raise CalibrationError(
            f"`{sample.id}` cannot be calibrated on {device[:40]!r}: {problem}. Leave `device` out "
            "to run it on the CPU."
        )
    prepared = prepare(
        sample,
        memory_limit_bytes,
        device,
        trust_remote_code=trust_remote_code,
        allow_unchecked_operators=allow_unchecked_operators,
    )
    is_cuda = torch.device(device).type == "cuda"
    with (
        torch.random.fork_rng([device] if is_cuda else []),
        torch.no_grad(),
        _quick_products() if is_cuda else contextlib.nullcontext(),
    ):
        yield lambda changed, seed: _Backend(*prepared, changed, seed, device=device)


@contextlib.contextmanager
def _quick_products() -> Iterator[None]:
    """Allow TF32 for float32 products on a GPU, which keeps four digits of their moments."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class _Backend(Stepper):
    """Access to the values of a calibration run.

    On a CPU, float16 products are computed in float32 and rounded once, like the kernels of an
    accelerator, because the CPU's float16 kernels take about twenty times as long.
    """

    def compute(self, node: torch.fx.Node, op: Op) -> Any:
        is_product = self.device.type == "cpu" and base_name(op.target) in _SLOW_IN_FLOAT16
        if is_product and {torch.float16} <= set(self.operand_dtypes(node)) <= _FLOAT16_OR_MASK:
            return self.compute_in_float32(node, torch.float16)
        return super().compute(node, op)

    def root_mean_square(self, value: int) -> float | None:
        tensor = self.tensor(value)
        if tensor is None or not tensor.numel():
            return None
        if not tensor.is_floating_point() and not tensor.is_complex():
            return None
        return _root_mean_square(tensor)

    def distance(self, value: int, other: _Backend) -> float | None:
        tensor, other_tensor = self.tensor(value), other.tensor(value)
        if (
            tensor is None
            or other_tensor is None
            or tensor.shape != other_tensor.shape
            or not tensor.is_floating_point()
        ):
            return None
        return _root_mean_square(tensor.detach().reshape(-1) - other_tensor.detach().reshape(-1))

    def array(self, value: int) -> npt.NDArray[np.float32] | None:
        tensor = self.tensor(value)
        if tensor is None or not (
            tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool
        ):
            return None
        tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        return tensor.detach().to("cpu", torch.float32).numpy()

    def channel_moments(self, value: int) -> Moments | None:
        tensor = self.tensor(value)
        if tensor is None or tensor.dim() < 2 or not tensor.numel():
            return None
        axes = [0, *range(2, tensor.dim())]
        values = tensor.detach().to(torch.float32)
        variances, means = torch.var_mean(values, axes, correction=0)
        variances, means = variances.double(), means.double()
        return Moments(
            means.mean().item(),
            means.std(correction=0).item(),
            variances.mean().item(),
            variances.std(correction=0).item(),
        )


def _root_mean_square(tensor: torch.Tensor) -> float:
    flat = tensor.detach().abs().reshape(-1)[:_LARGEST_SHARE].to(torch.float32)
    size = torch.linalg.vector_norm(flat).item() / math.sqrt(flat.numel())
    if math.isfinite(size):
        return size
    finite = flat[torch.isfinite(flat)].to(torch.float64)
    return finite.square().mean().sqrt().item() if finite.numel() else math.nan

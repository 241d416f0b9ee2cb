"""The operations that reach the peak rates of a device, on random values.

Zeros would draw less power and run faster than real data.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...errors import RunError


@contextlib.contextmanager
def using(device: str, num_threads: int) -> Iterator[Callable[[], None]]:
    """Use a device with a number of threads, and yield a function that waits for the device.

    Raises:
        RunError: the device is missing or has too little free memory.
    """
    is_cuda = device.startswith("cuda")
    if is_cuda and not torch.cuda.is_available():
        raise RunError(f"There is no device `{device}`: torch sees no CUDA device. Use `cpu`.")
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield torch.cuda.synchronize if is_cuda else _nothing
    except torch.OutOfMemoryError as error:
        raise RunError(
            f"`{device}` has too little free memory to measure its peak rates: {error}. "
            "Free it, or run on another device."
        ) from error
    finally:
        torch.set_num_threads(before)


def make_product(device: str, dtype: str, size: int) -> Callable[[], Any]:
    """Return a call that multiplies two [size, size] matrices of a dtype."""
    left = torch.randn(size, size, device=device, dtype=torch.float32).to(getattr(torch, dtype))
    out = torch.empty_like(left)
    return lambda: torch.mm(left, left, out=out)


def make_copy(device: str, num_bytes: int) -> Callable[[], Any]:
    """Return a call that copies `num_bytes` bytes on the device."""
    source = torch.randint(255, (num_bytes,), device=device, dtype=torch.uint8)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def cache_bytes(device: str) -> int | None:
    """Return the size of a GPU's last-level cache in bytes, or None for a CPU."""
    if not device.startswith("cuda"):
        return None
    return int(torch.cuda.get_device_properties(device).L2_cache_size)


def _nothing() -> None:
    """Do nothing: a CPU call has finished when it returns."""

"""GPUs for which caches can be filled, with the data reported by their drivers."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Card:
    """A GPU of compute capability 9.0 as its driver reports it.

    `name`, `memory_bytes` and `l2_bytes` come from the CUDA runtime, `memory_clock_khz` and
    `memory_bus_bits` from the driver, and `max_clock_mhz`, the highest clock of the
    multiprocessors, from `nvidia-smi`.
    """

    name: str
    memory_bytes: int
    l2_bytes: int
    memory_clock_khz: int
    memory_bus_bits: int
    max_clock_mhz: int = 1980


CAPABILITY = (9, 0)
NUM_MULTIPROCESSORS = 132
MAX_SHARED_BYTES = 232448
MAX_REGISTERS = 65536
WARP_SIZE = 32

CARDS = {
    "h100": Card(
        name="NVIDIA H100 80GB HBM3",
        memory_bytes=85_029_158_912,
        l2_bytes=52_428_800,
        memory_clock_khz=2_619_000,
        memory_bus_bits=5120,
    ),
    "h200": Card(
        name="NVIDIA H200",
        memory_bytes=150_754_820_096,
        l2_bytes=62_914_560,
        memory_clock_khz=3_201_000,
        memory_bus_bits=6144,
    ),
}

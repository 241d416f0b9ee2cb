"""Cache sizes and cache eviction, for timing calls with cold caches."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

_CPU_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNKNOWN_CACHE_BYTES = 64 * 2**20
"""Used if neither sysfs nor the C library reports a size; larger than most desktop caches."""
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def cpu_cache_bytes(folder: Path = _CPU_CACHES) -> int:
    """Return the size of the processor's largest cache, as reported by the system."""
    sizes = [_parse_size(path.read_text()) for path in folder.glob("index*/size")]
    for name in ("SC_LEVEL3_CACHE_SIZE", "SC_LEVEL2_CACHE_SIZE"):
        if name in os.sysconf_names:
            sizes.append(os.sysconf(name))
    return max(sizes, default=0) or _UNKNOWN_CACHE_BYTES


def make_evictor() -> Callable[[], None]:
    """Return a function that overwrites twice the size of the processor's last-level cache.

    Call it outside of the timed window.
    """
    buffer = np.zeros(2 * cpu_cache_bytes() // 8, np.int64)

    def evict_cpu() -> None:
        np.add(buffer, 1, out=buffer)

    return evict_cpu


def _parse_size(text: str) -> int:
    number, unit = text.strip()[:-1], text.strip()[-1:]
    if unit in _UNITS and number.isdigit():
        return int(number) * _UNITS[unit]
    return int(text) if text.strip().isdigit() else 0

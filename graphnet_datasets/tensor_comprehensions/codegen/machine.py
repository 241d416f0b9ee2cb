"""Processor properties used by the code generator: vectors, registers, caches, threads."""

from __future__ import annotations

import dataclasses
import functools
import os
import platform
from pathlib import Path


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """A target: vector size in bytes, number of vector registers, cache sizes in bytes.

    >>> Machine("x86_64", "avx512", 64, 32).lanes(4)
    16
    """

    architecture: str
    isa: str
    vector_bytes: int
    num_registers: int
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 1024 * 1024
    model: str = ""

    def lanes(self, itemsize: int) -> int:
        """Return the number of elements of `itemsize` bytes in a vector."""
        return self.vector_bytes // itemsize


@functools.cache
def this_machine() -> Machine:
    """Describe this processor; unknown properties have conservative defaults."""
    flags, model = _processor()
    architecture = platform.machine()
    caches = {"l1_bytes": _cache_bytes(0, 32 * 1024), "l2_bytes": _cache_bytes(2, 1024 * 1024)}
    if {"avx512f", "avx512vl", "avx512dq", "avx512bw"} <= flags:
        return Machine(architecture, "avx512", 64, 32, **caches, model=model)
    if {"avx2", "fma"} <= flags:
        return Machine(architecture, "avx2", 32, 16, **caches, model=model)
    if architecture in ("aarch64", "arm64"):
        return Machine(architecture, "neon", 16, 32, **caches, model=model)
    return Machine(architecture, "baseline", 16, 16, **caches, model=model)


@functools.cache
def processor_flags() -> frozenset[str]:
    """Return the names of this processor's features."""
    return frozenset(_processor()[0])


def default_threads() -> int:
    """Return the number of threads of a kernel: torch's if it is imported, else all processors.

    Without torch, `OMP_NUM_THREADS` overrides the number of processors.
    """
    import sys

    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_num_threads"):
        return int(torch.get_num_threads())
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdigit() and int(wanted) else len(os.sched_getaffinity(0))


def _processor() -> tuple[set[str], str]:
    flags: set[str] = set()
    model = platform.processor()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("flags", "Features") and not flags:
                flags = set(value.split())
            if key.strip() == "model name":
                model = value.strip()
                break
        else:
            return flags, model
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return set(line.partition(":")[2].split()), model
    except OSError:
        pass
    return flags, model


def _cache_bytes(index: int, default: int) -> int:
    try:
        text = Path(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size").read_text().strip()
        return int(text.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return default

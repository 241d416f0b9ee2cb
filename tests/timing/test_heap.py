"""Memory that calls free stays with the process that times them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping

import pytest

from graphnet_datasets.benchmark.executors.sample_runner import SampleRunner
from graphnet_datasets.benchmark.settings import Settings
from graphnet_datasets.timing.heap import KEPT_HEAP

PAGES_OF_A_BLOCK = 16 * 2**20 // 4096
COUNT_FAULTS = """
import ctypes, resource
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def call():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = libc.malloc(16 * 2**20)
    ctypes.memset(block, 1, 16 * 2**20)
    libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(*(call() for _ in range(4)))
"""

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="the C library is not that of GNU"
)


def faults(environment: Mapping[str, str]) -> list[int]:
    """Return the page faults of four calls that take, fill and free 16 MiB."""
    text = subprocess.run(
        [sys.executable, "-c", COUNT_FAULTS],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [int(each) for each in text.split()]


def test_a_block_that_was_freed_costs_no_more_pages() -> None:
    returned = faults({"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": "131072"})
    kept = faults(KEPT_HEAP)
    assert min(returned) > PAGES_OF_A_BLOCK / 512  # were they huge pages
    assert max(kept[1:]) < min(returned) / 2


def test_processes_that_time_calls_have_such_a_heap() -> None:
    runner = SampleRunner("cpu", Settings(num_threads=1))
    try:
        environment = runner._server("torch")._environment
    finally:
        runner.close()
    assert environment.items() >= KEPT_HEAP.items()

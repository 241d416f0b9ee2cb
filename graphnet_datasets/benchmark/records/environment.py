"""The environment of a run: factors besides sample, compiler and settings that affect results."""

from __future__ import annotations

import functools
import importlib.metadata
import math
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...inputs import DRAWS_VERSION
from .records import hash_json

PACKAGES = (
    "graphnet-datasets", "torch", "paddlepaddle", "paddlepaddle-gpu", "numpy", "triton",
    "onnxruntime", "onnxscript", "openvino", "apache-tvm",
)  # fmt: skip
"""Distributions whose versions are recorded if they are installed."""

_FLAGS = re.compile(
    r"(OMP|GOMP|KMP|MKL|OPENBLAS|DNNL|ONEDNN|TORCH|TORCHINDUCTOR|PYTORCH|TRITON|CUDA|CUDNN|CUBLAS"
    r"|NVIDIA|FLAGS|CINN|TVM|OV|MALLOC|LD_PRELOAD)(_|$)"
)
OVERRIDDEN = frozenset(
    {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS",
     "PYTORCH_NVML_BASED_CUDA_CHECK", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"}
)  # fmt: skip
"""Variables that are overridden in the processes of samples."""
_NOT_FLAGS = re.compile(
    r"CACHE|DIR|HOME|PATH|ROOT|VISIBLE_DEVICES|VERSION"
    r"|NVIDIA_(REQUIRE|DRIVER_CAPABILITIES|PRODUCT_NAME)"  # set by container images
)

_GPU_FIELDS = (
    "name", "driver_version", "vbios_version", "memory.total", "compute_cap", "power.limit",
    "clocks.max.sm", "clocks.max.mem", "persistence_mode", "compute_mode", "mig.mode.current",
)  # fmt: skip


def describe_environment(device: str = "cpu") -> dict[str, Any]:
    """Return the hardware, software and flags that determine how fast a graph runs.

    Values that change from minute to minute (clocks, load, free memory) are excluded, so that runs
    on one machine share an `environment_id`. No framework is imported.

    >>> sorted(describe_environment())
    ['cpu', 'draws', 'flags', 'gpu', 'kernel', 'num_cpus', 'packages', 'python', 'system']
    """
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cpu": _cpu(),
        "num_cpus": len(os.sched_getaffinity(0)),
        "gpu": _gpu(device) if device.startswith(("cuda", "gpu")) else None,
        "packages": _packages(),
        "draws": DRAWS_VERSION,
        "flags": {
            name: value
            for name, value in sorted(os.environ.items())
            if _FLAGS.match(name) and not _NOT_FLAGS.search(name) and name not in OVERRIDDEN
        },
    }


def environment_id(environment: Mapping[str, Any]) -> str:
    """Return the hash that identifies runs in the same environment."""
    return hash_json(environment)


def physical_gpu(device: str) -> str:
    """Return the driver's index or UUID of a GPU, which `CUDA_VISIBLE_DEVICES` may renumber.

    >>> import unittest.mock
    >>> with unittest.mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "3,5"}):
    ...     physical_gpu("cuda:1")
    '5'
    """
    index = device.partition(":")[2] or "0"
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    if int(index) < len(visible) and visible[int(index)]:
        return visible[int(index)]
    return index


def gpu_memory_bytes(environment: Mapping[str, Any]) -> float:
    """Return nine tenths of the memory of an environment's GPU, or infinity if it is unknown.

    >>> gpu_memory_bytes({"gpu": {"memory.total": "100 MiB"}}) / 2**20
    90.0
    """
    size = re.fullmatch(r"(\d+) MiB", (environment["gpu"] or {}).get("memory.total", ""))
    return 0.9 * int(size[1]) * 2**20 if size else math.inf


@functools.cache
def _cpu() -> dict[str, Any]:
    fields: dict[str, str] = {}
    for line in _read("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    return {
        "model": fields["model name"] if "model name" in fields else platform.processor(),
        "instructions": sorted(flag for flag in flags if flag.startswith(("avx", "amx", "sve"))),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip(),
        "turbo_off": _read("/sys/devices/system/cpu/intel_pstate/no_turbo").strip(),
    }


def _packages() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _gpu(device: str) -> dict[str, str] | None:
    """Query the driver with its command-line tool, which creates no context on the device."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command = [
        tool, f"--id={physical_gpu(device)}", f"--query-gpu={','.join(_GPU_FIELDS)}",
        "--format=csv,noheader",
    ]  # fmt: skip
    try:
        answer = subprocess.run(  # noqa: S603 (the driver's own tool, no shell)
            command, capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    values = [value.strip() for value in answer.strip().split(",")]
    return dict(zip(_GPU_FIELDS, values, strict=False))


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""

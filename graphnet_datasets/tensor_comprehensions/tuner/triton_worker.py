"""Worker process that compiles and runs Triton candidates on a GPU, each in a fork."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...isolation import Reporter
from ..language.types import SCALAR_TYPES
from ..triton import Launch
from ..triton.loading import compile_triton
from .measure_worker import measure


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Compile a candidate, compare its outputs with the expected outputs, and time it."""
    os.environ["TRITON_CACHE_DIR"] = str(directory / "triton")
    from triton.runtime import driver  # pyright: ignore[reportMissingImports]

    device = torch.device(payload["device"])
    torch.cuda.set_device(device)
    launches = [
        Launch(**{**launch, "arguments": tuple(launch["arguments"]), "grid": tuple(launch["grid"])})
        for launch in payload["launches"]
    ]
    types = {name: SCALAR_TYPES[kind] for name, kind in payload["types"].items()}
    target = driver.active.get_current_target()
    kernels = compile_triton(payload["source"], launches, types, target)
    tensors: dict[str, torch.Tensor] = {}
    outputs = []
    for entry in payload["tensors"]:
        if entry["file"]:
            array = np.load(entry["file"], allow_pickle=False)
        else:
            array = np.zeros(entry["shape"], entry["dtype"])
        steps = zip(entry["shape"], entry["strides"], strict=True)
        extent = 1 + sum((size - 1) * step for size, step in steps) if array.size else 0
        memory = np.zeros(extent, array.dtype)
        strides = [stride * array.itemsize for stride in entry["strides"]]
        np.lib.stride_tricks.as_strided(memory, entry["shape"], strides)[...] = array
        # Bytes, because torch lacks operators for some types, and NumPy lacks bfloat16.
        tensors[entry["name"]] = torch.from_numpy(memory.view(np.uint8)).to(device)
        if entry["role"] == "output":
            outputs.append(entry)
    for name, count in payload["partials"].items():
        memory = torch.empty(count * types[name].itemsize, dtype=torch.uint8, device=device)
        tensors[name] = memory
    calls = [
        (kernel[(*launch.grid, 1)], [tensors[name].data_ptr() for name in launch.arguments])
        for kernel, launch in zip(kernels, launches, strict=True)
    ]

    def run_ms() -> float:
        stream = torch.cuda.current_stream().cuda_stream
        torch.cuda.synchronize()
        start = time.perf_counter()
        for run, addresses in calls:
            run(*addresses, stream=stream)
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3

    def read() -> list[tuple[dict[str, Any], Any]]:
        return [
            (entry, tensors[entry["name"]].cpu().numpy().view(entry["dtype"])) for entry in outputs
        ]

    measure(payload, reporter, run_ms, read)

"""Measure how fast a device draws weights in its own memory, beside the host and the way from it.

    python benchmarks/device_draws.py --device cuda

One JSON line per figure: GB of elements per second, the best of five.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import torch

from graphnet_datasets.frameworks.torch.device_draws import draw_normals, draws_on
from graphnet_datasets.frameworks.torch.tensors import dtype_of, make_tensor
from graphnet_datasets.inputs import find_normals
from graphnet_datasets.sample import Input, Sample, Statistics, Value


def best(call: Callable[[], object], device: torch.device, repeats: int = 5) -> float:
    """Return the seconds of the quickest call, with what it started on the device."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def figures(dtype: str, num_elements: int, device: torch.device) -> dict[str, float]:
    """Return the GB per second of one dtype.

    Raises:
        SystemExit: so few elements are made in the host's memory.
        AssertionError: the device draws other bits than the host.
    """
    statistics = Statistics(0.0, 0.02, -0.08, 0.08)
    weight = Input("parameter", Value(dtype, (num_elements,)), statistics=statistics)
    sample = Sample("benchmark/weight", "torch", "other", (weight,), (), ())
    found = find_normals(sample, 0)
    if found is None:
        raise SystemExit("A tensor of so few elements is made in the host's memory.")
    normals, kind = found[0], dtype_of(dtype)
    host = make_tensor(sample, 0)
    if not torch.equal(draw_normals(normals, kind, device).cpu(), host):
        raise AssertionError(f"{dtype}: the device draws other elements than the host")
    seconds = {
        "on_device": best(lambda: draw_normals(normals, kind, device), device),
        "on_host": best(lambda: make_tensor(sample, 0), torch.device("cpu")),
        "copied": best(lambda: host.to(device, copy=True), device),
    }
    return {name: round(host.nbytes / each / 1e9, 1) for name, each in seconds.items()}


def main() -> None:
    """Measure each dtype and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--elements", type=int, default=2**30)
    options = parser.parse_args()
    device = torch.device(options.device)
    name = torch.cuda.get_device_name(device) if draws_on(device) else str(device)
    torch.set_num_threads(1)
    for dtype in ("float32", "bfloat16", "float16"):
        for figure, value in figures(dtype, options.elements, device).items():
            told = {"benchmark": "device_draws", "figure": f"{figure}_gb_per_s", "dtype": dtype}
            print(json.dumps({**told, "value": value, "device": name}))


if __name__ == "__main__":
    main()

"""How fast inputs are made: `make_array` against `torch.randn`, one core, warm memory.

    python benchmarks/inputs.py [MEGABYTES]

Prints one JSON object per dtype: GB per second of processor time into memory that the process had
before (below 32 MiB the allocator hands back the block of the tensor before) and, beside it, that
of `torch.randn` for the same number of elements in the same run; the best of several calls each.
`new_memory_gb_per_s` is that of a tensor of 64 MiB, whose pages the kernel clears first.
`weights_gb_per_s` is that of `make_inputs` of a model of 300 weights with 147,456 elements each,
and `apart_gb_per_s` the same where each weight has memory of its own, as `make_array` gives it.
`without_torch` is what is rounded by NumPy alone, as in a process that has not imported torch.
Statistics are those of a typical weight: a mean, a standard deviation and bounds that cut off the
tails.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Callable

import torch

from graphnet_datasets.frameworks.torch import tensors
from graphnet_datasets.inputs import encoding, make_array, prepare_blocks
from graphnet_datasets.sample import Input, Sample, Statistics, Value
from graphnet_datasets.sample.vocabulary import ITEM_SIZE_BYTES

REPEATS = 9
DTYPES = ("float32", "float16", "bfloat16", "float64", "complex64", "int64", "bool")
NEW_BYTES = 64 * 2**20
RANDN_DTYPES = {"float32", "float16", "bfloat16", "float64", "complex64"}


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of the quickest call; the first two touch the memory anew."""
    times = []
    for _ in range(REPEATS + 2):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times[2:])


def make_sample(dtype: str, size: int) -> Sample:
    """Return a sample with one input of so many elements."""
    recorded = Statistics(0.01, 0.2, -1.0, 1.0) if dtype != "bool" else Statistics(0.3, 0.46)
    each = Input("parameter", Value(dtype, (size,)), statistics=recorded)
    return Sample("benchmark/inputs", "torch", "other", (each,), (), ())


def print_weights(dtype: str) -> None:
    """Print how fast the weights of a model are made, in memory they share and that of each."""
    sample = make_sample(dtype, 147_456)
    sample = dataclasses.replace(sample, inputs=sample.inputs * 300)
    num_bytes = 300 * 147_456 * ITEM_SIZE_BYTES[dtype]
    packed_on = tensors.packed_on
    figures = {}
    for name, way in {"weights": packed_on, "apart": contextlib.nullcontext}.items():
        tensors.packed_on = way  # type: ignore[assignment]
        took_s = seconds(lambda: tensors.make_inputs(sample))
        figures[f"{name}_gb_per_s"] = num_bytes / took_s / 1e9
    tensors.packed_on = packed_on
    print(json.dumps({"what": "make_inputs", "dtype": dtype, **figures}), flush=True)


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    torch.set_num_threads(1)
    started = time.perf_counter()
    prepare_blocks()
    print(json.dumps({"what": "prepare_blocks", "ms": 1e3 * (time.perf_counter() - started)}))
    # First of all: once larger arrays were freed, the allocator keeps memory that has its pages.
    for dtype in ("float32", "float16", "bfloat16"):
        print_weights(dtype)
    for dtype in DTYPES:
        size = megabytes * 2**20 // ITEM_SIZE_BYTES[dtype]
        sample = make_sample(dtype, size)
        large = make_sample(dtype, NEW_BYTES // ITEM_SIZE_BYTES[dtype])
        num_bytes = size * ITEM_SIZE_BYTES[dtype]
        figure = {
            "what": "make_array",
            "dtype": dtype,
            "gb_per_s": num_bytes / seconds(lambda sample=sample: make_array(sample, 0)) / 1e9,
            "new_memory_gb_per_s": NEW_BYTES / seconds(lambda of=large: make_array(of, 0)) / 1e9,
        }
        if dtype in RANDN_DTYPES:
            torch_dtype = getattr(torch, dtype)
            randn_s = seconds(lambda size=size, kind=torch_dtype: torch.randn(size, dtype=kind))
            figure["torch_randn_gb_per_s"] = num_bytes / randn_s / 1e9
            figure["times_faster"] = figure["gb_per_s"] / figure["torch_randn_gb_per_s"]
        if dtype in ("float16", "bfloat16"):
            converter, encoding.CONVERTER = encoding.CONVERTER, None
            took_s = seconds(lambda sample=sample: make_array(sample, 0))
            figure["without_torch_gb_per_s"] = num_bytes / took_s / 1e9
            encoding.CONVERTER = converter
        print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()

"""What keeping the ONNX exporter's table of operators saves for each graph.

    python benchmarks/onnx_export.py [ID ...]

Compiles each graph for ONNX Runtime in turns with the table made anew, as `torch.onnx.export` does,
and kept. Prints one JSON line a graph: the least seconds of processor time of either, one thread.
"""

from __future__ import annotations

import importlib
import json
import sys
import time

import torch

from graphnet_datasets import Sample, load_dataset, make_inputs, materialize
from graphnet_datasets.compilers.onnxruntime import OnnxRuntime

REPEATS = 3


def main() -> None:
    """Compile each graph a few times either way."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    kind = importlib.import_module("torch.onnx._internal.exporter._registration").ONNXRegistry
    anew = vars(kind)["from_torchlib"]
    OnnxRuntime.prepare()
    kept = vars(kind)["from_torchlib"]
    for name in sys.argv[1:] or ["torch/expert-language-model", "diffusers/UNet1DModel"]:
        splits = load_dataset("graphnet", "all", filters=[("id", "=", name)])
        sample = Sample.from_row(next(row for split in splits.values() for row in split))
        module = materialize(sample, weights="parameters")
        inputs = make_inputs(sample, weights="parameters")
        took: dict[str, list[float]] = {"anew": [], "kept": []}
        for _ in range(REPEATS):
            for way, table in (("anew", anew), ("kept", kept)):
                kind.from_torchlib = table
                started_s = time.process_time()
                OnnxRuntime({}).compile(module, inputs)
                took[way].append(time.process_time() - started_s)
        figures = {f"{way}_cpu_s": round(min(times), 3) for way, times in took.items()}
        print(json.dumps({"benchmark": "onnx_export", "sample": name, **figures}), flush=True)


if __name__ == "__main__":
    main()

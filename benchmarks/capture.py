"""Capture of a 7-billion-parameter decoder that has no weights in memory: time and memory.

    python benchmarks/capture.py

Prints one JSON line; times leave out the imports.
"""

from __future__ import annotations

import json
import resource
import time

import torch
import transformers

from graphnet_datasets import extract
from graphnet_datasets.extraction import without_weights


def main() -> None:
    config = transformers.LlamaConfig(use_cache=False)
    start, start_cpu = time.perf_counter(), time.process_time()
    with without_weights():
        model = transformers.LlamaForCausalLM(config).eval()
    captured = extract(name="benchmark/llama-7b", task="nlp", warm_up=False)(model)
    captured(input_ids=torch.randint(0, config.vocab_size, (1, 128)))
    (sample,) = captured.samples
    figures = {
        "benchmark": "capture_without_weights",
        "num_params": sample.num_params,
        "num_ops": sample.num_ops,
        "wall_s": round(time.perf_counter() - start, 2),
        "cpu_s": round(time.process_time() - start_cpu, 2),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

"""Preparation of GraphNet samples, compared with executing the text of their directories.

    python benchmarks/beside_exec.py [DIRECTORY OR ARCHIVE OF GRAPHNET SAMPLES] [--samples 40]
                                     [--max-gb 0.5] [--passes 2] [--upstream CHECKOUT]

A GraphNet directory is Python: its `model.py` is executed for the class that computes the graph,
and its `*_meta.py` for the shape, mean and standard deviation of each tensor, which is drawn as
`randn * std * 0.2 + mean`. A separate process does this, which does not import this library. It
executes the text of the samples, so pass only directories that you trust. This process materializes
the same samples and draws their inputs and weights without executing text.

Prints one JSON object per side, one thread each: milliseconds of CPU time of `runnable` (something
that can be called; median and 90th percentile) and seconds of all `inputs` and weights together; of
this library also `with_graph`, the same with the graph and text of `torch.fx`, which are made when
a second call or a compiler asks for them. Each side goes over the samples `--passes` times.
`runnable` is of the first, where no answer is known yet, `inputs` of the last;
`inputs_of_passes_s` has all of them. In the first the kernel clears each page that is new to the
process, and a virtual machine finds it first, which may take longer than all the drawing. Samples
whose inputs take more than `--max-gb` are left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import torch
from import_directories import folders_of, open_samples

from graphnet_datasets import make_inputs, materialize, read_directory
from graphnet_datasets.inputs import prepare_blocks

LIMIT = 2**50
EXECUTING = """
import json, sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)

def executed(path):
    namespace = {"__name__": "sample"}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    return namespace

def drawn(each):
    said = {name: getattr(each, name, None) for name in ("data", "mean", "std")}
    dtype = getattr(torch, each.dtype.removeprefix("torch."))
    if said["data"] is not None:
        return torch.tensor(said["data"], dtype=dtype).reshape(each.shape)
    if not (dtype.is_floating_point or dtype.is_complex):
        return torch.randint(0, 2, each.shape).to(dtype)
    made = torch.randn(each.shape).to(dtype)
    return made * (said["std"] or 0.0) * 0.2 + (said["mean"] or 0.0)

for folder in map(Path, json.load(sys.stdin)):
    started = time.process_time()
    module = executed(folder / "model.py")["GraphModule"]()
    ready = time.process_time()
    tensors = [
        drawn(each)
        for name in ("input_meta.py", "weight_meta.py")
        for each in executed(folder / name).values()
        if isinstance(each, type) and hasattr(each, "dtype")
    ]
    print(json.dumps([1e3 * (ready - started), time.process_time() - ready]), flush=True)
    del tensors, module
"""

UPSTREAM = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import torch
from graph_net.torch import run_model, utils
torch.set_num_threads(1)

for folder in json.load(sys.stdin):
    started = time.process_time()
    module = run_model.load_class_from_file(f"{folder}/model.py", class_name="GraphModule")()
    ready = time.process_time()
    weights = utils.load_converted_from_text(folder)["weight_info"]
    for each in weights.values():
        each["info"]["device"] = "cpu"
    tensors = {name: utils.replay_tensor(each) for name, each in weights.items()}
    print(json.dumps([1e3 * (ready - started), time.process_time() - ready]), flush=True)
    del tensors, module, weights
"""


def main() -> None:
    """Measure both sides and print JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples_at", nargs="*")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--max-gb", type=float, default=0.5)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--upstream", help="a checkout of PaddlePaddle/GraphNet, to run its code")
    options = parser.parse_args()
    torch.set_num_threads(1)
    prepare_blocks()
    with open_samples(options.samples_at) as root:
        found = folders_of(root / "samples")
        folders, read = [], []
        for folder in found[:: max(1, len(found) // options.samples)]:
            samples = read_directory(folder)
            if len(samples) == 1 and samples[0].input_bytes <= options.max_gb * 2**30:
                folders.append(folder)
                read.append(samples[0])
        folders, read = folders[: options.samples], read[: options.samples]
        materialize(min(read, key=lambda sample: sample.input_bytes))
        ours = []
        for sample in read * options.passes:
            started = time.process_time()
            module = materialize(sample, memory_limit_bytes=LIMIT)
            ready = time.process_time()
            tensors = make_inputs(sample)
            drawn = time.process_time()
            _ = module.graph
            graph = time.process_time() - drawn
            ours.append((1e3 * (ready - started), drawn - ready, 1e3 * (ready - started + graph)))
            del module, tensors
        names = json.dumps([str(folder) for folder in folders] * options.passes)
        beside = {"executing": _run(EXECUTING, names)}
        if options.upstream:
            beside["upstream"] = _run(UPSTREAM, names, options.upstream)
    for side, times in {"this library": ours, **beside}.items():
        _report(side, times, options.passes)


def _run(code: str, names: str, *arguments: str) -> list[list[float]]:
    """Run code in a separate process and return the numbers on each line that it prints."""
    done = subprocess.run(  # noqa: S603 - our own interpreter; what it executes was chosen
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        input=names,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _report(side: str, times: Sequence[Sequence[float]], num_passes: int) -> None:
    count = len(times) // num_passes
    passes = [times[place * count : (place + 1) * count] for place in range(num_passes)]
    ready_ms, graph_ms = ([each[place] for each in passes[0]] for place in (0, -1))
    figures = {
        "benchmark": "beside_exec",
        "side": side,
        "samples": count,
        "runnable_median_ms": round(statistics.median(ready_ms), 1),
        "runnable_p90_ms": round(statistics.quantiles(ready_ms, n=10)[-1], 1),
        "inputs_s": round(sum(each[1] for each in passes[-1]), 2),
        "inputs_of_passes_s": [round(sum(each[1] for each in part), 2) for part in passes],
    }
    if side == "this library":
        figures["with_graph_median_ms"] = round(statistics.median(graph_ms), 1)
        figures["with_graph_p90_ms"] = round(statistics.quantiles(graph_ms, n=10)[-1], 1)
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()

"""Kernels of the paper against torch eager, and inductor if asked for, one JSON line a figure.

    python benchmarks/tensor_comprehensions.py                       # every kernel, 2 threads and 1
    python benchmarks/tensor_comprehensions.py --kernel gconv --threads 1
    python benchmarks/tensor_comprehensions.py --inductor --tune 60  # against inductor, and tuned
    python benchmarks/tensor_comprehensions.py --gpu --gpu-tune 60   # on a GPU: NVRTC and Triton
    python benchmarks/tensor_comprehensions.py --table lines.jsonl   # kept lines as Markdown

Each line has the medians and minima of interleaved calls, their ratio (of medians), the largest
error relative to the largest value of each output of a float64 reference, and the seconds from the
text to the first result. `untuned` is what the model chooses, `tuned` what a search of so many
seconds found; searching is part of no time. Our results are allocated beforehand, torch's by its
own allocator. A last line has the geometric means.

On a GPU, every arm is the public call, which allocates its results, timed by events of the device.
`--dtype` gives the inputs 16 bits; NVRTC has no such types, so its arm is then missing.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tc import paper
from tc.eager import EAGER, Tensors

from graphnet_datasets.tensor_comprehensions import define
from graphnet_datasets.tensor_comprehensions.codegen.machine import this_machine
from graphnet_datasets.tensor_comprehensions.compiling import compile_instance
from graphnet_datasets.tensor_comprehensions.kernel import Kernel
from graphnet_datasets.tensor_comprehensions.language import check, instantiate
from graphnet_datasets.tensor_comprehensions.options import Options
from graphnet_datasets.tensor_comprehensions.tuner import TunerConfig, autotune

LARGE_BYTES = 300 << 20
"""Above this a float64 reference of the whole would take too much memory; float32's is taken."""


def inputs_of(kernel: paper.PaperKernel) -> list[np.ndarray]:
    """Return seeded inputs: normal values, or subscripts below their limits."""
    generator, limits = np.random.default_rng(0), dict(kernel.gathers)
    return [
        generator.integers(0, limits[place], shape)
        if place in limits
        else generator.standard_normal(shape, np.float32)
        for place, shape in enumerate(kernel.shapes)
    ]


def error_of(outputs: Sequence[np.ndarray], wanted: Tensors) -> float:
    """Return the largest difference relative to the largest value of its output."""
    worst = 0.0
    for got, want in zip(outputs, wanted, strict=False):
        reference = want.numpy()
        difference = float(np.abs(got - reference).max())
        worst = max(worst, difference / max(float(np.abs(reference).max()), 1e-30))
    return worst


def timed(arms: dict[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Call the arms in turn for so many seconds, 5 times at least; return their times in ms."""
    times: dict[str, list[float]] = {name: [] for name in arms}
    for call in arms.values():
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < 5:
        for name, call in arms.items():
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1e3)
    return times


def bound(kernel: Kernel, inputs: Sequence[np.ndarray]) -> tuple[Callable[[], int], list[Any]]:
    """Return a call of a kernel on fixed memory, and the outputs that it writes."""
    outputs = [np.empty(each.shape, each.dtype.name) for each in kernel.instance.outputs]
    arrays = (*inputs, *outputs)
    addresses = [each.ctypes.data for each in arrays]

    def call() -> int:
        kernel.launch(addresses)
        return len(arrays)  # which keeps the memory alive for as long as the call

    return call, outputs


def measure(
    kernel: paper.PaperKernel, threads: int, arguments: argparse.Namespace
) -> dict[str, float]:
    """Print the figures of one kernel and return the ratios by arm."""
    torch.set_num_threads(threads)
    start = time.perf_counter()
    instance = instantiate(check(kernel.source)[0], kernel.shapes)
    compiled = compile_instance(instance, Options(threads=threads))
    made_s = time.perf_counter() - start
    inputs = inputs_of(kernel)
    call, outputs = bound(compiled, inputs)
    start = time.perf_counter()
    call()
    made_s += time.perf_counter() - start
    tensors = [torch.from_numpy(each) for each in inputs]
    eager = EAGER[kernel.name]
    is_large = sum(each.nbytes for each in inputs) > LARGE_BYTES
    wide = [
        each.double() if each.is_floating_point() and not is_large else each for each in tensors
    ]
    error = error_of(outputs, eager(*wide))
    del wide
    arms: dict[str, Callable[[], Any]] = {"eager": lambda: eager(*tensors), "untuned": call}
    line: dict[str, Any] = {"kernel": kernel.name, "size": kernel.size, "threads": threads}
    line |= {"error": error, "reference": "float32" if is_large else "float64"}
    line |= {"first_result_s": round(made_s, 3), "compile_s": round(compiled.seconds["compile"], 3)}
    if arguments.tune:
        config = TunerConfig(generations=1000, budget_s=arguments.tune)
        found = autotune(instance, inputs, start=[Options(threads=threads)], config=config)
        arms["tuned"] = bound(compile_instance(instance, found.options), inputs)[0]
        line |= {"tuning_s": round(found.seconds, 1), "num_candidates": len(found.candidates)}
    if arguments.inductor:
        torch.compiler.reset()
        optimized = torch.compile(eager, dynamic=False)
        arms["inductor"] = lambda: optimized(*tensors)
    with torch.no_grad():
        times = timed(arms, arguments.seconds)
    medians = {name: statistics.median(each) for name, each in times.items()}
    ratios = {
        f"{name}_vs_{other}": medians[other] / medians[name]
        for name in ("untuned", "tuned")
        for other in ("eager", "inductor")
        if name in medians and other in medians
    }
    line["median_ms"] = {name: round(each, 5) for name, each in medians.items()}
    line["least_ms"] = {name: round(min(each), 5) for name, each in times.items()}
    line["num_runs"] = len(times["eager"])
    print(json.dumps(line | {name: round(each, 3) for name, each in ratios.items()}), flush=True)
    return ratios


def measure_gpu(kernel: paper.PaperKernel, arguments: argparse.Namespace) -> dict[str, float]:
    """Print the figures of one kernel on a GPU and return the ratios to eager by arm."""
    source = paper.in_dtype(kernel.source, arguments.dtype or "float")
    definition, eager = define(source), EAGER[kernel.name]
    name = definition.names[0]
    tensors = [torch.from_numpy(array).cuda() for array in inputs_of(kernel)]
    if arguments.dtype:
        kind = getattr(torch, arguments.dtype)
        tensors = [tensor.to(kind) if tensor.is_floating_point() else tensor for tensor in tensors]
    triton = Options().with_triton()
    options = {"triton": triton, "triton_tf32": triton.with_triton(input_precision="tf32")}
    if arguments.dtype:
        del options["triton_tf32"]
    else:
        options["nvrtc"] = Options()
    line: dict[str, Any] = {"kernel": kernel.name, "size": kernel.size, "dtype": arguments.dtype}
    if arguments.gpu_tune:
        config = TunerConfig(generations=1000, budget_s=arguments.gpu_tune)
        options["triton_tuned"] = definition.autotune(name, *tensors, config=config)
        line["tuned_options"] = options["triton_tuned"].to_dict()["triton"]
    is_large = sum(tensor.nbytes for tensor in tensors) > LARGE_BYTES
    wide = [
        tensor.double() if tensor.is_floating_point() and not is_large else tensor
        for tensor in tensors
    ]
    wanted = [result.cpu() for result in eager(*wide)]
    del wide
    arms: dict[str, Callable[[], Any]] = {"eager": lambda: eager(*tensors)}
    for arm, chosen in options.items():
        start = time.perf_counter()
        results = definition(name, *tensors, options=chosen)
        torch.cuda.synchronize()
        line[f"{arm}_first_result_s"] = round(time.perf_counter() - start, 3)
        results = results if isinstance(results, tuple) else (results,)
        line[f"{arm}_error"] = error_of(
            [result.double().cpu().numpy() for result in results], wanted
        )
        arms[arm] = functools.partial(definition, name, *tensors, options=chosen)
    times = event_times(arms)
    with tf32_allowed():
        times["eager_tf32"] = event_times({"eager": arms["eager"]})["eager"]
    medians = {arm: statistics.median(samples) for arm, samples in times.items()}
    line["median_ms"] = {arm: round(median, 5) for arm, median in medians.items()}
    ratios = {f"{arm}_vs_eager": medians["eager"] / medians[arm] for arm in options}
    print(json.dumps(line | {arm: round(ratio, 3) for arm, ratio in ratios.items()}), flush=True)
    return ratios


@contextlib.contextmanager
def tf32_allowed() -> Iterator[None]:
    """Let torch compute products of float32 in TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


def event_times(arms: dict[str, Callable[[], Any]], num_runs: int = 20) -> dict[str, list[float]]:
    """Call the arms in turn and return their times in ms by events of the device."""
    times: dict[str, list[float]] = {arm: [] for arm in arms}
    for run in range(num_runs + 3):
        for arm, call in arms.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            if run >= 3:
                times[arm].append(begin.elapsed_time(end))
    return times


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Return kept lines as a table in Markdown, the numbers of threads side by side."""
    kernels = [each for each in lines if "kernel" in each]
    threads = sorted({each["threads"] for each in kernels})
    columns = {"untuned_vs_eager": "untuned ÷ eager", "tuned_vs_eager": "tuned ÷ eager"}
    columns |= {"tuned_vs_inductor": "tuned ÷ inductor"}
    heads = [f"{text}, {each}" for each in threads for text in ("eager ms", *columns.values())]
    rows = [["kernel", "sizes", *heads, "error"], ["---"] * (len(heads) + 3)]
    by_key = {(each["kernel"], each["size"], each["threads"]): each for each in kernels}
    for name, size in dict.fromkeys((each["kernel"], each["size"]) for each in kernels):
        row, errors = [name, size], []
        for count in threads:
            line = by_key.get((name, size, count), {})
            row.append(f"{line['median_ms']['eager']:.3g}" if line else "")
            row += [f"{line[each]:.2f}" if each in line else "" for each in columns]
            errors.append(line.get("error", 0.0))
        rows.append([*row, f"{max(errors):.1e}"])
    last = ["geometric mean", ""]
    summaries = {each["threads"]: each for each in lines if "summary" in each}
    for count in threads:
        means = [summaries.get(count, {}).get(each, {}) for each in columns]
        last += ["", *(f"{each['geometric_mean']:.2f}" if each else "" for each in means)]
    return "\n".join(f"| {' | '.join(each)} |" for each in (*rows, [*last, ""]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernel", action="append", help="part of a label, such as `tmm 128,256`")
    parser.add_argument("--threads", type=int, action="append", help="default: 2 and 1")
    parser.add_argument("--seconds", type=float, default=2.0, help="of timing for each kernel")
    parser.add_argument("--tune", type=float, default=0.0, help="seconds of search for each kernel")
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--gpu", action="store_true", help="measure on a GPU")
    parser.add_argument("--gpu-tune", type=float, default=0.0, help="seconds of search on a GPU")
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), help="of inputs on a GPU")
    parser.add_argument("--embeddings", type=int, default=100_000, help="rows of a look-up table")
    parser.add_argument("--table", nargs="+", type=Path, metavar="FILE", help="of kept lines")
    arguments = parser.parse_args()
    if arguments.table:
        texts = (each.read_text(encoding="utf-8").splitlines() for each in arguments.table)
        print(table([json.loads(line) for lines in texts for line in lines]))
        return
    warnings.simplefilter("ignore")  # that subscripts of look-ups are not checked
    with tempfile.TemporaryDirectory() as empty:
        os.environ["XDG_CACHE_HOME"] = empty  # nothing was compiled before
        measure_all(arguments)


def measure_all(arguments: argparse.Namespace) -> None:
    """Print the figures of all kernels and their means."""
    for threads in [0] if arguments.gpu else arguments.threads or [2, 1]:
        found: dict[str, list[float]] = {}
        for kernel in paper.kernels(arguments.embeddings):
            if arguments.kernel and not any(each in kernel.label for each in arguments.kernel):
                continue
            if arguments.gpu:
                ratios_by_arm = measure_gpu(kernel, arguments)
            else:
                ratios_by_arm = measure(kernel, threads, arguments)
            for name, ratio in ratios_by_arm.items():
                found.setdefault(name, []).append(ratio)
        summary: dict[str, Any] = {"summary": "tensor_comprehensions", "threads": threads}
        summary |= {"processor": this_machine().model, "isa": this_machine().isa}
        if arguments.gpu:
            summary |= {"gpu": torch.cuda.get_device_name()}
        for name, ratios in found.items():
            summary[name] = {
                "geometric_mean": round(math.exp(statistics.fmean(map(math.log, ratios))), 3),
                "at_least_1": sum(each >= 1 for each in ratios),
                "least": round(min(ratios), 3),
                "num_kernels": len(ratios),
            }
        print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    main()

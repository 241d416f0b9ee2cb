"""Behaviour of graphs on inputs drawn from recorded and from calibrated statistics.

    nice -n 19 python benchmarks/calibration.py RESULTS.jsonl [DIRECTORY OR ARCHIVE OF SAMPLES, OR
        A DATASET]
        [--embedded] [--again] [--every 1] [--framework torch] [--limit-gb 2] [--timeout 300]
        [--summary]

Each graph runs under eager in a separate process: on recorded statistics, then on calibrated
statistics (those of its row, or new ones with --again), on the draws of seeds 0, 11 and 12 (mode
`fresh`), and both in float64. A JSON line per graph is appended to RESULTS.jsonl. Graphs that are
already in the file are skipped, so an interrupted sweep continues. Graphs whose inputs exceed
--limit-gb are listed as skipped. At the end, or only with --summary, prints shares as JSON lines:
graphs with only finite outputs, graphs with the largest |output| in [1e-3, 1e4], and float32 graphs
on which eager agrees with float64 at t = -4 (in the tolerances of each output's dtype).
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import itertools
import json
import math
import multiprocessing
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from import_directories import folders_of, open_samples

from graphnet_datasets import Sample, calibrate, load_dataset, make_inputs, materialize
from graphnet_datasets.atomic import append_json
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.directory import read_directory
from graphnet_datasets.frameworks import module
from graphnet_datasets.frameworks.outputs import leaves
from graphnet_datasets.frameworks.runtime import make_runtime
from graphnet_datasets.inputs import prepare_blocks
from graphnet_datasets.scores.tolerance import oracle_t

SEEDS = (0, 11, 12)
LEAST, MOST, TOLERANCE = 1e-3, 1e4, -4.0


def main() -> None:
    """Run what is left, then print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("samples", nargs="*")
    parser.add_argument("--embedded", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="take one graph in so many")
    parser.add_argument("--again", action="store_true", help="also what its row has calibrated")
    parser.add_argument("--limit-gb", type=float, default=2.0)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--framework", choices=("torch", "paddle"))
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    frameworks = [options.framework] if options.framework else ["torch", "paddle"]
    if not options.summary and len(frameworks) > 1:
        for name in frameworks:  # never both in one process
            command = [sys.executable, __file__, *sys.argv[1:], "--framework", name]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - this file
    elif not options.summary:
        known = {line["key"] for line in read_journal(options.results)}
        make_runtime(options.framework, "cpu", 1)  # imported once, before the forks
        prepare_blocks()
        for origin, sample in itertools.islice(_samples(options), 0, None, options.every):
            key = f"{origin}:{sample.framework}:{sample.id}"
            if key in known or options.framework != sample.framework:
                continue
            line = {"key": key, "framework": sample.framework, "num_ops": sample.num_ops}
            line |= _in_process(sample, options)
            append_json(options.results, line)
    for line in _summarise(read_journal(options.results)):
        print(json.dumps(line))


def _samples(options: argparse.Namespace) -> Iterator[tuple[str, Sample]]:
    if options.embedded:
        for rows in load_dataset("graphnet", "all").values():
            for row in rows:
                yield "embedded", Sample.from_row(row)
        return
    if options.samples and any(Path(options.samples[0]).glob("*/*.parquet")):
        parts = list(load_dataset(options.samples[0], "all").values())
        frameworks = [list(part["framework"]) for part in parts]
        places = sorted(
            (size, index, place)
            for index, part in enumerate(parts)
            for place, size in enumerate(part["input_bytes"])
            if frameworks[index][place] == options.framework
        )
        for _, index, place in places:
            yield "dataset", Sample.from_row(parts[index][place])
        return
    with open_samples(options.samples) as root:
        for name in ("samples", "paddle_samples"):
            samples = [
                each for folder in folders_of(root / name) for each in read_directory(folder)
            ]
            # The small ones first, so that what is stopped early has many.
            for sample in sorted(samples, key=lambda each: each.input_bytes):
                yield "upstream", sample


def _in_process(sample: Sample, options: argparse.Namespace) -> dict[str, Any]:
    if sample.input_bytes > options.limit_gb * 2**30:
        return {"status": "skipped", "input_gb": round(sample.input_bytes / 2**30, 2)}
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=_work, args=(sample, sender, options.limit_gb, options.again))
    started = time.monotonic()
    worker.start()
    sender.close()
    found: dict[str, Any] = {"status": "timeout"}
    try:
        if receiver.poll(options.timeout):
            found = receiver.recv()
    except EOFError:
        found = {"status": "died"}
    worker.kill()
    worker.join()
    return {**found, "wall_s": round(time.monotonic() - started, 1)}


def _work(sample: Sample, sender: Any, limit_gb: float, is_again: bool) -> None:
    warnings.simplefilter("ignore")
    limit = int(limit_gb * 4 * 2**30) + 8 * 2**30  # address space, of which little is touched
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        sender.send(_measure(sample, is_again))
    except Exception as error:
        sender.send({"status": "failed", "reason": f"{type(error).__name__}: {error}"[:300]})


def _measure(sample: Sample, is_again: bool) -> dict[str, Any]:
    run = materialize(sample, allow_unchecked_operators=True)
    inputs = [dataclasses.replace(each, calibrated=None) for each in sample.inputs]
    plain = dataclasses.replace(sample, inputs=tuple(inputs), calibration="")
    started = time.process_time()
    recorded = _largest(_outputs(run(**make_inputs(plain))))
    plain_s = time.process_time() - started
    started = time.process_time()
    fitted = sample
    if is_again or not sample.calibration:
        fitted = calibrate(plain, allow_unchecked_operators=True)
    calibration_s = time.process_time() - started
    sizes = [
        _largest(_outputs(run(**make_inputs(fitted, seed, "fresh" if seed else "replay"))))
        for seed in SEEDS
    ]
    eager_t = _eager_t(fitted, run)
    return {
        "status": "ok",
        "dtype": _dtype_of(sample),
        "recorded": recorded,
        "calibration": fitted.calibration,
        "num_calibrated": sum(each.calibrated is not None for each in fitted.inputs),
        "calibrated": sizes,
        "eager_t": eager_t,
        "recorded_eager_t": eager_t if fitted.inputs == plain.inputs else _eager_t(plain, run),
        "run_s": round(plain_s, 3),
        "calibration_s": round(calibration_s, 3),
    }


def _dtype_of(sample: Sample) -> str:
    """Return the dtype that most floating-point elements of the inputs have."""
    sizes: collections.Counter[str] = collections.Counter()
    for each in sample.inputs:
        if each.value.dtype and "float" in each.value.dtype:
            sizes[each.value.dtype] += max(1, math.prod(sample.shape_of(each.value) or ()))
    return sizes.most_common(1)[0][0] if sizes else ""


def _outputs(results: Any) -> list[np.ndarray]:
    """Return the floating-point outputs as float64, complex ones as they are."""
    return [wide for _, wide in _named(results)]


def _named(results: Any) -> list[tuple[str, np.ndarray]]:
    found = []
    for each in leaves(results):
        dtype = str(getattr(each, "dtype", "")).rpartition(".")[2]
        if "float" in dtype:
            wide = each.double() if hasattr(each, "double") else each.astype("float64")
            found.append((dtype, wide.detach().cpu().numpy()))
        elif "complex" in dtype:
            found.append((dtype, each.detach().cpu().resolve_conj().numpy()))
    return found


def _largest(outputs: list[np.ndarray]) -> float | str | None:
    """Return the largest |element|, `nan` or `inf` where there is one, None without elements."""
    sizes = [float(np.abs(each).max()) for each in outputs if each.size]
    if not sizes:
        return None
    largest = max(sizes, key=lambda size: float("inf") if size != size else size)
    return largest if np.isfinite(largest) else str(largest)


def _eager_t(sample: Sample, run: Any) -> float | None:
    """Return the smallest t at which eager agrees with the graph in float64, None without one."""
    arguments = [make_inputs(sample) for _ in range(2)]
    _seed(sample)
    narrow = _named(run(**arguments[0]))
    wide = {name: _widened(value) for name, value in arguments[1].items()}
    try:
        _seed(sample)
        oracle = _named(_run_wide(sample, run, wide))
    except Exception:  # an operator without float64
        return None
    if [each.shape for _, each in narrow] != [each.shape for _, each in oracle]:
        return None
    found = [
        oracle_t(one.astype(dtype if dtype in ("float32", "float16") else one.dtype), other, dtype)
        for (dtype, one), (_, other) in zip(narrow, oracle, strict=True)
        if one.size and dtype != "bfloat16"
    ]
    return max((each for each in found if each is not None), default=None)


def _seed(sample: Sample) -> None:
    make_runtime(sample.framework, "cpu", 1).seed(0)


def _widened(value: Any) -> Any:
    is_float = hasattr(value, "is_floating_point") and value.is_floating_point()
    if not is_float:
        return value
    return value.double() if hasattr(value, "double") else value.astype("float64")


def _run_wide(sample: Sample, run: Any, arguments: dict[str, Any]) -> Any:
    """Run a graph in float64; None stands for one that draws other numbers then."""
    oracle = module(sample.framework, "oracle")
    draws = module(sample.framework, "operators").draws_random_numbers
    if any(map(draws, sample.ops)):
        return None
    if sample.framework == "torch":
        import torch

        torch.set_default_dtype(torch.float64)
        try:
            return torch.fx.GraphModule(run, oracle.widen(run.graph))(**arguments)
        finally:
            torch.set_default_dtype(torch.float32)
    import paddle

    from graphnet_datasets.frameworks.paddle.plan import Plan

    plan = Plan(oracle.widen(sample), run.plan.device, is_guarded=False)
    paddle.set_default_dtype("float64")
    try:
        return plan.run([arguments[name] for name in sample.input_names])
    finally:
        paddle.set_default_dtype("float32")


def _summarise(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for framework in sorted({line["framework"] for line in lines}):
        own = [line for line in lines if line["framework"] == framework]
        done = [line for line in own if line["status"] == "ok"]
        yield {
            "framework": framework,
            "graphs": len(own),
            "status": dict(collections.Counter(line["status"] for line in own)),
            "calibration": dict(collections.Counter(line["calibration"] for line in done)),
            "skipped": [line["key"] for line in own if line["status"] == "skipped"],
        }
        cases = {"recorded": [line["recorded"] for line in done]}
        cases |= {
            f"calibrated, seed {seed}": [line["calibrated"][place] for line in done]
            for place, seed in enumerate(SEEDS)
        }
        for name, sizes in cases.items():
            real = [size for size in sizes if size is not None]
            finite = [size for size in real if not isinstance(size, str)]
            usual = [size for size in finite if LEAST <= size <= MOST]
            yield {
                "framework": framework,
                "case": name,
                "graphs": len(real),
                "non_finite": len(real) - len(finite),
                "share_in_range": round(len(usual) / max(1, len(real)), 4),
            }
        single = [line for line in done if line["dtype"] == "float32"]
        for name, key in (("recorded", "recorded_eager_t"), ("calibrated", "eager_t")):
            decided = [line[key] for line in single if line[key] is not None]
            yield {
                "framework": framework,
                "case": f"{name}, eager against float64 at t = {TOLERANCE:g}",
                "graphs": len(decided),
                "share": round(sum(t <= TOLERANCE for t in decided) / max(1, len(decided)), 4),
            }
        if done:
            ratio = [line["calibration_s"] / max(line["run_s"], 1e-3) for line in done]
            yield {
                "framework": framework,
                "case": "processor time of calibrating",
                "median_s": statistics.median(line["calibration_s"] for line in done),
                "median_times_making_inputs_and_one_run": round(statistics.median(ratio), 2),
            }


if __name__ == "__main__":
    sys.exit(main())

"""How graphs behave on drawn inputs, as recorded and calibrated.

    nice -n 19 python benchmarks/calibration.py RESULTS.jsonl [DIRECTORY OR ARCHIVE OF SAMPLES]
        [--embedded] [--limit-gb 2] [--timeout 300] [--summary]

Each graph is run in a process of its own by eager: on recorded statistics, then calibrated, on the
draws of seeds 0, 11 and 12 (mode `fresh`), and, calibrated, in float64. One JSON line a graph is
appended to RESULTS.jsonl; a graph that stands there already is not run again, so an interrupted
sweep goes on. Graphs whose inputs take more than --limit-gb are listed as skipped. At the end, or
with --summary alone, the shares are printed as JSON lines: graphs without a non-finite output,
with the largest |output| in [1e-3, 1e4], and where eager agrees with float64 at t = -4.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from import_directories import folders_of, open_samples

from graphnet_datasets import Sample, calibrate, load_dataset, make_inputs, materialize
from graphnet_datasets.directory import read_directory
from graphnet_datasets.scores.tolerance import min_t

SEEDS = (0, 11, 12)
LEAST, MOST, TOLERANCE = 1e-3, 1e4, -4.0


def main() -> None:
    """Run what is left, then print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("samples", nargs="*")
    parser.add_argument("--embedded", action="store_true")
    parser.add_argument("--limit-gb", type=float, default=2.0)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--framework", choices=("torch", "paddle"))
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    known = {line["key"] for line in _lines(options.results)}
    if not options.summary:
        for origin, sample in _samples(options):
            key = f"{origin}:{sample.framework}:{sample.id}"
            if key in known or options.framework not in (None, sample.framework):
                continue
            line = {"key": key, "framework": sample.framework, "num_ops": sample.num_ops}
            line |= _in_process(sample, options)
            with options.results.open("a") as file:
                file.write(json.dumps(line) + "\n")
    for line in _summarise(list(_lines(options.results))):
        print(json.dumps(line))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        for text in path.read_text().splitlines():
            yield json.loads(text)


def _samples(options: argparse.Namespace) -> Iterator[tuple[str, Sample]]:
    if options.embedded:
        for rows in load_dataset("graphnet", "all").values():
            for row in rows:
                yield "embedded", Sample.from_row(row)
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
    worker = context.Process(target=_work, args=(sample, sender, options.limit_gb))
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


def _work(sample: Sample, sender: Any, limit_gb: float) -> None:
    warnings.simplefilter("ignore")
    limit = int(limit_gb * 4 * 2**30) + 8 * 2**30  # address space, of which little is touched
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        sender.send(_measure(sample))
    except Exception as error:
        sender.send({"status": "failed", "reason": f"{type(error).__name__}: {error}"[:300]})


def _measure(sample: Sample) -> dict[str, Any]:
    if sample.framework == "torch":
        import torch

        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
    run = materialize(sample, allow_unchecked_operators=True)
    started = time.process_time()
    recorded = _largest(_outputs(run(**make_inputs(sample))))
    plain_s = time.process_time() - started
    started = time.process_time()
    fitted = calibrate(sample, allow_unchecked_operators=True)
    calibration_s = time.process_time() - started
    sizes = [
        _largest(_outputs(run(**make_inputs(fitted, seed, "fresh" if seed else "replay"))))
        for seed in SEEDS
    ]
    return {
        "status": "ok",
        "recorded": recorded,
        "calibration": fitted.calibration,
        "num_calibrated": sum(each.calibrated is not None for each in fitted.inputs),
        "calibrated": sizes,
        "eager_t": _eager_t(fitted, run) if sample.framework == "torch" else None,
        "run_s": round(plain_s, 3),
        "calibration_s": round(calibration_s, 3),
    }


def _outputs(results: Any) -> list[np.ndarray]:
    """Return the floating-point outputs as float64, complex ones as pairs."""
    found = []
    pending = [results]
    while pending:
        each = pending.pop(0)
        if isinstance(each, dict):
            pending += each.values()
        elif isinstance(each, list | tuple):
            pending += each
        elif hasattr(each, "is_floating_point") and each.is_floating_point():
            wide = each.double() if hasattr(each, "double") else each.astype("float64")
            found.append(wide.detach().cpu().numpy())
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
    from graphnet_datasets.frameworks.torch.oracle import widen

    if any(node.target in ("rand", "randn", "dropout") for node in run.graph.nodes):
        return None
    import torch

    def wide(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.double() if is_float else value

    torch.manual_seed(0)
    narrow = _outputs(run(**make_inputs(sample)))
    wider = torch.fx.GraphModule(run, widen(run.graph))
    torch.set_default_dtype(torch.float64)
    try:
        torch.manual_seed(0)
        oracle = _outputs(wider(**{name: wide(x) for name, x in make_inputs(sample).items()}))
    except Exception:  # an operator without float64
        return None
    finally:
        torch.set_default_dtype(torch.float32)
    if [each.shape for each in narrow] != [each.shape for each in oracle]:
        return None
    found = [
        min_t(one.astype(np.float32), other.astype(np.float32), "float32")
        for one, other in zip(narrow, oracle, strict=True)
        if one.size
    ]
    return max(found, default=None)


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
        decided = [line["eager_t"] for line in done if line["eager_t"] is not None]
        if decided:
            yield {
                "framework": framework,
                "case": "eager against float64 at t = -4",
                "graphs": len(decided),
                "share": round(sum(t <= TOLERANCE for t in decided) / len(decided), 4),
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

"""How often the 95 % interval of eager against itself misses 1, by the real stopping rule.

    python benchmarks/aa.py [NUMBER OF COMPARISONS] [--load N] [--runs]

Each comparison times two copies of one small module as a run does (warm-up, interleaved pairs,
adaptive stop), with small budgets so that a thousand take a minute or two. With `--runs` each is a
whole run of an embedded graph under the compiler `eager`: own processes, stamps of the kernel,
judged outputs, comparison with eager alone. `--load N` keeps N processes busy beside them.

An honest interval misses in 2 to 8 % of comparisons. Of whole runs more miss: where the weights of
each arm came to lie is drawn once a process, and no pair of calls shows what it makes.

Prints one JSON object: the share that misses, what
stopped them, the geometric mean and the spread (standard deviation of the logarithm) of the
speedups, the median and 90th percentile of the interval's half width (the noise floor), the
number of pairs and the share of those that were calm, how often the kernel preempted an arm
unevenly and a baseline was doubted, and (without `--runs`) the share that two medians, timed one
arm after the other, would have called a difference of over 1 %.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from graphnet_datasets import load_dataset
from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.benchmark import Settings, TimingSettings
from graphnet_datasets.benchmark.executors.sample_runner import (
    CandidateCompiler,
    SampleJob,
    SampleRunner,
)
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.timing.clocks import WallClock
from graphnet_datasets.timing.disturbance import paired_speedup
from graphnet_datasets.timing.pairs import measure_pairs

SETTINGS = {"warmup_s": 0.005, "min_warmup_calls": 3, "budget_s": 0.15, "max_pairs": 400}


@contextlib.contextmanager
def busy(num_processes: int) -> Iterator[None]:
    """Keep as many processes busy meanwhile."""
    code = "import os\nwhile os.getppid() == %d: sum(range(10**6))" % os.getpid()  # noqa: UP031
    burners = [
        subprocess.Popen([sys.executable, "-c", code])  # noqa: S603 (our own interpreter)
        for _ in range(num_processes)
    ]
    try:
        time.sleep(0.5 if burners else 0)
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def compare_in_process(num_comparisons: int) -> Iterator[dict[str, Any]]:
    """Yield the figures of comparisons of one small module with itself in this process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 256)
    ).eval()
    x = torch.randn(64, 256)
    clock = WallClock()
    gc.freeze()  # each comparison collects garbage first, which need not look at torch again
    with torch.inference_mode():
        for seed in range(num_comparisons):
            times = measure_pairs(
                lambda: module(x),
                lambda: module(x),
                settings=TimingSettings(**SETTINGS, seed=seed),
                clock=clock,
            )
            one, other = (
                [clock.measure(lambda: module(x)).elapsed_ms for _ in range(10)] for _ in "ab"
            )
            ratio = statistics.median(one) / statistics.median(other)
            yield {
                "speedup": times.speedup,
                "low": times.speedup_low,
                "high": times.speedup_high,
                "stopped_by": times.stopped_by,
                "is_sequentially_off": abs(math.log(ratio)) > 0.01,
                **_calmness(
                    times.baseline_ms,
                    times.candidate_ms,
                    times.baseline_preemptions,
                    times.candidate_preemptions,
                ),
            }


def compare_in_runs(num_comparisons: int) -> Iterator[dict[str, Any]]:
    """Yield the figures of whole runs of an embedded graph under the compiler `eager`."""
    rows = load_dataset(
        "graphnet", "cv", filters=[("framework", "=", "torch"), ("num_ops", "<", 40)]
    )
    sample = Sample.from_row(rows["train"][0] if "train" in rows else rows[0])
    row = sample_to_row(sample, derived_columns(sample))
    settings = Settings(
        timing=TimingSettings(**{**SETTINGS, "budget_s": 0.5}),
        num_threads=1,
        has_oracle=False,
        has_profile=False,
    )
    runner = SampleRunner("cpu", settings, compilers=["eager"])
    try:
        for number in range(num_comparisons):
            candidate = CandidateCompiler("eager", "torch", {}, "")
            (record,) = runner.run(SampleJob(sample, row, [(str(number), candidate)]))
            if record["status"] != "ok":
                raise SystemExit(f"A run of eager ended with {record['error_message']}")
            warnings = [each.partition(":")[0] for each in record["warnings"]]
            yield {
                "speedup": record["speedup"],
                "low": record["speedup_low"],
                "high": record["speedup_high"],
                "stopped_by": record["stopped_by"],
                "doubt": next((each for each in warnings if each in DOUBTS), "none"),
                **_calmness(
                    record["baseline_latency_ms"],
                    record["candidate_latency_ms"],
                    record["baseline_preemptions"],
                    record["candidate_preemptions"],
                ),
            }
    finally:
        runner.close()


DOUBTS = ("noisy", "baseline_doubted", "baseline_disturbed")


def _calmness(
    baseline_ms: Sequence[float],
    candidate_ms: Sequence[float],
    baseline_preemptions: Sequence[int],
    candidate_preemptions: Sequence[int],
) -> dict[str, Any]:
    counts = baseline_preemptions, candidate_preemptions
    found = paired_speedup(baseline_ms, candidate_ms, None, *counts)
    return {
        "pairs": found.num_pairs,
        "calm_share": found.num_calm / found.num_pairs,
        "is_uneven": found.is_uneven,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparisons", type=int, nargs="?", default=1000, help="two or more")
    parser.add_argument("--load", type=int, default=0, help="busy processes beside it")
    parser.add_argument("--runs", action="store_true", help="whole runs of an embedded graph")
    options = parser.parse_args()
    compare = compare_in_runs if options.runs else compare_in_process
    started = time.perf_counter()
    with busy(options.load):
        found = list(compare(options.comparisons))
    count = len(found)
    logs = [math.log(each["speedup"]) for each in found]
    half_widths = [math.sqrt(each["high"] / each["low"]) - 1 for each in found]
    figures: dict[str, Any] = {
        "what": "eager against eager" + (", whole runs" if options.runs else ""),
        "load": options.load,
        "load_of_the_machine": os.getloadavg()[0],
        "comparisons": count,
        "missed_share": sum(not each["low"] <= 1 <= each["high"] for each in found) / count,
        "speedup_geometric_mean": math.exp(statistics.fmean(logs)),
        "speedup_spread": math.expm1(statistics.stdev(logs)),
        "stopped_by": dict(collections.Counter(each["stopped_by"] for each in found)),
        "half_width_median": statistics.median(half_widths),
        "half_width_p90": statistics.quantiles(half_widths, n=10)[-1],
        "pairs_median": statistics.median(each["pairs"] for each in found),
        "calm_share": statistics.fmean(each["calm_share"] for each in found),
        "uneven_share": sum(each["is_uneven"] for each in found) / count,
    }
    if options.runs:
        figures["doubts"] = dict(collections.Counter(each["doubt"] for each in found))
    else:
        off = sum(each["is_sequentially_off"] for each in found)
        figures["sequential_medians_off_by_1_percent"] = off / count
    print(json.dumps(figures | {"seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main()

"""How often the 95 % interval of eager against itself misses 1, by the real stopping rule.

    python benchmarks/aa.py [NUMBER OF COMPARISONS]

Each comparison times two copies of one small module as a run does (warm-up, interleaved pairs,
adaptive stop), with small budgets so that a thousand take a minute or two. An honest interval
misses in 3 to 8 % of comparisons. Prints one JSON object: the share, what stopped them, the median
and 90th percentile of the interval's half width (the noise floor), the number of pairs, and the
share that two medians, timed one arm after the other, would have called a difference of over 1 %.
"""

from __future__ import annotations

import collections
import gc
import json
import math
import statistics
import sys
import time

import torch

from graphnet_datasets.timing.clocks import WallClock
from graphnet_datasets.timing.pairs import TimingSettings, measure_pairs

SETTINGS = {"warmup_s": 0.005, "min_warmup_calls": 3, "budget_s": 0.15, "max_pairs": 400}


def main() -> None:
    num_comparisons = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 256)
    ).eval()
    x = torch.randn(64, 256)
    clock = WallClock()
    gc.freeze()  # each comparison collects garbage first, which need not look at torch again
    num_misses = num_false_differences = 0
    stopped_by: collections.Counter[str] = collections.Counter()
    half_widths, num_pairs = [], []
    started = time.perf_counter()
    with torch.inference_mode():
        for seed in range(num_comparisons):
            times = measure_pairs(
                lambda: module(x),
                lambda: module(x),
                settings=TimingSettings(**SETTINGS, seed=seed),
                clock=clock,
            )
            low, high = times.speedup_low, times.speedup_high
            assert low is not None  # noqa: S101 - ten pairs always give an interval
            assert high is not None  # noqa: S101
            num_misses += not low <= 1 <= high
            stopped_by[times.stopped_by] += 1
            half_widths.append(math.sqrt(high / low) - 1)
            num_pairs.append(len(times.baseline_ms))
            one, other = (
                [clock.measure(lambda: module(x)).elapsed_ms for _ in range(10)] for _ in "ab"
            )
            ratio = statistics.median(one) / statistics.median(other)
            num_false_differences += abs(math.log(ratio)) > 0.01
    print(
        json.dumps(
            {
                "what": "eager against eager",
                "comparisons": num_comparisons,
                "missed_share": num_misses / num_comparisons,
                "stopped_by": dict(stopped_by),
                "half_width_median": statistics.median(half_widths),
                "half_width_p90": statistics.quantiles(half_widths, n=10)[-1],
                "pairs_median": statistics.median(num_pairs),
                "sequential_medians_off_by_1_percent": num_false_differences / num_comparisons,
                "seconds": time.perf_counter() - started,
            }
        )
    )


if __name__ == "__main__":
    main()

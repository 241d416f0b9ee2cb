"""Templates against torch, live: products and convolutions, alone and with bias and ReLU.

    taskset -c 0 python benchmarks/tuning/bolt_live.py --out build/study
    taskset -c 0 python benchmarks/tuning/bolt_live.py --only matmul-64 --candidates 4

Each shape is captured as a graph and run by `tvm-bolt` under the harness of `graphnet run`: eager
is torch with oneDNN, both arms have one thread and are timed in interleaved pairs, outputs are
judged. Records go to OUT/bolt-runs; the same call goes on. A line per shape and one with the
geometric means, also in OUT/bolt_live.jsonl for `study.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from graphnet_datasets import Sample, extract, run
from graphnet_datasets.atomic import write_text
from graphnet_datasets.timing.pairs import TimingSettings

PRODUCTS = (
    (64, 256, 256), (128, 512, 512), (256, 768, 768), (384, 384, 1536), (512, 1024, 256),
    (16, 2048, 1000),
)  # fmt: skip
"""Rows, inner size, columns."""
CONVOLUTIONS = (
    (64, 64, 56, 1), (256, 512, 14, 1), (32, 32, 56, 3), (64, 128, 28, 3), (128, 256, 14, 3),
    (256, 256, 7, 3),
)  # fmt: skip
"""Channels in and out, height and width, size of the window."""


class Layer(torch.nn.Module):
    """A product or a convolution, with bias and ReLU if it is fused."""

    def __init__(self, layer: torch.nn.Module, is_fused: bool) -> None:
        super().__init__()
        self.layer, self.is_fused = layer, is_fused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the outputs."""
        made = self.layer(x)
        return torch.relu(made) if self.is_fused else made


def graphs(only: str) -> list[Sample]:
    """Return the graphs of all shapes, plain and fused."""
    torch.manual_seed(0)
    found = []
    for is_fused in (False, True):
        kind = "fused" if is_fused else "plain"
        for m, k, n in PRODUCTS:
            layer: torch.nn.Module = torch.nn.Linear(k, n, bias=is_fused)
            name = f"bolt/matmul-{m}x{k}x{n}-{kind}"
            found.append((name, Layer(layer, is_fused), torch.randn(m, k)))
        for given, made, size, window in CONVOLUTIONS:
            layer = torch.nn.Conv2d(given, made, window, padding=window // 2, bias=is_fused)
            name = f"bolt/conv{window}-{given}x{size}x{size}-{made}-{kind}"
            found.append((name, Layer(layer, is_fused), torch.randn(1, given, size, size)))
    return [captured(*each) for each in found if only in each[0]]


def captured(name: str, module: torch.nn.Module, x: torch.Tensor) -> Sample:
    """Return the graph of one call."""
    wrapped: Any = extract(name=name, task="other")(module.eval())
    wrapped(x)
    (sample,) = wrapped.samples
    return sample


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is missing and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/study"))
    parser.add_argument("--only", default="", help="shapes whose names hold this")
    parser.add_argument("--candidates", type=int, default=24, help="of a shape at most")
    parser.add_argument("--tune-s", type=float, default=60.0, help="seconds for a shape")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of timing a shape")
    given = parser.parse_args(argv)
    started = time.monotonic()
    runs = run(
        graphs(given.only),
        compiler="graphnet_datasets.tuning.bolt_compiler:TvmBolt",
        out=given.out / "bolt-runs",
        options={
            "candidates": given.candidates,
            "tune_s": given.tune_s,
            "min_flops": 0,
            "num_threads": 1,
        },
        num_threads=1,
        has_oracle=False,
        has_profile=False,
        timing=TimingSettings(budget_s=given.budget),
    )
    lines = [header(given, time.monotonic() - started)]
    ratios: dict[str, list[float]] = {"plain": [], "fused": []}
    for row in runs:
        name, _, kind = row["sample_id"].removeprefix("bolt/").rpartition("-")
        if row["status"] != "ok" or row["speedup"] is None:
            why = row["error_message"] or row["status"]
            lines.append({"experiment": "bolt", "shape": f"{name} {kind}", "failed": why[:200]})
            continue
        ratios[kind].append(row["speedup"])
        lines.append(
            {
                "experiment": "bolt",
                "shape": f"{name} {kind}",
                "over_torch": round(row["speedup"], 3),
                "interval": [row["speedup_low"], row["speedup_high"]],
                "torch_ms": median(row["baseline_latency_ms"]),
                "template_ms": median(row["candidate_latency_ms"]),
                "min_t": row["min_t"],
                "compile_s": row["compile_time_s"],
            }
        )
    if ratios["plain"] and ratios["fused"]:
        lines.append(
            {
                "experiment": "bolt",
                "unfused_over_torch": round(geometric_mean(ratios["plain"]), 3),
                "fused_over_torch": round(geometric_mean(ratios["fused"]), 3),
                "shapes": min(map(len, ratios.values())),
                "failed": len(runs) - sum(map(len, ratios.values())),
            }
        )
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    print(text, end="")
    write_text(given.out / "bolt_live.jsonl", text)


def header(given: argparse.Namespace, wall_s: float) -> dict[str, Any]:
    """Return the line that tells the command."""
    shown = f"python benchmarks/tuning/bolt_live.py --candidates {given.candidates}"
    return {"part": "bolt", "shown": shown, "cpu_s": round(wall_s, 1)}


def median(values: Sequence[float]) -> float:
    """Return the median, of an even number the upper one."""
    return sorted(values)[len(values) // 2]


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


if __name__ == "__main__":
    main()

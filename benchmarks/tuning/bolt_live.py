"""Templates against torch, live: products and convolutions, alone and with bias and ReLU.

    taskset -c 0 python benchmarks/tuning/bolt_live.py --out build/study
    taskset -c 0 python benchmarks/tuning/bolt_live.py --only matmul-64 --candidates 4
    taskset -c 0 python benchmarks/tuning/bolt_live.py --out build/study --inductor

Each shape is captured as a graph and run by `tvm-bolt` under the harness of `graphnet run`: eager
is torch with oneDNN, both arms have one thread and are timed in interleaved pairs, outputs are
judged. Records go to OUT/bolt-runs; the same call goes on. `--inductor` runs torch's compiler on
the same graphs in the same way, beside the records that are there: what the template has over it is
the ratio of what both have over eager. A line per shape and one with the geometric means, also in
OUT/bolt_live.jsonl for `study.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from graphnet_datasets import Sample, extract, run
from graphnet_datasets.atomic import write_text
from graphnet_datasets.timing.pairs import TimingSettings

Row = Mapping[str, Any]
BOLT = "graphnet_datasets.tuning.bolt_compiler:TvmBolt"
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
    parser.add_argument("--inductor", action="store_true", help="run torch's compiler too")
    given = parser.parse_args(argv)
    started = time.monotonic()
    samples = graphs(given.only)
    settings: dict[str, Any] = {
        "out": given.out / "bolt-runs",
        "num_threads": 1,
        "has_oracle": False,
        "has_profile": False,
        "timing": TimingSettings(budget_s=given.budget),
    }
    options = {
        "candidates": given.candidates,
        "tune_s": given.tune_s,
        "min_flops": 0,
        "num_threads": 1,
    }
    runs = run(samples, compiler=BOLT, options=options, **settings)
    others = run(samples, compiler="inductor", **settings) if given.inductor else []
    lines = [header(given, time.monotonic() - started), *lines_of(runs, others)]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    print(text, end="")
    write_text(given.out / "bolt_live.jsonl", text)


def lines_of(runs: Iterable[Row], others: Iterable[Row]) -> list[dict[str, Any]]:
    """Return a line for each shape and one with the geometric means.

    `others` are the runs of inductor on the same graphs; a shape without one, or whose run failed,
    has no figure of it.
    """
    inductor = {row["sample_id"]: row for row in others if _speedup_of(row) is not None}
    lines: list[dict[str, Any]] = []
    ratios: dict[str, list[float]] = {"plain": [], "fused": []}
    over: dict[str, list[float]] = {"plain": [], "fused": []}
    failed = 0
    for row in runs:
        name, _, kind = row["sample_id"].removeprefix("bolt/").rpartition("-")
        speedup = _speedup_of(row)
        if speedup is None:
            why = row["error_message"] or row["status"]
            lines.append({"experiment": "bolt", "shape": f"{name} {kind}", "failed": why[:200]})
            failed += 1
            continue
        ratios[kind].append(speedup)
        line = {
            "experiment": "bolt",
            "shape": f"{name} {kind}",
            "over_torch": round(speedup, 3),
            "interval": [row["speedup_low"], row["speedup_high"]],
            "torch_ms": median(row["baseline_latency_ms"]),
            "template_ms": median(row["candidate_latency_ms"]),
            "min_t": row["min_t"],
            "compile_s": row["compile_time_s"],
        }
        other = inductor.get(row["sample_id"])
        if other is not None:
            over[kind].append(speedup / other["speedup"])
            line |= {
                "inductor_over_torch": round(other["speedup"], 3),
                "inductor_interval": [other["speedup_low"], other["speedup_high"]],
                "inductor_ms": median(other["candidate_latency_ms"]),
                "over_inductor": round(speedup / other["speedup"], 3),
            }
        lines.append(line)
    if ratios["plain"] and ratios["fused"]:
        means: dict[str, Any] = {
            "experiment": "bolt",
            "unfused_over_torch": round(geometric_mean(ratios["plain"]), 3),
            "fused_over_torch": round(geometric_mean(ratios["fused"]), 3),
            "shapes": min(map(len, ratios.values())),
            "failed": failed,
        }
        if over["plain"] and over["fused"]:
            means |= {
                "unfused_over_inductor": round(geometric_mean(over["plain"]), 3),
                "fused_over_inductor": round(geometric_mean(over["fused"]), 3),
            }
        lines.append(means)
    return lines


def _speedup_of(row: Row) -> float | None:
    """Return the speedup over eager of a run that is ok, else None."""
    return row["speedup"] if row["status"] == "ok" else None


def header(given: argparse.Namespace, wall_s: float) -> dict[str, Any]:
    """Return the line that tells the command."""
    shown = f"python benchmarks/tuning/bolt_live.py --candidates {given.candidates}"
    shown += " --inductor" if given.inductor else ""
    return {"part": "bolt", "shown": shown, "cpu_s": round(wall_s, 1)}


def median(values: Sequence[float]) -> float:
    """Return the median, of an even number the upper one."""
    return sorted(values)[len(values) // 2]


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


if __name__ == "__main__":
    main()

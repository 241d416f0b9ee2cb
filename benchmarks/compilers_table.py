"""Every compiler that can run here on the same sixteen small graphs, as a table in Markdown.

    python benchmarks/compilers_table.py [--budget SECONDS] [--out DIRECTORY] [--only ARM ...]

Each arm is timed as `graphnet run` does it: fresh processes, warm caches, interleaved pairs. The
records are kept in the directory, and the same command continues where it was stopped. Prints one
Markdown table; its first row is eager against eager, the noise floor of the machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets import error_aware_speedup_score, run, speedup_score
from graphnet_datasets.benchmark import Settings, TimingSettings
from graphnet_datasets.errors import GraphNetError

SAMPLES = (
    "torch/resnet-20-cifar", "torch/convmixer-64-8", "torch/squeezenet-64", "torch/unet-small",
    "torch/vae-64",
    "transformers/bert-tiny", "torch/transformer-small", "torch/text-cnn-small",
    "torch/wavenet-small", "transformers/ast-nano",
    "torch/question-answerer-small",
    "torch/gcn-small", "torch/pointnet-small", "torch/fno-1d",
    "torch/deepfm", "torch/tcn",
)  # fmt: skip
"""Of every task, each of a family of its own, up to 82 operators, a call of a few milliseconds."""

ARMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "eager": ("eager", {}),
    "aot_eager": ("aot_eager", {}),
    "torchscript": ("torchscript", {}),
    "onnxruntime": ("onnxruntime", {}),
    "openvino": ("openvino", {}),
    "openvino-f32": ("openvino", {"precision": "f32"}),
    "tvm": ("tvm", {}),
    "iree": ("iree", {}),
    "tc": ("tc", {}),
    "inductor": ("inductor", {}),
    "inductor-freezing": ("inductor", {"freezing": True}),
    "aotinductor": ("aotinductor", {}),
}
"""The quickest to compile first, so that a run that is stopped has most of the table."""

DEFAULT_ARMS = tuple(name for name in ARMS if name not in ("aot_eager", "aotinductor"))
"""Those whose figures say something of their own."""

CORRECT_T = -2
"""The tolerance of the columns "correct" and "speedup": for float32 absolute 0.01, relative 0.0044.
"noise" is the median half width of a sample's 95 % interval."""

HEAD = (
    "compiler", "version", "samples", "correct", "speedup", "noise", "S(-5)", "S(-2)", "S(0)",
    "ES(1)", "ES(3)", "compile s", "failed",
)  # fmt: skip


def main() -> None:
    """Run the arms and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds to measure a sample")
    parser.add_argument("--out", type=Path, default=Path("compiler-runs"))
    parser.add_argument("--only", nargs="*", choices=[*ARMS], default=DEFAULT_ARMS)
    parser.add_argument("--samples", nargs="*", default=SAMPLES)
    parser.add_argument("--compile-timeout", type=float, default=120.0)
    options = parser.parse_args()
    settings = Settings(
        timing=TimingSettings(budget_s=options.budget),
        phase_timeouts_s={"compile": options.compile_timeout, "run": 60.0},
        has_oracle=False,
    )
    rows = []
    for name in options.only:
        compiler, compiler_options = ARMS[name]
        try:
            runs = run(
                list(options.samples),
                compiler,
                out=options.out,
                options=compiler_options,
                settings=settings,
            )
        except GraphNetError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        rows.append(row_of(name, runs))
    print_table(rows)


def row_of(name: str, runs: Any) -> list[str]:
    """Return the cells of one arm."""
    s, es = speedup_score(runs), error_aware_speedup_score(runs)
    at = s.at(CORRECT_T)
    counted = [record for record in runs if record["status"] == "ok"]
    correct = [record for record in counted if record["min_t"] <= CORRECT_T]
    speedup, noise = "-", "-"
    if correct:
        speedup = f"{statistics.geometric_mean([each['speedup'] for each in correct]):.2f}"
        widths = [each["speedup_high"] / each["speedup_low"] for each in correct]
        noise = f"±{100 * (statistics.median(widths) ** 0.5 - 1):.1f} %"
    failed = sorted({record["status"] for record in runs} - {"ok"})
    counts = [f"{sum(each == status for each in runs['status'])} {status}" for status in failed]
    compile_s = [each["compile_time_s"] for each in runs if each["compile_time_s"] is not None]
    return [
        name,
        runs[0]["compiler_version"],
        str(s.num_samples),
        f"{100 * at['num_correct'] / s.num_samples:.0f} %",
        speedup,
        noise,
        *(f"{s.at(t)['S']:.3f}" for t in (-5, -2, 0)),
        *(f"{es.at(t)['ES']:.3f}" for t in (1, 3)),
        f"{statistics.median(compile_s):.1f}" if compile_s else "-",
        ", ".join(counts) or "none",
    ]


def print_table(rows: list[list[str]]) -> None:
    """Print rows as Markdown."""
    print(f"| {' | '.join(HEAD)} |")
    print("|---" * len(HEAD) + "|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()

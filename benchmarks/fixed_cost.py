"""The fixed cost of a fresh process per sample: all that a run costs beyond the work itself.

The work itself is what the phases of the worker report: loading the sample, running eager,
compiling, timing. The rest is fork, set-up, hand-over, judging, the record on disk and the end of
the process. Upstream starts an interpreter and imports the framework for each sample, which is
measured beside it.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import psutil

from graphnet_datasets import Sample
from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.benchmark.executors.sample_runner import (
    CandidateCompiler,
    SampleJob,
    SampleRunner,
)
from graphnet_datasets.benchmark.records.records import RunStore
from graphnet_datasets.benchmark.settings import Settings
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.timing.pairs import TimingSettings

REPEATS = 10
TIMING = TimingSettings(
    min_pairs=3, max_pairs=3, budget_s=0, warmup_s=0, min_warmup_calls=1, precision=1
)


def main() -> None:
    """Print one JSON line per figure."""
    sample = Sample(
        "benchmark/linear", "torch", "other",
        (Input("input", Value("float32", (8, 64))), Input("parameter", Value("float32", (64, 64)))),
        (Op("torch.nn.functional.linear", (Ref(0), Ref(1))),), (Ref(2),),
    )  # fmt: skip
    runner = SampleRunner("cpu", Settings(timing=TIMING, alone_calls=1), compilers=["eager"])
    candidate = CandidateCompiler("eager", "torch", {}, "")
    row = sample_to_row(sample, derived_columns(sample))
    started = time.perf_counter()
    runner.run(SampleJob(sample, row, [("warm-up", candidate)]))
    report("server_start_s", [time.perf_counter() - started])

    whole, fixed, cpu = [], [], []
    server = psutil.Process(runner._servers["torch"].pid)
    with tempfile.TemporaryDirectory() as directory:
        store = RunStore(directory)
        for index in range(REPEATS):
            work_s = 0.0
            spend = runner._start

            def watched(*arguments, spend=spend):
                nonlocal work_s
                outcome = spend(*arguments)
                work_s += sum(outcome.phase_s.values())
                return outcome

            runner._start = watched
            cpu_started = cpu_s(server)
            started = time.perf_counter()
            (record,) = runner.run(SampleJob(sample, row, [(f"{index}", candidate)]))
            store.append(record)
            whole.append(time.perf_counter() - started)
            fixed.append(whole[-1] - work_s)
            cpu.append(cpu_s(server) - cpu_started)
            runner._start = spend
    runner.close()
    report("run_of_one_linear_layer_s", whole)
    report("of_which_outside_the_phases_s", fixed)
    report("run_of_one_linear_layer_cpu_s", cpu)

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch, torch._inductor.compile_fx"], check=True)
    report("interpreter_and_imports_s", [time.perf_counter() - started])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report("interpreter_and_imports_cpu_s", [cpu])


def cpu_s(server: psutil.Process) -> float:
    """Return the CPU seconds of the parent, the server and all jobs that have ended."""
    times = server.cpu_times()
    jobs = times.children_user + times.children_system
    return time.process_time() + times.user + times.system + jobs


def report(name: str, seconds: list[float]) -> None:
    print(
        json.dumps(
            {
                "benchmark": "fixed_cost",
                "figure": name,
                "median": round(statistics.median(seconds), 4),
                "smallest": round(min(seconds), 4),
                "largest": round(max(seconds), 4),
                "repeats": len(seconds),
            }
        )
    )


if __name__ == "__main__":
    main()

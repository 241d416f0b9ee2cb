"""How long many small graphs take under several compilers, with default settings, and why.

    python benchmarks/throughput.py [--graphs 100] [--compiler NAME ...] [--threads N]
    python benchmarks/throughput.py --max-ops 200     # larger ones too

Embedded graphs of torch that are tagged `small`, or of at most so many operators, a billion
floating-point operations and ten million parameters, evenly spread over the dataset, run as
`graphnet run` does, start of processes included. Prints one JSON object: seconds of the wall and of
processors in all, seconds a run, how the runs ended and what stopped them, and the seconds of each
phase (`TimeSpent`). The goal is six minutes for a hundred graphs under the three default compilers
on two quiet cores.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import resource
import time

from graphnet_datasets import load_dataset, run
from graphnet_datasets.benchmark import TimeSpent

COMPILERS = ("eager", "torchscript", "onnxruntime")


def main() -> None:
    """Run the graphs and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--max-ops", type=int, help="instead of the tag `small`")
    parser.add_argument("--compiler", nargs="*", default=COMPILERS)
    parser.add_argument("--threads", type=int, help="of each arm; default: all processors")
    parser.add_argument("--jobs", type=int, help="number of samples that overlap")
    options = parser.parse_args()
    started_s, spent = time.perf_counter(), TimeSpent()
    filters: list[tuple[str, str, object]] = [("framework", "=", "torch")]
    if options.max_ops is None:
        filters.append(("tags", "contains", "small"))
    else:
        most = {"num_ops": options.max_ops, "flops": 10**9, "num_params": 10**7}
        filters += [(name, "<=", number) for name, number in most.items()]
    parts = load_dataset("graphnet", "all", filters=filters)
    names = sorted(name for part in parts.values() for name in part["id"])
    count = min(options.graphs, len(names))
    chosen = [names[place * len(names) // count] for place in range(count)]
    runs = run(
        chosen,
        list(options.compiler),
        time_spent=spent,
        num_threads=options.threads,
        jobs=options.jobs,
    )
    wall_s = time.perf_counter() - started_s
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    phases: dict[str, float] = collections.Counter()
    for (_, phase), seconds in spent.seconds().items():
        phases[phase] += seconds
    print(
        json.dumps(
            {
                "benchmark": "throughput",
                "graphs": count,
                "max_ops": options.max_ops,
                "compilers": list(options.compiler),
                "jobs": options.jobs,
                "threads": options.threads or len(os.sched_getaffinity(0)),
                "wall_s": round(wall_s, 1),
                "cpu_s": round(sum(each.ru_utime + each.ru_stime for each in used), 1),
                "s_per_run": round(wall_s / len(runs), 3),
                "load": os.getloadavg()[0],
                "status": collections.Counter(runs["status"]),
                "stopped_by": collections.Counter(filter(None, runs["stopped_by"])),
                "timed_in": collections.Counter(filter(None, runs["timed_in"])),
                "is_noisy": sum(bool(each) for each in runs["is_noisy"]),
                "seconds_by_phase": {name: round(each, 1) for name, each in phases.items()},
            }
        )
    )


if __name__ == "__main__":
    main()

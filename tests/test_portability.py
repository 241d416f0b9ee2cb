"""Loading, filtering, scoring and plotting on machines that are not Linux."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphnet_datasets.benchmark.records.records import write_runs

from .scores.run_rows import make_run

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="These tests simulate another system on Linux."
)

# Python has these names only on Linux (or on Linux and BSD), so modules that read them on import
# fail on macOS.
WITHOUT_LINUX = """
import ctypes, os, select, signal, socket, sys

for module, names in (
    (os, "memfd_create pidfd_open sched_getaffinity sched_setaffinity sched_setscheduler setns "
         "unshare posix_fadvise posix_fallocate splice eventfd timerfd_create getrandom "
         "copy_file_range setresuid getresuid"),
    (select, "epoll"),
    (signal, "pidfd_send_signal sigtimedwait sigwaitinfo SIGRTMIN"),
    (socket, "AF_NETLINK AF_PACKET AF_VSOCK"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)

real_open = ctypes.CDLL.__init__

def open_library(self, name, *args, **kwargs):
    if name is None or "libc.so" in str(name) or "seccomp" in str(name):
        raise OSError(f"{name} exists only on Linux")
    real_open(self, name, *args, **kwargs)

def refuse_linux(event, arguments):
    if event == "import" and arguments[0].split(".")[0] in ("seccomp", "spwd", "pyseccomp"):
        raise ImportError(arguments[0])
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(arguments[0])

import pyarrow  # reads /proc itself
ctypes.CDLL.__init__ = open_library
sys.addaudithook(refuse_linux)
"""

USE = """
from graphnet_datasets.cli.app import app
from graphnet_datasets.scores import speedup_score, split_arms, summarise
from graphnet_datasets.scores.latency import split_by_size
from graphnet_datasets.storage.filters import Filters
from graphnet_datasets.storage.selection import load_sample

assert Filters(limit=1).limit == 1
print(load_sample("torch/mlp-mnist").num_ops > 0)
print(summarise(RUNS).num_graphs)
try:
    import matplotlib
except ImportError:
    print("no plots")
else:
    from graphnet_datasets.report import plot_runs
    print(len(plot_runs({"a": RUNS}, OUT)) > 0)
"""


def test_loading_filtering_scoring_and_plotting_work_without_linux(tmp_path: Path) -> None:
    runs = tmp_path / "runs.parquet"
    write_runs([make_run(str(index), 2.0, run_id=str(index)) for index in range(3)], runs)
    script = f"RUNS, OUT = {str(runs)!r}, {str(tmp_path / 'plots')!r}\n{WITHOUT_LINUX}\n{USE}"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-3000:]
    assert process.stdout.split("\n")[:2] == ["True", "3"]
    assert process.stdout.split("\n")[2] in ("True", "no plots")


def test_the_simulation_refuses_linux_features() -> None:
    for use in ("import os; os.sched_getaffinity(0)", "open('/proc/self/status')"):
        process = subprocess.run(
            [sys.executable, "-c", f"{WITHOUT_LINUX}\n{use}"], capture_output=True, text=True
        )
        assert process.returncode != 0, use

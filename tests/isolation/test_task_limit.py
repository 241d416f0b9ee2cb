"""The kernel's limit on the processes and threads of a job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphnet_datasets.isolation.task_limit import TaskLimit

LIMIT = 64 * (os.cpu_count() or 1)
"""The limit of `TaskLimit(0)`, which allows threads only."""
FORKS = f"""
import os, time
number = 1
try:
    while number < {LIMIT} + 20:
        if os.fork() == 0:
            time.sleep(600)
        number += 1
except BlockingIOError:
    pass
print(number, flush=True)
time.sleep(600)
"""


def test_a_group_holds_and_ends_its_processes() -> None:
    with TaskLimit(0) as tasks:
        process = subprocess.Popen(
            [sys.executable, "-c", FORKS],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=tasks.enter,
            start_new_session=True,
        )
        with process:
            assert process.stdout is not None
            number = int(process.stdout.readline())
            pids = tasks.processes()
            if not pids:
                os.killpg(process.pid, signal.SIGKILL)
                pytest.skip("this process may not create a control group")
            assert number == len(pids) == LIMIT and process.pid in pids
            tasks.kill()
            assert process.wait() == -signal.SIGKILL
    assert not tasks.processes()
    groups = Path("/sys/fs/cgroup").glob(f"**/graphnet-job-{os.getpid()}")
    assert list(groups) == []

"""The kernel's limit on the processes and threads of a job."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphnet_datasets.isolation.task_limit import kill_group, num_processes, task_group


def test_a_group_holds_and_ends_its_processes() -> None:
    with task_group(3) as group:
        if group is None:
            pytest.skip("this process may not create a control group")
        enter = (
            f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write('0'); "
            "children = []\n"
            "try:\n"
            "    for _ in range(5):\n"
            "        pid = os.fork()\n"
            "        if pid == 0: import time; time.sleep(600)\n"
            "        children.append(pid)\n"
            "except BlockingIOError:\n"
            "    print(len(children), flush=True)\n"
            "    import time; time.sleep(600)\n"
        )
        process = subprocess.Popen([sys.executable, "-c", enter], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "2\n"
        assert num_processes(group) == 3
        kill_group(group)
        assert process.wait() < 0
        process.stdout.close()
    assert not group.exists()

"""Nothing outlives a run: what a job leaves behind when it takes its server with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.isolation import Ending, ForkServer, Limits, running
from graphnet_datasets.isolation.linux import become_subreaper, cease_to_be_subreaper, is_subreaper
from tests.isolation.test_client import MODULE, ROOT, run
from tests.waiting import wait_until_gone


def new_server() -> ForkServer:
    return ForkServer(MODULE, environment={"PYTHONPATH": str(ROOT)}, is_confined=False)


@pytest.mark.parametrize(
    ("do", "payload"),
    [
        ("leave_and_kill_server", {"clears": False, "lives_s": 0}),
        ("leave_and_kill_server", {"clears": True, "lives_s": 0}),
        ("leave_and_kill_server", {"clears": False, "lives_s": 5}),
        ("leave_with_other_limits", {}),
    ],
)
def test_orphans_die_if_their_server_was_killed(
    tmp_path: Path, do: str, payload: dict[str, Any]
) -> None:
    was_subreaper = is_subreaper()
    path = tmp_path / "pid"
    with new_server() as server:
        outcome = run(server, do, path=str(path), **payload)
        assert outcome.ending is Ending.CRASH
        assert not Path("/proc", path.read_text()).exists()
        assert run(server, "answer").ending is Ending.FINISHED
    assert is_subreaper() == was_subreaper


def test_orphans_die_if_their_server_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphnet_datasets.isolation.watch.KILL_GRACE_S", 0.5)
    monkeypatch.setattr(running, "KILL_GRACE_S", 0.5)
    path = tmp_path / "pid"
    with new_server() as server:
        outcome = run(server, "leave_and_stop_server", Limits(default_timeout_s=1), path=str(path))
        assert outcome.ending in (Ending.CRASH, Ending.TIMEOUT)
        assert not Path("/proc", path.read_text()).exists()


def test_another_server_and_its_job_are_left_alone(tmp_path: Path) -> None:
    was_subreaper = is_subreaper()
    with new_server() as one, new_server() as other:
        assert run(other, "answer").ending is Ending.FINISHED
        run(one, "leave_and_kill_server", path=str(tmp_path / "pid"), clears=False, lives_s=0)
        assert run(other, "answer").ending is Ending.FINISHED
        assert other.num_starts == 1
        assert is_subreaper()
    assert is_subreaper() == was_subreaper


def test_children_of_this_program_and_their_orphans_are_left_alone(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "    time.sleep(1000)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
    )
    with new_server() as server, subprocess.Popen(["sleep", "1000"]) as own:
        server.start()
        grandchild = tmp_path / "grandchild"
        subprocess.run([sys.executable, "-c", code, str(grandchild)], check=True)
        run(server, "leave_and_kill_server", path=str(tmp_path / "pid"), clears=False, lives_s=0)
        assert own.poll() is None
        pid = int(grandchild.read_text())
        os.kill(pid, 0)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        own.kill()
    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_a_program_that_was_a_subreaper_stays_one() -> None:
    become_subreaper()
    try:
        with new_server() as server:
            server.start()
        assert is_subreaper()
    finally:
        cease_to_be_subreaper()

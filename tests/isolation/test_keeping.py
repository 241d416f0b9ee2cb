"""Servers that are kept for the next owner, and what they must not be mistaken for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from graphnet_datasets.errors import RunError
from graphnet_datasets.isolation import Ending, ForkServer, descendants, keep_servers
from tests.isolation.test_client import MODULE, ROOT, run
from tests.waiting import is_alive, wait_until, wait_until_gone


def make(**variables: str) -> ForkServer:
    environment = {"PYTHONPATH": str(ROOT), **variables}
    return ForkServer(MODULE, environment=environment, is_confined=False)


def use(server: ForkServer) -> int:
    """Run a job, close the server and return its process id."""
    with server:
        assert run(server, "answer").ending is Ending.FINISHED
        pid = server.pid
    assert pid is not None
    assert server.pid is None
    return pid


def test_an_equal_server_is_taken_over_and_ends_with_the_context() -> None:
    with keep_servers():
        first = use(make())
        assert use(make()) == first
        assert is_alive(first)
    wait_until_gone(first)


def test_nothing_is_kept_unasked_or_where_none_may_be() -> None:
    wait_until_gone(use(make()))
    with keep_servers(), keep_servers(most=0):
        wait_until_gone(use(make()))
    with pytest.raises(ValueError, match="`most` is -1"), keep_servers(most=-1):
        pass


def test_the_innermost_context_counts() -> None:
    with keep_servers():
        outer = use(make())
        with keep_servers():
            inner = use(make())
            assert inner != outer
        wait_until_gone(inner)
        assert use(make()) == outer


def test_others_are_not_taken_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with keep_servers(most=9, ignoring=["TESTS_IGNORED"]):
        first = use(make())
        assert use(make(TESTS_OF_JOB="set")) != first
        assert use(ForkServer(MODULE, environment={"PYTHONPATH": str(ROOT)}, is_confined=True)) != (
            first
        )
        with monkeypatch.context() as patch:
            patch.setenv("TESTS_OF_ALL", "set")
            assert use(make()) != first
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(tmp_path))
            assert use(ForkServer(MODULE)) != use(make())
        if len(processors := os.sched_getaffinity(0)) > 1:
            os.sched_setaffinity(0, [min(processors)])
            try:
                assert use(make()) != first
            finally:
                os.sched_setaffinity(0, processors)
        monkeypatch.setenv("TESTS_IGNORED", "set")
        assert use(make()) == first


def test_the_longest_idle_server_is_replaced() -> None:
    with keep_servers(most=2):
        first, second, third = (use(make(NUMBER=str(number))) for number in range(3))
        wait_until_gone(first)
        assert use(make(NUMBER="2")) == third
        assert use(make(NUMBER="1")) == second


def test_a_server_that_was_killed_is_not_taken() -> None:
    with keep_servers():
        first = use(make())
        os.kill(first, 9)
        wait_until_gone(first)
        assert use(make()) != first
        with make() as lost:
            assert run(lost, "kill_parent").ending is Ending.CRASH
            assert run(lost, "answer").ending is Ending.FINISHED


def test_a_server_at_work_is_ended_by_close_and_not_kept() -> None:
    with keep_servers():
        server = make()
        server.start()
        pid, endings = server.pid, []
        assert pid is not None
        thread = threading.Thread(target=lambda: endings.append(run(server, "sleep").ending))
        thread.start()
        wait_until(lambda: descendants(pid))
        server.close()
        thread.join()
        assert endings == [Ending.CRASH]
        wait_until_gone(pid)
        assert use(make()) != pid


def test_who_has_given_it_away_runs_no_job_in_it() -> None:
    with keep_servers():
        server = make()
        server.start()
        given = server._running
        server.close()
        assert given is not None
        server._running = given  # as another thread saw it, just before
        with make() as taker:
            taker.start()
            assert taker.pid == given.process.pid
            with pytest.raises(RunError, match="closed before its job began"):
                run(server, "answer")
            assert run(taker, "answer").ending is Ending.FINISHED
        server._running = None


def test_several_owners_at_once_have_servers_of_their_own() -> None:
    with keep_servers(), make() as one, make() as other:
        one.start()
        other.start()
        assert one.pid != other.pid


def test_kept_servers_end_with_the_process() -> None:
    code = f"""
from graphnet_datasets.isolation import ForkServer, keep_servers
context = keep_servers()
context.__enter__()
with ForkServer({MODULE!r}) as server:
    server.start()
    print(server.pid, server._running.session)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    pid, session = done.stdout.split()
    assert done.stderr == ""
    wait_until_gone(int(pid))
    assert not Path(session).exists()


def test_a_fork_of_this_process_leaves_them_alone() -> None:
    with keep_servers():
        first = use(make())
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if use(make()) != first else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert use(make()) == first

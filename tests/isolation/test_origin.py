"""Servers that are forks of another server."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphnet_datasets.isolation import Ending, ForkServer
from graphnet_datasets.isolation.linux import children
from tests.waiting import wait_until_gone

from .test_client import MODULE, ROOT, run


@pytest.fixture
def origin() -> Iterator[ForkServer]:
    with ForkServer(MODULE, environment={"PYTHONPATH": str(ROOT)}, is_confined=False) as server:
        yield server


@pytest.fixture
def servers(origin: ForkServer) -> Iterator[list[ForkServer]]:
    several = [ForkServer(MODULE, is_confined=False, origin=origin) for _ in range(3)]
    yield several
    for server in several:
        server.close()


def pid_of(server: ForkServer) -> int:
    server.start()
    assert server.pid is not None
    return server.pid


def test_servers_are_forks_of_their_origin_and_run_jobs(
    origin: ForkServer, servers: list[ForkServer]
) -> None:
    pids = {pid_of(server) for server in servers}
    assert set(children(pid_of(origin))) == pids and len(pids) == 3
    for server in servers:
        outcome = run(server, "answer")
        assert outcome.ending is Ending.FINISHED and outcome.merged()["value"] == "set"
    assert origin.num_starts == 1


def test_a_closed_server_ends_alone_and_can_start_again(
    origin: ForkServer, servers: list[ForkServer]
) -> None:
    first, second, _ = servers
    ended, other = pid_of(first), pid_of(second)
    session = first._running.session if first._running else Path()
    first.close()
    wait_until_gone(ended)
    assert not session.exists()
    assert run(second, "answer").ending is Ending.FINISHED and second.pid == other
    assert run(first, "answer").ending is Ending.FINISHED
    assert first.pid in children(pid_of(origin))


def test_a_killed_server_is_replaced_and_its_leftovers_are_killed(
    servers: list[ForkServer], tmp_path: Path
) -> None:
    first, second, _ = servers
    path = tmp_path / "pid"
    outcome = run(first, "leave_and_kill_server", path=str(path), clears=False, lives_s=0)
    assert outcome.ending is Ending.CRASH
    wait_until_gone(int(path.read_text()))
    assert run(second, "answer").ending is Ending.FINISHED
    assert run(first, "answer").ending is Ending.FINISHED


def test_closing_the_origin_ends_its_forks(origin: ForkServer, servers: list[ForkServer]) -> None:
    pids = [pid_of(server) for server in servers]
    origin.close()
    for pid in pids:
        wait_until_gone(pid)


def test_servers_survive_the_loss_of_their_origin(
    origin: ForkServer, servers: list[ForkServer]
) -> None:
    lost = pid_of(servers[0])
    os.kill(pid_of(origin), signal.SIGKILL)
    wait_until_gone(lost)
    assert run(servers[0], "answer").ending is Ending.FINISHED
    assert origin.num_starts == 2

"""Compilers that kill the process that started them, as the loss of a node would."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


def kills_its_runner(module: Any, example_inputs: Any) -> Any:  # noqa: ARG001
    _kill_runner()
    return module


def kills_its_runner_once(module: Any, example_inputs: Any) -> Any:  # noqa: ARG001
    marker = Path(os.environ["TEST_KILLED_FILE"])
    if not marker.exists():
        marker.touch()
        _kill_runner()
    return module


def waits_for_the_loss_of_a_node(module: Any, example_inputs: Any) -> Any:  # noqa: ARG001
    """Say that it has begun, and go on when the test has taken a node away."""
    marker = Path(os.environ["TEST_KILLED_FILE"])
    marker.with_suffix(f".{os.getpid()}").touch()
    while not marker.exists():
        time.sleep(0.05)
    return module


def _kill_runner() -> None:
    """Kill the parent of the fork server, of which this process is a child."""
    status = Path("/proc", str(os.getppid()), "status").read_text()
    (parent,) = (line.split()[1] for line in status.splitlines() if line.startswith("PPid:"))
    name = Path("/proc", parent, "cmdline").read_bytes()
    assert name.startswith(b"ray::"), name
    os.kill(int(parent), 9)
    while True:
        os.sched_yield()

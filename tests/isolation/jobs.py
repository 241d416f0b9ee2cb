"""Small jobs that behave in every way a job can; run as the module of a `ForkServer`."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from graphnet_datasets.isolation import Reporter


class UnprintableError(Exception):
    """An error that can be neither pickled nor printed."""

    def __init__(self) -> None:
        self.handle = open(os.devnull)  # noqa: SIM115, PTH123

    def __str__(self) -> str:
        raise RuntimeError("no text")


def orphan(path: Path) -> None:
    """Start a process that leaves its session and its parent, and write its id to `path`."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            path.write_text(str(os.getpid()))
            time.sleep(1000)
        os._exit(0)
    while not (path.exists() and path.read_text()):
        time.sleep(0.005)


def leave_behind(path: Path, *, clears: bool) -> None:
    """Start a process that leaves session and parent; it ignores signals, or executes another.

    What it executes has no environment, no open file and another directory than this job.
    """
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            path.write_text(str(os.getpid()))
            if clears:
                os.chdir("/")
                os.closerange(3, 64)
                os.execve("/bin/sleep", ["sleep", "1000"], {})  # noqa: S606
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            time.sleep(1000)
        os._exit(0)
    while not (path.exists() and path.read_text()):
        time.sleep(0.005)


def try_to_raise_limits() -> None:
    """Make the marked limit what it was, which takes a capability."""
    _, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (hard + 1, hard + 1))


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Do what the payload names."""
    match payload["do"]:
        case "answer":
            reporter.enter("second")
            reporter.send({"pid": os.getpid(), "value": os.environ.get("OF_JOB", "")})
        case "take_back":
            reporter.send({"early": "said first", "list": [1]})
            reporter.enter("second")
            assert reporter.stamps is not None
            reporter.stamps.send(reporter.stamps.encode("middle"))
            reporter.send({"early": "changed", "late": 1})
            reporter.send({"late": 2})
        case "stamp":
            assert reporter.stamps is not None
            begin, end = map(reporter.stamps.encode, ("begin", "end"))
            for _ in range(payload["times"]):
                reporter.stamps.wait_for_room()
                reporter.stamps.send(begin)
                time.sleep(payload["seconds"])
                reporter.stamps.send(end)
        case "stamp_without_key":
            for fd in range(3, 64):
                with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as found:
                    found.send(b"end")
            time.sleep(1000)
        case "write_to_every_file":
            line = b'{"value": "forged"}\n{"done": true}\n'
            for fd in range(3, 64):
                with contextlib.suppress(OSError):
                    os.write(fd, line)
        case "import":
            reporter.send({"was_there": payload["name"] in sys.modules})
            importlib.import_module(payload["name"])
            if payload["fails"]:
                raise ValueError
        case "raise":
            raise ValueError("x" * payload["length"])
        case "raise_unprintable":
            raise UnprintableError
        case "segfault":
            reporter.enter("second")
            ctypes.string_at(0)
        case "exit":
            os._exit(payload["code"])
        case "system_exit":
            sys.exit(0)
        case "spin":
            reporter.enter("second")
            begun = time.process_time()
            is_child = os.fork() == 0  # a second one, in a session of its own
            if is_child:
                os.setsid()
            while is_child or time.process_time() - begun < payload["seconds"]:
                pass
        case "sleep":
            reporter.enter("second")
            time.sleep(1000)
        case "stay_by_going_back":
            for phase in ("second", "first", "second"):
                reporter.enter(phase)
            time.sleep(1000)
        case "print":
            block = b"x" * 2**20
            for _ in range(payload["mib"]):
                os.write(1, block)
            os.write(2, b"the end")
        case "allocate":
            held = bytearray(payload["mib"] * 2**20)
            reporter.send({"held": len(held)})
        case "children_allocate":
            code = f"held = bytearray({payload['mib']} * 2**20); import time; time.sleep(1000)"
            for _ in range(3):
                subprocess.Popen([sys.executable, "-c", code])
            time.sleep(1000)
        case "orphan":
            orphan(Path(payload["path"]))
        case "orphan_and_sleep":
            orphan(Path(payload["path"]))
            time.sleep(1000)
        case "fork_bomb":
            for _ in range(100):
                if os.fork() == 0:
                    time.sleep(1000)
            time.sleep(1000)
        case "garbage":
            for fd in range(3, 64):
                try:
                    os.write(fd, b"\x80garbage\n[]\n")
                except OSError:
                    continue
            time.sleep(1000)
        case "kill_parent":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(1000)
        case "leave_and_kill_server":
            leave_behind(Path(payload["path"]), clears=payload["clears"])
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(payload["lives_s"])
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave_and_stop_server":
            leave_behind(Path(payload["path"]), clears=False)
            os.kill(os.getppid(), signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave_with_other_limits":
            try_to_raise_limits()
            leave_behind(Path(payload["path"]), clears=False)
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(1000)
        case "kill_self":
            os.kill(os.getpid(), payload.get("signal", signal.SIGKILL))
        case "write_file":
            with (directory / "big").open("wb") as file:
                for _ in range(payload["mib"]):
                    file.write(bytes(2**20))


def prepare() -> tuple[str, ...]:
    """Name a module that only some jobs import."""
    return ("colorsys",)

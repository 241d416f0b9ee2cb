"""Small jobs that behave in every way a job can; run as the module of a `ForkServer`."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from graphnet_datasets.isolation import Reporter, serve


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


def run(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Do what the payload names."""
    match payload["do"]:
        case "answer":
            reporter.enter("second")
            reporter.send({"pid": os.getpid(), "value": os.environ.get("OF_JOB", "")})
        case "take_back":
            reporter.send({"early": "said first", "list": [1]})
            reporter.enter("second")
            reporter.mark("middle")
            reporter.mark("middle")
            reporter.send({"early": "changed", "late": 1})
            reporter.send({"late": 2})
        case "write_to_every_file":
            line = b'{"value": "forged"}\n{"done": true}\n'
            for fd in range(3, 64):
                with contextlib.suppress(OSError):
                    os.write(fd, line)
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
        case "kill_self":
            os.kill(os.getpid(), signal.SIGKILL)
        case "write_file":
            with (directory / "big").open("wb") as file:
                for _ in range(payload["mib"]):
                    file.write(bytes(2**20))


if __name__ == "__main__":
    serve(run)

"""A fork server whose jobs try to reach what confinement should keep from them."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphnet_datasets.isolation import Reporter


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Report the name of the error, or "", of each attempt."""
    server, outside = os.getppid(), Path(payload["outside"])
    libc = ctypes.CDLL(None, use_errno=True)

    def call(*arguments: Any) -> None:
        if libc.syscall(*arguments) < 0:
            raise OSError(ctypes.get_errno(), "refused")

    def connect_to_itself() -> None:
        with socket.socket() as listening, socket.socket() as calling:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            calling.connect(listening.getsockname())

    def connect_outside() -> None:
        with socket.socket() as calling:
            calling.connect(("192.0.2.1", 80))

    attempts: dict[str, Callable[[], Any]] = {
        "write into its own directory": lambda: (directory / "own").write_text("x"),
        "write a temporary file": lambda: Path(os.environ["TMPDIR"], "x").write_text("x"),
        "use the loopback": connect_to_itself,
        "list interfaces": socket.if_nameindex,
        "run Python": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
        "run the C++ compiler": lambda: subprocess.run(
            [os.environ.get("CXX", "g++"), "--version"], check=True
        ),
        "read a file": lambda: (outside / "secret").read_text(),
        "write a file": lambda: (outside / "new").write_text("x"),
        "remove a file": lambda: (outside / "secret").unlink(),
        "list the home directory": lambda: [*Path(payload["home"]).iterdir()],
        "read /etc/shadow": lambda: Path("/etc/shadow").read_text(),
        "read the server's environment": lambda: Path(f"/proc/{server}/environ").read_bytes(),
        "read the caller's memory": lambda: Path(f"/proc/{payload['caller']}/mem").read_bytes(),
        "signal the server": lambda: os.kill(server, signal.SIGCONT),
        "signal the caller": lambda: os.kill(payload["caller"], 0),
        "run a shell": lambda: subprocess.run(["/bin/sh", "-c", ":"], check=True),
        "connect outside": connect_outside,
        "make a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
        "make a packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
        "make a Unix socket": lambda: socket.socket(socket.AF_UNIX),
        "make a namespace": lambda: (
            os.unshare(os.CLONE_NEWUSER) if hasattr(os, "unshare") else call(272, 0x10000000)
        ),
        "trace the server": lambda: call(101, 16, server, 0, 0),
        "mount": lambda: call(165, b"none", os.fsencode(directory), b"tmpfs", 0, None),
        "use a keyring": lambda: call(250, 0, -3, 0, 0, 0),
        "make shared memory": lambda: call(29, 0, 4096, 0o1600),
        "make semaphores": lambda: call(64, 0, 1, 0o1600),
        "make a message queue": lambda: call(68, 0, 0o1600),
        "make a POSIX queue": lambda: call(240, b"graphnet-test", os.O_CREAT, 0o600, None),
        "make a device": lambda: os.mknod(directory / "device", 0o60666, os.makedev(7, 0)),
    }
    results = {}
    for name, attempt in attempts.items():
        try:
            attempt()
            results[name] = ""
        except (OSError, subprocess.SubprocessError) as error:
            results[name] = type(error).__name__
    is_secret_known = any(name.startswith("HF_TOKEN") for name in os.environ)
    reporter.send({"results": results, "has_token": is_secret_known})

"""What a job is kept from: the network, and the tokens of whoever started it.

A network namespace of its own has nothing in it but the loopback, which compilers use among their
own processes. Where the kernel refuses one (inside some containers), the job keeps the network.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

CONFINED_VARIABLE = "GRAPHNET_DATASETS_CONFINED"
"""Tells a fork server that its jobs leave the network."""

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_SECRET = re.compile(
    r"(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|AUTH|COOKIE)", re.I
)
_SECRET_NAMES = frozenset({"NETRC", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "KUBECONFIG", "PGPASSFILE"})
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy", "ftp_proxy"})
"""Addresses of proxies often hold a name and a password."""


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that hold no token, password or key by their names.

    >>> without_secrets({"HF_TOKEN": "hf_1", "AWS_SECRET_ACCESS_KEY": "x", "OMP_NUM_THREADS": "1"})
    {'OMP_NUM_THREADS': '1'}
    """
    return {
        name: value
        for name, value in environment.items()
        if not _SECRET.search(name) and name not in _SECRET_NAMES and name.lower() not in _PROXIES
    }


def leave_network() -> bool:
    """Move this process, which has one thread, into a network of its own; tell whether it worked.

    Root needs no more than that; anybody else gets a user namespace that maps their own id.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        user, group = os.getuid(), os.getgid()
        if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            return False
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        with contextlib.suppress(OSError):
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    with contextlib.suppress(OSError):
        _bring_up("lo")
    return True


def can_leave_network() -> bool:
    """Tell whether `leave_network` works here, by trying it in a process that ends at once."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if leave_network() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _bring_up(interface: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", interface.encode(), 0)
        reply = fcntl.ioctl(control, _SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("16xh", reply)
        raised = struct.pack("16sh14x", interface.encode(), flags | _IFF_UP)
        fcntl.ioctl(control, _SIOCSIFFLAGS, raised)

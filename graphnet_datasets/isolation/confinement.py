"""Confinement of jobs: no network, no tokens, and limited access to files and system calls.

A confined job has its own network namespace with only the loopback interface, which compilers use
between their processes. Landlock limits file access to the job's directory, the installed software
and the paths passed by the caller. A seccomp filter refuses system calls that no job needs. Each
layer is used if the kernel offers it (`available_layers`).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import re
import shutil
import socket
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..user_cache import cache_directory
from . import landlock, seccomp
from .landlock import EXECUTE, READ, READ_DIR, READ_FILE, WRITE
from .linux import give_up_capabilities

CONFINED_VARIABLE = "GRAPHNET_DATASETS_CONFINED"
"""Set in the environment of confined fork servers and of their jobs."""
LAYERS = ("network namespace", "Landlock", "seccomp")

_SYSTEM_FOLDERS = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/proc", "/sys")
_SYSTEM_FILES = (
    "alternatives", "fonts", "group", "host.conf", "hosts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "machine-id", "mime.types", "nsswitch.conf", "OpenCL",
    "os-release", "passwd", "resolv.conf", "timezone", "vulkan",
)  # fmt: skip
"""Readable entries of `/etc`."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "nvidia*", "dri", "kfd")
_TOOLS = (
    "g++",
    "gcc",
    "c++",
    "cc",
    "clang",
    "clang++",
    "as",
    "ld",
    "ld.bfd",
    "ld.gold",
    "ld.lld",
    "openssl",
)
_TOOL_FOLDERS = ("lib/gcc*", "libexec/gcc*", "lib/llvm*")
_LOADERS = ("lib*/ld-linux*.so*", "lib/*/ld-linux*.so*")
_PERSONAL_FOLDERS = (Path.home(), Path("/tmp"))  # noqa: S108 - nothing is written there
_Rule = tuple[Path, int]

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
"""Proxy addresses, which often contain a name and a password."""


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables whose names suggest a token, password or key.

    >>> without_secrets({"HF_TOKEN": "hf_1", "AWS_SECRET_ACCESS_KEY": "x", "OMP_NUM_THREADS": "1"})
    {'OMP_NUM_THREADS': '1'}
    """
    return {
        name: value
        for name, value in environment.items()
        if not _SECRET.search(name) and name not in _SECRET_NAMES and name.lower() not in _PROXIES
    }


def leave_network() -> bool:
    """Move this single-threaded process into a new network namespace.

    Without root privileges, the process also gets a user namespace that maps its own id.

    Returns:
        Whether the kernel allowed it.
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
    """Return whether `leave_network` works here, by trying it in a short-lived process."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if leave_network() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def available_layers(has_namespace: bool | None = None) -> dict[str, bool]:
    """Return, for each name in `LAYERS`, whether the kernel offers that layer of confinement.

    Args:
        has_namespace: Whether a network namespace can be created, if already known.

    >>> list(available_layers()) == [*LAYERS]
    True
    """
    if has_namespace is None:
        has_namespace = can_leave_network()
    answers = (has_namespace, landlock.version() > 0, seccomp.is_supported())
    return dict(zip(LAYERS, answers, strict=True))


def confine(
    directory: Path,
    *,
    reads: Iterable[str] = (),
    writes: Iterable[str] = (),
    executes: Iterable[str] = (),
    has_unix_sockets: bool = False,
) -> None:
    """Confine this single-threaded process and all processes that it starts.

    Args:
        directory: The job's own directory, where it may write.
        reads: Additional files and directories that it may read.
        writes: Additional files and directories that it may write.
        executes: Additional programs, or directories of programs, that it may start.
        has_unix_sockets: Whether it may create named Unix sockets.
    """
    leave_network()
    rules = [*software_rules(), (Path("/proc/self"), WRITE), (directory, WRITE)]
    for path in reads:
        rules += _reading_rules(Path(path))
    rules += [(Path(path), WRITE) for path in writes]
    rules += [(Path(path), READ | EXECUTE) for path in executes]
    landlock.restrict(rules)
    # GPU drivers communicate with their services over Unix sockets.
    has_gpu = Path("/dev/nvidiactl").exists()
    seccomp.restrict_calls(has_unix_sockets=has_unix_sockets or has_gpu)
    give_up_capabilities()


@functools.cache
def software_rules() -> tuple[_Rule, ...]:
    """Return the Landlock rules for the system, Python, its packages and the C++ toolchain."""
    rules: list[_Rule] = [(Path(folder), READ) for folder in _SYSTEM_FOLDERS]
    rules += [(Path("/etc") / name, READ) for name in _SYSTEM_FILES]
    for name in _DEVICES:
        rules += [(path, WRITE) for path in Path("/dev").glob(name)]
    rules += [(Path(folder), READ) for folder in (sys.prefix, sys.base_prefix)]
    for entry in sys.path:
        rules += _reading_rules(Path(entry))
    rules.append((cache_directory(), READ))
    # Packages may contain programs, such as `iree-compile` or `ptxas`.
    packages = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    rules += [(Path(path), READ | EXECUTE) for path in packages]
    rules += [(path, READ | EXECUTE) for path in _programs()]
    return tuple(rules)


def _reading_rules(path: Path) -> Iterator[_Rule]:
    """Yield the rules for reading a file, or a directory and everything below it.

    In the home and temporary directories and their parents, only Python files are readable: a
    script there must not expose its neighbouring files to its jobs.
    """
    if not path.is_absolute():
        return
    if not any(folder.is_relative_to(path) for folder in _PERSONAL_FOLDERS):
        yield path, READ
        return
    yield path, READ_DIR
    for script in path.glob("*.py"):
        yield script, READ_FILE


def _programs() -> Iterator[Path]:
    """Yield Python, the C and C++ toolchain, the CUDA tools and the dynamic loader."""
    yield Path(sys.executable).resolve()
    has_gpu = Path("/dev/nvidiactl").exists()
    tools = (
        os.environ.get("CC", ""),
        os.environ.get("CXX", ""),
        *_TOOLS,
        "nvcc" if has_gpu else "",
    )
    prefixes = {Path("/usr"), Path("/usr/local")}
    for path in filter(None, map(shutil.which, filter(None, tools))):
        yield Path(path).resolve()
        yield from _interpreter(Path(path))
        prefixes |= {place.parent.parent for place in (Path(path), Path(path).resolve())}
    shared = (Path("/usr"), *_PERSONAL_FOLDERS)
    for root in prefixes:
        if not any(root.is_relative_to(place) or place.is_relative_to(root) for place in shared):
            yield root / "bin"  # a toolchain with a folder of its own, such as /opt/gcc
        for pattern in _TOOL_FOLDERS:
            yield from root.glob(pattern)
    for pattern in _LOADERS:
        yield from Path("/").glob(pattern)
        yield from Path("/usr").glob(pattern)
    yield Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "bin"


def _interpreter(program: Path) -> Iterator[Path]:
    """Yield the interpreter of a script, such as a wrapper of a compiler."""
    with contextlib.suppress(OSError), program.open("rb") as file:
        line = file.readline(256)
        if line.startswith(b"#!") and (words := line[2:].split()):
            yield Path(os.fsdecode(words[0])).resolve()
            if words[0].endswith(b"/env") and (named := shutil.which(os.fsdecode(words[-1]))):
                yield Path(named).resolve()


def _bring_up(interface: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", interface.encode(), 0)
        reply = fcntl.ioctl(control, _SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("16xh", reply)
        raised = struct.pack("16sh14x", interface.encode(), flags | _IFF_UP)
        fcntl.ioctl(control, _SIOCSIFFLAGS, raised)

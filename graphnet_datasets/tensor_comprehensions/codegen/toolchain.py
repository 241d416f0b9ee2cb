"""Compilation of C to shared objects in a limited process, cached by content.

The key is the SHA-256 of the source, the flags and the identity of the compiler, so an object is
never used for another program. Only the user may write the directory, because its files are loaded.
The objects that were not used for the longest time are deleted.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import platform
import shutil
import subprocess
import threading
from pathlib import Path

from ...atomic import write_bytes
from ...errors import KernelCompileError
from ...isolation import ForkServer, Limits
from ...user_cache import private_directory
from .program import Program

WORKER = "graphnet_datasets.tensor_comprehensions.codegen.compile_worker"
PHASES = ("compile",)
OBJECT_FILE = "result"
_FLAGS = ("-O2", "-shared", "-fPIC", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-w")
ALLOWED_FLAGS = frozenset(
    {
        *("-O1", "-O2", "-O3", "-funroll-loops", "-fno-tree-vectorize", "-ftree-vectorize"),
        "-fopenmp-simd",
        *(
            "-fno-schedule-insns",
            "-fno-schedule-insns2",
            "-fomit-frame-pointer",
            "-fno-unroll-loops",
        ),
        *("-mprefer-vector-width=512", "-mprefer-vector-width=256", "-fno-ivopts"),
    }
)
"""Flags allowed in options. Stored options may be untrusted, and some flags can run programs."""

MAX_OBJECT_BYTES = 1 << 30
"""Size of the directory beyond which objects are deleted."""
_WRITES_BETWEEN_PRUNING = 100

_lock = threading.Lock()
_num_writes = itertools.count()


def object_directory() -> Path:
    """Return the directory of compiled objects, writable only by this user.

    Raises:
        KernelCompileError: another user owns the directory or can write to it.
    """
    try:
        return private_directory("tensor_comprehensions")
    except PermissionError as error:
        raise KernelCompileError(str(error)) from error


@functools.cache
def compiler_identity(compiler: str) -> tuple[str, str]:
    """Return the path of a compiler and its version line.

    Raises:
        KernelCompileError: it is not installed.
    """
    path = shutil.which(compiler)
    if path is None:
        raise KernelCompileError(
            f"The compiler `{compiler}` is not installed. Install it (`apt install {compiler}`), "
            "or choose another compiler with `Options(compiler=...)`."
        )
    answer = subprocess.run(  # noqa: S603 (a path that `which` found, no shell)
        [path, "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    return path, answer.stdout.partition("\n")[0]


def command(
    program: Program, compiler: str, extra_flags: tuple[str, ...], target: str = "native"
) -> list[str]:
    """Return the compiler's command line without its files.

    Args:
        target: the processors to compile for, by a name that the compiler knows.

    Raises:
        KernelCompileError: a flag is not one of `ALLOWED_FLAGS`, or there is no such compiler.
    """
    for flag in extra_flags:
        if flag not in ALLOWED_FLAGS:
            raise KernelCompileError(
                f"The flag {flag!r} is not allowed. Choose from {', '.join(sorted(ALLOWED_FLAGS))}."
            )
    option = "-mcpu" if platform.machine() in ("aarch64", "arm64") else "-march"
    path, _ = compiler_identity(compiler)
    threads = ("-fopenmp",) if program.uses_threads else ()
    return [path, *_FLAGS, f"{option}={target}", *threads, *extra_flags]


def object_key(
    program: Program, compiler: str, extra_flags: tuple[str, ...], target: str = "native"
) -> str:
    """Return the SHA-256 under which an object is cached."""
    parts = [program.source, *command(program, compiler, extra_flags, target), *program.libraries]
    parts += [compiler_identity(compiler)[1], platform.machine(), _processor_flags()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
def _processor_flags() -> str:
    """Return the processor features that `-march=native` depends on."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    return next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")


def compile_object(
    program: Program,
    compiler: str = "gcc",
    extra_flags: tuple[str, ...] = (),
    *,
    timeout_s: float = 60.0,
    memory_bytes: int = 2 << 30,
    target: str = "native",
) -> Path:
    """Return the path of a program's shared object, compiling it if it is not cached.

    Args:
        target: the processors to compile for; see `command`.

    Raises:
        KernelCompileError: the compiler is missing, fails, or reaches a limit.
    """
    key = object_key(program, compiler, extra_flags, target)
    path = object_directory() / f"{key}.so"
    if path.is_file():
        with contextlib.suppress(OSError):
            os.utime(path)  # the time of its last use
        return path
    limits = Limits(default_timeout_s=timeout_s, memory_bytes=memory_bytes, max_processes=16)
    with _lock:
        server = _server()
        with server.directory() as directory:
            source = directory / "kernel.c"
            source.write_text(program.source)
            payload = compile_payload(program, compiler, extra_flags, source, target)
            outcome = server.run(payload, directory, phases=PHASES, limits=limits)
            if outcome.ending != "finished":
                raise KernelCompileError(_explain(compiler, outcome, timeout_s))
            write_bytes(path, (directory / OBJECT_FILE).read_bytes())
        if next(_num_writes) % _WRITES_BETWEEN_PRUNING == 0:
            prune_objects()
    return path


def prune_objects(max_bytes: int = MAX_OBJECT_BYTES) -> int:
    """Delete the objects that were not used for the longest time, and return their number.

    Nothing is deleted while the directory has at most `max_bytes`; otherwise three quarters of that
    remain. Kernels that are loaded keep working.
    """
    objects: list[tuple[float, int, Path]] = []
    for path in object_directory().glob("*.so"):
        with contextlib.suppress(FileNotFoundError):  # another process deleted it
            status = path.stat()
            objects.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in objects)
    if total <= max_bytes:
        return 0
    num_deleted = 0
    for _, size, path in sorted(objects):
        if total <= max_bytes * 3 // 4:
            break
        path.unlink(missing_ok=True)
        total -= size
        num_deleted += 1
    return num_deleted


def compile_payload(
    program: Program,
    compiler: str,
    extra_flags: tuple[str, ...],
    source: Path,
    target: str = "native",
) -> dict[str, object]:
    """Return the job of the compile worker for a program written to `source`."""
    return {
        "command": command(program, compiler, extra_flags, target),
        "libraries": list(program.libraries),
        "source": str(source),
    }


def _explain(compiler: str, outcome, timeout_s: float) -> str:
    reason = (outcome.error or {}).get("message", "") or outcome.log[-2000:].strip()
    if outcome.ending == "timeout":
        reason = f"it took longer than {timeout_s:g} s"
    return (
        f"`{compiler}` could not compile the generated code ({outcome.ending}): "
        f"{reason or 'no output'}"
    )


@functools.cache
def _server() -> ForkServer:
    return ForkServer(WORKER)

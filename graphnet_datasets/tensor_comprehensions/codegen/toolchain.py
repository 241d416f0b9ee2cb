"""C to a shared object, in a process of its own with limits, kept by what it was made from.

The key is the SHA-256 of the source, the flags and the compiler's own identity, so that an object
is never used for anything else. The directory belongs to the user alone: what lies in it is loaded.
"""

from __future__ import annotations

import functools
import hashlib
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
        *(
            "-fno-schedule-insns",
            "-fno-schedule-insns2",
            "-fomit-frame-pointer",
            "-fno-unroll-loops",
        ),
        *("-mprefer-vector-width=512", "-mprefer-vector-width=256", "-fno-ivopts"),
    }
)
"""The flags that options may add. Stored options come from others, and flags can run programs."""

_lock = threading.Lock()


def object_directory() -> Path:
    """Return the directory of compiled objects, which only this user may write.

    Raises:
        KernelCompileError: somebody else owns it or may write it.
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
            "or choose another with `Options(compiler=...)`."
        )
    answer = subprocess.run(  # noqa: S603 (a path that `which` found, no shell)
        [path, "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    return path, answer.stdout.partition("\n")[0]


def command(program: Program, compiler: str, extra_flags: tuple[str, ...]) -> list[str]:
    """Return the compiler's command line without its files.

    Raises:
        KernelCompileError: a flag is not one of `ALLOWED_FLAGS`, or there is no such compiler.
    """
    for flag in extra_flags:
        if flag not in ALLOWED_FLAGS:
            raise KernelCompileError(
                f"The flag {flag!r} is not among those that options may add: "
                f"{', '.join(sorted(ALLOWED_FLAGS))}."
            )
    native = "-mcpu=native" if platform.machine() in ("aarch64", "arm64") else "-march=native"
    path, _ = compiler_identity(compiler)
    threads = ("-fopenmp",) if program.uses_threads else ()
    return [path, *_FLAGS, native, *threads, *extra_flags]


def object_key(program: Program, compiler: str, extra_flags: tuple[str, ...]) -> str:
    """Return the SHA-256 that an object is kept under."""
    parts = [program.source, *command(program, compiler, extra_flags), *program.libraries]
    parts += [compiler_identity(compiler)[1], platform.machine(), _processor_flags()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
def _processor_flags() -> str:
    """Return what `-march=native` depends on."""
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
) -> Path:
    """Return the path of the shared object of a program, compiling it if it is not there yet.

    Raises:
        KernelCompileError: the compiler is missing, fails, or reaches a limit.
    """
    key = object_key(program, compiler, extra_flags)
    path = object_directory() / f"{key}.so"
    if path.is_file():
        return path
    limits = Limits(default_timeout_s=timeout_s, memory_bytes=memory_bytes, max_processes=16)
    with _lock:
        server = _server()
        with server.directory() as directory:
            source = directory / "kernel.c"
            source.write_text(program.source)
            payload = compile_payload(program, compiler, extra_flags, source)
            outcome = server.run(payload, directory, phases=PHASES, limits=limits)
            if outcome.ending != "finished":
                raise KernelCompileError(_explain(compiler, outcome, timeout_s))
            write_bytes(path, (directory / OBJECT_FILE).read_bytes())
    return path


def compile_payload(
    program: Program, compiler: str, extra_flags: tuple[str, ...], source: Path
) -> dict[str, object]:
    """Return what the compiling process is handed for a program that was written to `source`."""
    return {
        "command": command(program, compiler, extra_flags),
        "libraries": list(program.libraries),
        "source": str(source),
    }


def _explain(compiler: str, outcome, timeout_s: float) -> str:
    said = (outcome.error or {}).get("message", "") or outcome.log[-2000:].strip()
    if outcome.ending == "timeout":
        said = f"it took longer than {timeout_s:g} s"
    return (
        f"`{compiler}` did not compile the generated code ({outcome.ending}): {said or 'no word'}"
    )


@functools.cache
def _server() -> ForkServer:
    return ForkServer(WORKER)

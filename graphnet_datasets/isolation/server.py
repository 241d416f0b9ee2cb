"""The fork server: imports a framework once, then forks one process for each job.

The server never touches a device or runs a job's code. It is the subreaper of its jobs, so every
process that a job starts stays below it and is killed with the job. When its parent ends, it kills
the current job and exits. If a job kills the server, the server's parent handles the orphans
(`orphans`).

A server can also be the origin of further servers, which are forks of it and so need no imports
(`ForkServer.origin`). It then runs no jobs itself.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ..collector import not_collecting
from .cleaning import remove_tree
from .confinement import CONFINED_VARIABLE, available_layers, confine, software_rules
from .late_imports import LateImports
from .limits import apply_limits
from .linux import (
    become_subreaper,
    children,
    descendants,
    die_with_parent,
    kill_descendants,
    memory_bytes,
    proportional_memory_bytes,
)
from .orphans import kill_trees, mark
from .reporting import Reporter, describe_error
from .stamps import StampSender
from .task_limit import TaskLimit

Job = Callable[[dict[str, Any], Reporter, Path], None]
"""A job: a function of the payload, the reporter and an empty directory of its own."""

MAX_CONTROL_BYTES = 65536
POLL_INTERVAL_MS = 50
MAX_SUM_S = 0.5
"""Maximum time for one exact sum of the memory of a job's processes."""
TEMPORARY_FOLDER = ".temporary"
"""The folder for temporary files in a job's directory."""


class _ParentGoneError(Exception):
    """The process that started this server has ended or has closed the connection."""


def main(module: str) -> NoReturn:
    """Import a worker module and serve its jobs to the process that started this one.

    Each job is a call of the module's function `work` in a new fork. If the module has a function
    `prepare`, it first imports everything that all jobs need, and may return the names of modules
    that only some jobs import: the server imports such a module after the first job that did.
    """
    with not_collecting():
        worker = importlib.import_module(module)
        seldom = worker.prepare() if hasattr(worker, "prepare") else None
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    mark()
    # Some libraries keep their own threads, which survive a fork through the libraries' own
    # handlers. This server runs no threads itself.
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", append=False)
    # A job's garbage collector would otherwise write to, and so copy, every shared page. Collecting
    # before the freeze is not worthwhile: imports leave little garbage, and a collection takes
    # longer than a small job.
    gc.freeze()
    _take_precedence()
    parent_fd = os.pidfd_open(os.getppid())
    connection = _Connection(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]), parent_fd)
    if os.environ.get(CONFINED_VARIABLE):
        software_rules()  # before the first fork, so that all jobs share them
    late = LateImports(seldom or ())
    while True:  # repeats in each server that is forked from this one
        connection = _serve(connection, worker.work, late)


def _take_precedence() -> None:
    """Give this server, which root may do, precedence over its jobs, so that it can stop them.

    Otherwise it would wait for hundreds of busy processes between two steps. Jobs keep the priority
    of the client.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)


class _Connection(NamedTuple):
    """A server's connection to its client, its directory, and the client's process."""

    control: socket.socket
    session: Path
    parent_fd: int


def _serve(connection: _Connection, job: Job, late: LateImports) -> _Connection:
    """Serve jobs, and exit when the client ends. Return only in a fork, with its connection."""
    control, session, parent_fd = connection
    os.set_inheritable(control.fileno(), False)
    become_subreaper()
    forks: dict[int, int] = {}  # process ids by the descriptors that become readable at their end
    try:
        greeting: dict[str, Any] = {
            "ready": os.getpid(),
            "num_threads": len([*Path("/proc/self/task").iterdir()]),
        }
        if os.environ.get(CONFINED_VARIABLE):
            layers = available_layers()
            greeting["missing_layers"] = [name for name, is_there in layers.items() if not is_there]
        _send(control, greeting)
        while True:
            ready = _wait([control.fileno(), *forks], parent_fd, None)
            if ready & forks.keys():
                _clean_up_after(ready & forks.keys(), forks)
                continue
            request, fds = _receive(control)
            if "job" in request:
                late.follow()
                _send(control, _run(request, fds, control, parent_fd, late.watching(job)))
            elif "fork" in request:
                late.follow_all()
                server = os.getpid()
                fork = os.fork()
                if fork == 0:
                    die_with_parent(server)
                    control.close()
                    for fd in forks:
                        os.close(fd)
                    theirs = socket.socket(fileno=fds[0])
                    return _Connection(theirs, Path(request["fork"]), parent_fd)
                os.close(fds[0])
                forks[os.pidfd_open(fork)] = fork
                _send(control, {"forked": fork})
    except (_ParentGoneError, BrokenPipeError, ConnectionResetError):
        kill_descendants()
        remove_tree(session)
        _leave()


def _clean_up_after(ended: Collection[int], forks: dict[int, int]) -> None:
    """Reap servers that have ended, and kill the processes that they left behind."""
    for fd in ended:
        os.waitpid(forks.pop(fd), 0)
        os.close(fd)
    kill_trees([pid for pid in children(os.getpid()) if pid not in forks.values()])


def _leave() -> NoReturn:
    """Exit like Python, but without tearing down the imported modules.

    With torch, the teardown takes half a second of processor time and has no effect.
    """
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


def _run(
    request: dict[str, Any], fds: list[int], control: socket.socket, parent_fd: int, job: Job
) -> dict[str, Any]:
    """Run a job until it and all its processes have ended, and return how it ended."""
    with TaskLimit(request["max_processes"]) as tasks:
        return _run_limited(tasks, request, fds, control, parent_fd, job)


def _run_limited(
    tasks: TaskLimit,
    request: dict[str, Any],
    fds: list[int],
    control: socket.socket,
    parent_fd: int,
    job: Job,
) -> dict[str, Any]:
    server = os.getpid()
    worker = os.fork()
    if worker == 0:
        control.close()
        _become_job(request, fds, server, job, tasks)
    for fd in fds:
        os.close(fd)
    _send(control, {"started": worker})
    inherited = memory_bytes(worker)
    worker_fd = os.pidfd_open(worker)
    cause, peak, is_still, next_sum_s = "", 0, False, 0.0
    try:
        while not cause:
            interval_ms = None if is_still else POLL_INTERVAL_MS
            ready = _wait([worker_fd, control.fileno()], parent_fd, interval_ms)
            if worker_fd in ready:
                break
            if control.fileno() in ready:
                message, _ = _receive(control)
                cause = str(message.get("kill", ""))
                # While the job is paused nothing runs, and monitoring would disturb other work.
                is_still = bool(message.get("is_still", is_still))
                continue
            if is_still:
                continue
            if len(tasks.processes()) > request["max_processes"]:
                cause = "processes"
                continue
            tree = descendants(server)
            if len(tree) > request["max_processes"]:
                cause = "processes"
                continue
            used = sum(map(memory_bytes, tree)) - inherited
            peak = max(peak, used)
            # `used` counts pages shared by forks more than once.
            if used > request["tree_bytes"] and time.monotonic() >= next_sum_s:
                started_s = time.monotonic()
                if _exceeds(tree, request["tree_bytes"] + inherited, started_s + MAX_SUM_S):
                    cause = "memory"
                next_sum_s = time.monotonic() + 9 * (time.monotonic() - started_s)
    finally:
        os.close(worker_fd)
    # Dead processes use no memory, such as the job itself and children it did not wait for.
    if cause:
        tasks.kill()
    leftovers = sum(memory_bytes(pid) > 0 for pid in descendants(server))
    status = kill_descendants().get(worker)
    return {
        "exited": None if status is None else os.waitstatus_to_exitcode(status),
        "cause": cause,
        "peak_memory_bytes": peak,
        "num_leftovers": leftovers,
    }


def _exceeds(pids: Sequence[int], limit_bytes: int, deadline_s: float) -> bool:
    """Return whether processes use more memory than a limit, as far as known at a deadline.

    Reading the memory of a process waits for its forks, so many processes may take minutes.
    """
    used = 0
    for pid in pids:
        used += proportional_memory_bytes(pid)
        if used > limit_bytes or time.monotonic() > deadline_s:
            break
    return used > limit_bytes


def _become_job(
    request: dict[str, Any], fds: list[int], server: int, job: Job, tasks: TaskLimit
) -> NoReturn:
    """Turn this new fork of the server into the job, run it and exit."""
    code = 1
    try:
        result_fd, log_fd, stamp_fd = fds
        os.setsid()
        die_with_parent(server)
        os.setpriority(os.PRIO_PROCESS, 0, request["priority"])
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        os.set_inheritable(result_fd, False)
        os.set_inheritable(stamp_fd, False)
        faulthandler.enable()
        directory = Path(request["directory"])
        os.chdir(directory)
        os.environ.update(request["environment"])
        key = request.pop("key")
        reporter = Reporter(result_fd, key, StampSender(stamp_fd, key))
        try:
            tasks.enter()
            apply_limits(
                memory_bytes=request["memory_bytes"] if request["is_memory_enforced"] else None,
                file_bytes=request["file_bytes"],
            )
            if request["confinement"] is not None:
                _stay_in(directory, request["environment"])
                confine(directory, **request["confinement"])
            job(request["payload"], reporter, directory)
            reporter.send({"done": True})
            code = 0
        except BaseException as error:
            reporter.send({"error": describe_error(error)})
            traceback.print_exc()
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(code)


def _stay_in(directory: Path, environment: Mapping[str, str]) -> None:
    """Point the home, temporary and cache directories of this job into its own directory.

    The job can write nowhere else, and some compilers fail if they cannot write. Variables set by
    the job's caller are preserved.
    """
    place = directory / TEMPORARY_FOLDER
    place.mkdir(exist_ok=True)
    own = {"HOME": str(place), "TMPDIR": str(place), "XDG_CACHE_HOME": str(place / "cache")}
    os.environ.update({name: path for name, path in own.items() if name not in environment})
    tempfile.tempdir = None


def _wait(fds: list[int], parent_fd: int, timeout_ms: int | None) -> set[int]:
    """Wait until one of `fds` is readable or the timeout expires; raise if the parent has ended."""
    poller = select.poll()
    for fd in (*fds, parent_fd):
        poller.register(fd, select.POLLIN)
    ready = {fd for fd, _ in poller.poll(timeout_ms)}
    if parent_fd in ready:
        raise _ParentGoneError
    return ready


def _receive(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    data, fds, _, _ = socket.recv_fds(control, MAX_CONTROL_BYTES, 3)
    if not data:
        raise _ParentGoneError
    return json.loads(data), fds


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    control.send(json.dumps(message).encode())

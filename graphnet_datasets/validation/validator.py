"""`validate`: runs the checks on a sample, in separate processes if they run the sample."""

from __future__ import annotations

import functools
import platform
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from ..errors import SampleError, raises_only
from ..frameworks import framework_named
from ..isolation import Ending, ForkServer, Limits, Outcome
from ..sample import Sample
from ..version import __version__
from .check_job import CAPTURING, CheckJob
from .outcomes import CHECKS, CheckResult, Validation
from .servers import CheckServers

DEFAULT_TIMEOUT_S = 300.0
"""Time limit in seconds for one check of one sample."""

DEFAULT_MEMORY_LIMIT_BYTES = 8 * 2**30

_NUM_COPIES = 4
"""A sample is small if its memory limit is at least this multiple of the size of its inputs."""


@raises_only(SampleError)
def validate(
    sample: Sample,
    checks: Sequence[str] = CHECKS,
    *,
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    trust_remote_code: bool = False,
) -> Validation:
    """Check that a sample meets the requirements of a graph dataset.

    `custom_operators_accessible`: every custom operator has a source. `statically_analysable`: all
    operators are known without running; the reason reports data-dependent shapes or dtypes.
    `serializable`: row and directory reproduce the sample exactly. `runnable`: the sample runs in
    an isolated process and its outputs are finite. `decomposable`: disjoint parts that run in
    sequence produce the same bits. `reextractable`: materializing and capturing the sample yields
    one graph with the same structure hash.

    A check is skipped, with a reason, if the framework is not installed, the sample needs more than
    `memory_limit_bytes`, the check would run the source of custom operators without
    `trust_remote_code`, or the check does not apply to the sample. To validate many samples use a
    `Validator`, which imports the framework once.

    Raises:
        SampleError: A check is unknown.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> relu = Sample("example/relu", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),), (Op("torch.relu", (Ref(0),)),), (Ref(1),))
    >>> validate(relu, ["statically_analysable", "serializable"]).is_valid
    True
    """
    with Validator(
        memory_limit_bytes=memory_limit_bytes,
        timeout_s=timeout_s,
        trust_remote_code=trust_remote_code,
    ) as validator:
        return validator.validate(sample, checks)


class Validator:
    """Validates samples one after another; a context manager that closes its processes.

    Each check that runs the sample uses a new process, so that a crash, hang or leak affects only
    that check. With two or more `jobs` (default: one per processor), a small sample is captured
    again in parallel with its other checks. `servers` may already be running.
    """

    def __init__(
        self,
        *,
        memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        trust_remote_code: bool = False,
        jobs: int | None = None,
        servers: CheckServers | None = None,
    ) -> None:
        self._trust_remote_code = trust_remote_code
        self._memory_limit_bytes = memory_limit_bytes
        # Leave memory for copies of the outputs and for tracing.
        self._limits = Limits(
            default_timeout_s=timeout_s, memory_bytes=2 * memory_limit_bytes + 2**30
        )
        self._servers = CheckServers(jobs) if servers is None else servers
        self._beside = ThreadPoolExecutor(1) if self._servers.are_apart else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all processes."""
        self._servers.close()
        if self._beside is not None:
            self._beside.shutdown()

    def start(self, framework: str, checks: Sequence[str] = CHECKS) -> None:
        """Start importing a framework for later checks in the background.

        Does nothing if the framework is not installed or no check runs its samples.
        """
        self._servers.start(framework, checks)

    @raises_only(SampleError)
    def validate(self, sample: Sample, checks: Sequence[str] = CHECKS) -> Validation:
        """Run these checks on one sample; see `validate`."""
        # Imported late, so that the server can start first, which takes longer.
        from ..schema.sample_files import pack_sample, write_packed
        from .reading import READING, check

        for name in checks:
            if name not in CHECKS:
                raise SampleError(
                    f"There is no check `{name}`. The checks are {', '.join(CHECKS)}."
                )
        versions = find_versions(sample.framework)
        chosen = [name for name in CHECKS if name in checks]
        # These checks run in this process while the server starts.
        reading = [name for name in chosen if name in READING and not _needs_process(name, sample)]
        results = {name: check(name, sample, versions) for name in reading}
        if len(reading) < len(chosen):
            write = functools.partial(write_packed, pack_sample(sample))
            waiting = [name for name in chosen if name not in results]
            results |= self._run_all(waiting, sample, write, versions)
        return Validation(sample.id, tuple(results[name] for name in chosen))

    def _run_all(
        self,
        names: Sequence[str],
        sample: Sample,
        write: Callable[[Path], None],
        versions: Mapping[str, str],
    ) -> dict[str, CheckResult]:
        """Run the checks that need a process, capturing in parallel with the others if memory
        allows.
        """
        beside = [name for name in names if name in CAPTURING]
        others = [name for name in names if name not in CAPTURING]
        is_small = _NUM_COPIES * sample.input_bytes <= self._memory_limit_bytes

        def run(chosen: Sequence[str]) -> dict[str, CheckResult]:
            return {name: self._run(name, sample, write, versions) for name in chosen}

        if self._beside is None or not is_small or not beside or not others:
            return run(names)
        captured = self._beside.submit(run, beside)
        try:
            return run(others) | captured.result()
        except BaseException:  # includes Ctrl-C: the parallel check must not continue unwatched
            captured.cancel()
            self._servers.close()
            raise

    def _run(
        self,
        name: str,
        sample: Sample,
        write: Callable[[Path], None],
        versions: Mapping[str, str],
    ) -> CheckResult:
        framework = framework_named(sample.framework)
        if not framework.is_installed:
            distribution = framework.distributions[0]
            return CheckResult(name, "skipped", f"`{distribution}` is not installed.", versions)
        if not framework.validation:
            reason = f"No check runs samples of `{framework.name}`."
            return CheckResult(name, "skipped", reason, versions)
        server = self._servers.of(sample.framework, name)
        outcome = self._attempt(server, name, write)
        if _is_killed_from_outside(outcome) and server in self._servers:
            outcome = self._attempt(server, name, write)
        return _judge(name, outcome, versions)

    def _attempt(self, server: ForkServer, name: str, write: Callable[[Path], None]) -> Outcome:
        with server.directory() as directory:
            write(directory)
            job = CheckJob(
                check=name,
                memory_limit_bytes=self._memory_limit_bytes,
                trust_remote_code=self._trust_remote_code,
            )
            return server.run(job.to_payload(), directory, phases=(name,), limits=self._limits)


def _needs_process(name: str, sample: Sample) -> bool:
    """Return whether a check that only reads the sample still needs its own process.

    Paddle's core infers shapes in C++, where an invalid call can end the process. For torch, the
    server of the other checks has already imported torch, so this process need not.
    """
    framework = framework_named(sample.framework)
    # Jobs reject custom operators that may not run, but this check runs no operators.
    has_torch = framework.name == "torch" and not sample.custom_operators
    is_offered = framework.is_walk_native or has_torch
    return name == "statically_analysable" and is_offered and framework.is_installed


def _is_killed_from_outside(outcome: Outcome) -> bool:
    """Return whether a SIGKILL from outside ended the process.

    No operator can send it: it came from the kernel, because other processes used up the memory, or
    from a person. It says nothing about the sample.
    """
    return outcome.ending is Ending.CRASH and outcome.exit_code == -signal.SIGKILL


def _judge(name: str, outcome: Outcome, versions: Mapping[str, str]) -> CheckResult:
    if outcome.ending is Ending.FINISHED:
        fields = outcome.merged()
        verdict = fields.get("outcome")
        if verdict in ("passed", "failed", "skipped"):
            return CheckResult(name, verdict, str(fields.get("reason", ""))[:2000], versions)
        return CheckResult(name, "failed", "The process ended without a word.", versions)
    if _is_killed_from_outside(outcome):
        reason = (
            "The process was killed from outside, twice (SIGKILL); is the machine out of memory?"
        )
        return CheckResult(name, "skipped", reason, versions)
    if outcome.error is not None:
        kind = outcome.error["type"].rpartition(".")[2]
        reason = f"{kind}: {outcome.error['message']}"[:2000]
        return CheckResult(name, "failed", reason, versions)
    if outcome.ending is Ending.OUT_OF_MEMORY:
        return CheckResult(name, "skipped", "It takes more memory than it may.", versions)
    reason = f"The process ended by {outcome.ending.value}"
    if outcome.exit_code is not None and outcome.exit_code < 0:
        reason += f" (signal {-outcome.exit_code})"
    return CheckResult(name, "failed", reason + ".", versions)


def find_versions(framework: str) -> dict[str, str]:
    """Return the versions on which an outcome depends.

    >>> find_versions("torch")["graphnet-datasets"] == __version__
    True
    """
    versions = {"graphnet-datasets": __version__, "python": platform.python_version()}
    return versions | framework_named(framework).versions()

"""`validate`: all checks on a sample, those that run it in a process of its own."""

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
"""Seconds that one check of one sample may take."""

DEFAULT_MEMORY_LIMIT_BYTES = 8 * 2**30

_NUM_COPIES = 4
"""A sample whose inputs fit so often into the memory that it may take is small."""


@raises_only(SampleError)
def validate(
    sample: Sample,
    checks: Sequence[str] = CHECKS,
    *,
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    trust_remote_code: bool = False,
) -> Validation:
    """Check that a sample is what a dataset of graphs needs.

    `custom_operators_accessible`: no operator without a source. `statically_analysable`:
    operators are known without running; the reason tells where shapes or dtypes are not.
    `serializable`: row and directory give the very sample back. `runnable`: it runs in an isolated
    process and gives finite outputs.
    `decomposable`: cut into disjoint parts that run one after the other, it gives the same bits.
    `reextractable`: materialized and captured again, it is one graph of the same structure hash.

    A check is skipped, with the reason, where the framework is not installed, the sample needs
    more than `memory_limit_bytes`, it would run the source of custom operators without
    `trust_remote_code`, or the check has no meaning for the sample. To validate many
    samples use a `Validator`, which imports the framework once.

    Raises:
        SampleError: a check is unknown.

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
    """Validates samples one after the other; a context that ends its processes.

    Each check that runs the sample does so in a fresh process, so that a crash, a hang or a leak
    costs that check alone. With two `jobs` or more (default: one a processor) a small sample is
    captured again while the other checks are made. `servers` may have been started before.
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
        # Beside the sample there are copies of its outputs, and what tracing takes.
        self._limits = Limits(
            default_timeout_s=timeout_s, memory_bytes=2 * memory_limit_bytes + 2**30
        )
        self._servers = CheckServers(jobs) if servers is None else servers
        self._beside = ThreadPoolExecutor(1) if self._servers.are_apart else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()
        if self._beside is not None:
            self._beside.shutdown()

    def start(self, framework: str, checks: Sequence[str] = CHECKS) -> None:
        """Begin to import a framework for the checks to come, while this process does other work.

        Nothing happens where it is not installed, or no check runs its samples.
        """
        self._servers.start(framework, checks)

    @raises_only(SampleError)
    def validate(self, sample: Sample, checks: Sequence[str] = CHECKS) -> Validation:
        """Make the given checks on one sample; see `validate`."""
        # Here, and not before a server was told to come up, which takes longer than all of it.
        from ..schema.sample_files import pack_sample, write_packed
        from .reading import READING, check

        for name in checks:
            if name not in CHECKS:
                raise SampleError(
                    f"There is no check `{name}`. The checks are {', '.join(CHECKS)}."
                )
        versions = find_versions(sample.framework)
        chosen = [name for name in CHECKS if name in checks]
        # What needs no server is done while one comes up.
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
        """Make the checks that need a process: what captures beside the others, if both fit."""
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
        except BaseException:  # Ctrl-C above all: the one beside must not go on unwatched
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
    """Tell whether a check that runs nothing of the sample is made in another process as well.

    Paddle's core infers shapes in C++, and a call that it does not survive ends the process. The
    server of the other checks has imported torch, which this process then need not do.
    """
    framework = framework_named(sample.framework)
    # Jobs refuse custom operators that may not run; this check runs none.
    has_torch = framework.name == "torch" and not sample.custom_operators
    is_offered = framework.is_walk_native or has_torch
    return name == "statically_analysable" and is_offered and framework.is_installed


def _is_killed_from_outside(outcome: Outcome) -> bool:
    """Tell whether a SIGKILL that we did not send ended the process.

    No operator can send one: it is the kernel, where others have taken the memory, or a person.
    That says nothing of the sample.
    """
    return outcome.ending is Ending.CRASH and outcome.exit_code == -signal.SIGKILL


def _judge(name: str, outcome: Outcome, versions: Mapping[str, str]) -> CheckResult:
    if outcome.ending is Ending.FINISHED:
        said = outcome.merged()
        found = said.get("outcome")
        if found in ("passed", "failed", "skipped"):
            return CheckResult(name, found, str(said.get("reason", ""))[:2000], versions)
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
    """Return the versions that an outcome depends on.

    >>> find_versions("torch")["graphnet-datasets"] == __version__
    True
    """
    versions = {"graphnet-datasets": __version__, "python": platform.python_version()}
    return versions | framework_named(framework).versions()

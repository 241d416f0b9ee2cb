"""Compilation of an instance: fusion, loop nests, plans, a checked schedule, C, a shared object."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Sequence

from ..errors import KernelCompileError, SchedulingLimitError
from .codegen.choices import Choices
from .codegen.choosing import choose_plan
from .codegen.coalescing import Coalesced, coalesce
from .codegen.elements import Dim, Nest
from .codegen.general import general_schedule, write_general
from .codegen.machine import Machine, default_threads, this_machine
from .codegen.nests import gather_nests
from .codegen.outer import fuse_outer, planned_nests
from .codegen.plans import Plan
from .codegen.program import Program, write_program
from .codegen.schedules import schedule_of
from .codegen.splitting import split
from .codegen.toolchain import compile_object
from .kernel import Kernel
from .language.instance import Instance
from .options import Options
from .polyhedral import Relations, relations
from .polyhedral.fusion import fuse
from .polyhedral.isl import MAX_OPERATIONS, limited
from .polyhedral.schedule import Schedule

MAX_SOURCE_CHARACTERS = 4 << 20
GENERAL_FLAGS = ("-O3", "-fopenmp-simd")
"""Flags for code that takes sizes as parameters, whose vectors the C compiler chooses."""

Group = tuple[tuple[Dim, ...], list[Coalesced], list[Plan]]
"""Loops that nests share, the nests, and their plans."""


class FusionWarning(UserWarning):
    """The definition is too large for the requested fusion, so its statements are not fused."""


@dataclasses.dataclass(frozen=True, slots=True)
class Compiled:
    """Result of code generation, before the C compiler runs.

    Attributes:
        groups: the groups of nests and their plans (see `plan_groups`).
        seconds: duration of each step.
    """

    program: Program
    schedule: Schedule
    groups: list[Group]
    threads: int
    seconds: dict[str, float]

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of each nest."""
        return tuple(plan for _, _, plans in self.groups for plan in plans)


def compile_instance(
    instance: Instance,
    options: Options | None = None,
    *,
    timeout_s: float = 60.0,
    memory_bytes: int = 2 << 30,
) -> Kernel:
    """Compile an instance for this machine's CPU.

    Args:
        options: compile options; by default a model of the processor chooses them.
        timeout_s: time limit of the C compiler in seconds.
        memory_bytes: memory limit of the C compiler.

    Raises:
        KernelCompileError: the C compiler is missing, fails or reaches a limit.
        MissingExtraError: `islpy` is not installed.
    """
    options = options or Options()
    generated = generate(instance, options)
    start = time.perf_counter()
    path = compile_object(
        generated.program,
        options.compiler,
        options.extra_flags,
        timeout_s=timeout_s,
        memory_bytes=memory_bytes,
    )
    seconds = {**generated.seconds, "compile": time.perf_counter() - start}
    return Kernel(
        instance,
        options,
        generated.program.source,
        generated.schedule,
        path,
        generated.threads,
        seconds,
    )


def compile_general(
    instance: Instance, *, timeout_s: float = 60.0, memory_bytes: int = 2 << 30
) -> Kernel:
    """Compile an instance to code that other sizes share; see `codegen.general`.

    It is slower than the code of `compile_instance`, but the C compiler runs only once.

    Raises:
        KernelCompileError: the C compiler is missing, fails or reaches a limit.
    """
    start = time.perf_counter()
    program = write_general(instance, this_machine())
    options = Options(extra_flags=GENERAL_FLAGS)
    written = time.perf_counter()
    path = compile_object(
        program,
        options.compiler,
        options.extra_flags,
        timeout_s=timeout_s,
        memory_bytes=memory_bytes,
    )
    seconds = {"write": written - start, "compile": time.perf_counter() - written}
    return Kernel(
        instance,
        options,
        program.source,
        general_schedule(instance),
        path,
        default_threads(),
        seconds,
        program.parameters,
    )


def generate(
    instance: Instance,
    options: Options | None = None,
    machine: Machine | None = None,
    *,
    max_operations: int = MAX_OPERATIONS,
) -> Compiled:
    """Generate the C source of an instance and check its schedule, without compiling.

    If the dependence analysis of all statements exceeds its limit, the statements are not fused,
    only the dependences of each statement on itself are computed, and a `FusionWarning` is issued.

    Args:
        max_operations: limit on isl operations for each step.

    Raises:
        IllegalScheduleError: the schedule breaks a dependence, which is a bug of the generator.
        SchedulingLimitError: even the analysis of a single statement exceeds its limit.
        KernelCompileError: the source would be too long.
    """
    options = options or Options()
    machine = machine or this_machine()
    threads = options.threads or default_threads()
    start = time.perf_counter()
    try:
        dependences = relations(instance, max_operations=max_operations)
        return _generate(instance, options, machine, threads, dependences, start)
    except SchedulingLimitError as error:
        warnings.warn(
            f"The {len(instance.statements)} statements of `{instance.name}` are not fused: "
            f"{error}",
            FusionWarning,
            stacklevel=3,
        )
    options = options.with_fusion("min")
    try:
        dependences = relations(instance, is_whole=False, max_operations=max_operations)
        return _generate(instance, options, machine, threads, dependences, start)
    except SchedulingLimitError as error:
        raise SchedulingLimitError(
            f"A statement of `{instance.name}` cannot be compiled: {error} Split it into several "
            "statements with fewer indices and accesses."
        ) from error


def plan_groups(
    instance: Instance,
    options: Options,
    machine: Machine,
    threads: int,
    dependences: Relations,
) -> list[Group]:
    """Return the groups of nests that share loops."""
    between = dependences.parts[0][1]
    parallel = dependences.parallel_loops()
    with limited(dependences.max_operations):
        groups = fuse(instance, between, options.intra_fusion, parallel)
        choices = choices_of(options, threads)
        nests = _cheapest(instance, groups, machine, choices)
        fused = fuse_outer(instance, between, nests, options.outer_fusion, machine, choices)
    planned_groups = []
    for group in fused:
        placed_nests, group_plans = zip(*planned_nests(group, machine, choices), strict=True)
        planned_groups.append((group.dims, list(placed_nests), list(group_plans)))
    return planned_groups


def _generate(
    instance: Instance,
    options: Options,
    machine: Machine,
    threads: int,
    dependences: Relations,
    start: float,
) -> Compiled:
    analysed = time.perf_counter()
    planned_groups = plan_groups(instance, options, machine, threads, dependences)
    schedule = schedule_of(instance, planned_groups, machine)
    planned = time.perf_counter()
    dependences.check(schedule)
    checked = time.perf_counter()
    program = write_program(
        instance,
        [
            (dims, [placed.nest for placed in placed_nests], group_plans)
            for dims, placed_nests, group_plans in planned_groups
        ],
        machine,
        threads,
    )
    if len(program.source) > MAX_SOURCE_CHARACTERS:
        raise KernelCompileError(
            f"The generated source of `{instance.name}` has {len(program.source)} characters; at "
            f"most {MAX_SOURCE_CHARACTERS} are allowed. Split the definition."
        )
    seconds = {
        "dependences": analysed - start,
        "plan": planned - analysed,
        "check": checked - planned,
        "write": time.perf_counter() - checked,
    }
    return Compiled(program, schedule, planned_groups, threads, seconds)


def _cheapest(
    instance: Instance, groups: Sequence[Sequence[int]], machine: Machine, choices: Choices
) -> list[Nest]:
    """Return the nests of all groups.

    Two reductions of the same input run in one pass, which reads the input once, unless separate
    passes are cheaper because each can pack its own operand.
    """
    nests = []
    for group in groups:
        joined = gather_nests(instance, [group])
        if any(len(nest.updates) > 1 for nest in joined):
            apart = gather_nests(instance, [group], joins_reductions=False)
            joined = min(
                (joined, apart),
                key=lambda candidates: sum(
                    choose_plan(coalesce(nest).nest, machine, choices).cycles for nest in candidates
                ),
            )
        nests += [piece for nest in joined for piece in split(nest)]
    return nests


def choices_of(options: Options, threads: int) -> Choices:
    """Return the options that affect plans."""
    return Choices(
        threads=threads,
        micro=options.micro,
        k_block=options.k_block,
        vector_index=options.vector_index,
        pack=options.pack,
        prefetch=options.prefetch,
        parallel_depth=options.parallel_depth,
        unroll=options.unroll,
        tile=options.tile,
        is_scalar=options.backend == "scalar",
    )

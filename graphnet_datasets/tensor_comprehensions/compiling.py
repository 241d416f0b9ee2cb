"""From an instance to a kernel: fusion, nests, plans, a checked schedule, C, a shared object."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Sequence

from ..errors import KernelCompileError, SchedulingLimitError
from .codegen.choices import Choices
from .codegen.choosing import choose_plan
from .codegen.coalescing import coalesce
from .codegen.elements import Nest
from .codegen.machine import Machine, default_threads, this_machine
from .codegen.nests import gather_nests
from .codegen.outer import fuse_outer
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


class FusionWarning(UserWarning):
    """A definition was too large for the fusion asked for, so its statements stay apart."""


@dataclasses.dataclass(frozen=True, slots=True)
class Compiled:
    """What is known of a kernel before the C compiler has seen it.

    Attributes:
        plans: how each nest is computed.
        seconds: what each step took.
    """

    program: Program
    schedule: Schedule
    plans: tuple[Plan, ...]
    threads: int
    seconds: dict[str, float]


def compile_instance(
    instance: Instance,
    options: Options | None = None,
    *,
    timeout_s: float = 60.0,
    memory_bytes: int = 2 << 30,
) -> Kernel:
    """Return a kernel that computes an instance on this machine's processor.

    Args:
        options: how; the defaults are chosen by a model of the processor.
        timeout_s: how long the C compiler may take.
        memory_bytes: how much memory it may take.

    Raises:
        KernelCompileError: the C compiler is missing, fails or reaches a limit.
        MissingExtraError: `islpy` is not installed.
    """
    options = options or Options()
    made = generate(instance, options)
    start = time.perf_counter()
    path = compile_object(
        made.program,
        options.compiler,
        options.extra_flags,
        timeout_s=timeout_s,
        memory_bytes=memory_bytes,
    )
    seconds = {**made.seconds, "compile": time.perf_counter() - start}
    return Kernel(
        instance, options, made.program.source, made.schedule, path, made.threads, seconds
    )


def generate(
    instance: Instance,
    options: Options | None = None,
    machine: Machine | None = None,
    *,
    max_operations: int = MAX_OPERATIONS,
) -> Compiled:
    """Return the C of an instance and its checked schedule, without compiling it.

    Where the dependences of all statements together would take too long, none are merged and only
    those of each statement on itself are computed; a warning says so.

    Args:
        max_operations: what isl may do for each of these steps.

    Raises:
        IllegalScheduleError: the schedule breaks a dependence; this is an error of the generator.
        SchedulingLimitError: a single statement would take too long as well.
        KernelCompileError: the source would be too long.
    """
    options = options or Options()
    machine = machine or this_machine()
    threads = options.threads or default_threads()
    start = time.perf_counter()
    try:
        needed = relations(instance, max_operations=max_operations)
        return _generated(instance, options, machine, threads, needed, start)
    except SchedulingLimitError as error:
        warnings.warn(
            f"The {len(instance.statements)} statements of `{instance.name}` stay apart, each with "
            f"loops of its own: {error}",
            FusionWarning,
            stacklevel=3,
        )
    options = options.with_fusion("min")
    try:
        needed = relations(instance, is_whole=False, max_operations=max_operations)
        return _generated(instance, options, machine, threads, needed, start)
    except SchedulingLimitError as error:
        raise SchedulingLimitError(
            f"A statement of `{instance.name}` cannot be compiled: {error} Write it as several "
            "statements of fewer indices and accesses."
        ) from error


def _generated(
    instance: Instance,
    options: Options,
    machine: Machine,
    threads: int,
    needed: Relations,
    start: float,
) -> Compiled:
    analysed = time.perf_counter()
    between = needed.parts[0][1]
    parallel = needed.parallel_loops()
    with limited(needed.max_operations):
        groups = fuse(instance, between, options.intra_fusion, parallel)
        nests = _cheapest(instance, groups, machine, choices_of(options, threads))
        fused = fuse_outer(instance, between, nests, options.outer_fusion, machine, threads)
    choices = choices_of(options, threads)
    placed = [(each, [coalesce(nest) for nest in each.nests]) for each in fused]
    planned_groups = [
        (
            each.dims,
            inside,
            [
                choose_plan(
                    nest.nest,
                    machine,
                    dataclasses.replace(choices, parallel_depth=0) if each.dims else choices,
                )
                for nest in inside
            ],
        )
        for each, inside in placed
    ]
    plans = tuple(plan for _, _, inside in planned_groups for plan in inside)
    schedule = schedule_of(instance, planned_groups, machine)
    planned = time.perf_counter()
    needed.check(schedule)
    checked = time.perf_counter()
    program = write_program(
        instance,
        [(dims, [each.nest for each in inside], own) for dims, inside, own in planned_groups],
        machine,
        threads,
    )
    if len(program.source) > MAX_SOURCE_CHARACTERS:
        raise KernelCompileError(
            f"The generated code of `{instance.name}` has {len(program.source)} characters; at "
            f"most {MAX_SOURCE_CHARACTERS} are compiled. Split the definition."
        )
    seconds = {
        "dependences": analysed - start,
        "plan": planned - analysed,
        "check": checked - planned,
        "write": time.perf_counter() - checked,
    }
    return Compiled(program, schedule, plans, threads, seconds)


def _cheapest(
    instance: Instance, groups: Sequence[Sequence[int]], machine: Machine, choices: Choices
) -> list[Nest]:
    """Return the nests of all groups; two reductions of one input are one pass where that pays.

    One pass reads the input once. Apart, each can have an operand of its own packed.
    """
    found = []
    for group in groups:
        joined = gather_nests(instance, [group])
        if any(len(each.updates) > 1 for each in joined):
            apart = gather_nests(instance, [group], joins_reductions=False)
            joined = min(
                (joined, apart),
                key=lambda nests: sum(
                    choose_plan(coalesce(each).nest, machine, choices).cycles for each in nests
                ),
            )
        found += [piece for nest in joined for piece in split(nest)]
    return found


def choices_of(options: Options, threads: int) -> Choices:
    """Return the part of the options that plans depend on."""
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

"""The options of a tensor comprehension as a search space of `graphnet_datasets.tuning`."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import GraphNetError, TuningError
from ...tuning.candidate import Candidate, Origin, ProgramGraph
from ...tuning.interfaces import Space
from ...tuning.knobs import trace_knobs
from ...tuning.task import Task
from ..cache import GENERATOR_VERSION
from ..codegen.machine import this_machine
from ..codegen.plans import Traffic
from ..compiling import Group, plan_groups
from ..language.instance import Instance
from ..options import Options
from ..polyhedral import Relations, relations
from ..tuner.space import Space as OptionSpace
from ..tuner.space import space_of
from .graph import graph_of_groups
from .making import instance_of, options_of, trace_of

MAX_ENUMERATED = 4096
MAX_ATTEMPTS = 8
"""Draws per requested candidate, since some draws are repeated."""
_MAX_CACHED = 4096
_MUTATION_RATE = 0.07
_MODES = ("tile", "lanes", "scalar")
_FLAGS = ("-O3", "-fno-schedule-insns2")


class OptionsSpace(Space):
    """The options of `tuner.space` of each task; with `templates`, the few that matter most.

    Templates contain the register tile and packing for products, and the vectorised index, the
    number of parallel loops and the compiler's flags for other definitions, so that they can be
    enumerated. Features and graphs describe the planned loop nests, without generating code.
    """

    feature_set = f"tc-nests/{GENERATOR_VERSION}"

    def __init__(self, *, kind: str = "sketches") -> None:
        self._has_templates = kind == "templates"
        self._tasks: dict[str, tuple[Task, Instance, OptionSpace, Relations]] = {}
        self._groups = functools.lru_cache(_MAX_CACHED)(self._planned)

    def add(self, task: Task) -> None:
        """Register a task, as `sample` does, before its candidates are passed to other methods.

        Raises:
            TuningError: the workload is not a tensor comprehension, or is too large to analyse.
        """
        if task.task_id in self._tasks:
            return
        instance = instance_of(task)
        parameters = space_of(instance).parameters
        if self._has_templates:
            names = {"micro", "pack"}
            if not any(statement.reductions for statement in instance.statements):
                names = {"vector_index", "parallel_depth", "extra_flags"}
            parameters = tuple(pair for pair in parameters if pair[0] in names)
        try:
            dependences = relations(instance)
        except GraphNetError as error:
            raise TuningError(
                f"The task `{task.task_name}` cannot be analysed: {error} Tune other tasks."
            ) from error
        self._tasks[task.task_id] = task, instance, OptionSpace(parameters), dependences

    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` candidates with random options."""
        self.add(task)
        space = self._of(task.task_id)[2]
        generator = random.Random(seed)  # noqa: S311 (a search, no secret)
        traces: dict[str, None] = {}
        for _ in range(MAX_ATTEMPTS * n):
            if len(traces) >= n:
                break
            traces.setdefault(trace_of(space.draw(generator, Options())))
        return [Candidate(task.task_id, trace, self._origin) for trace in traces]

    def enumerate(self, task: Task) -> list[Candidate] | None:
        """Return all candidates, or None if there are more than `MAX_ENUMERATED`."""
        self.add(task)
        parameters = self._of(task.task_id)[2].parameters
        if math.prod(len(values) for _, values in parameters) > MAX_ENUMERATED:
            return None
        names = [name for name, _ in parameters]
        choices = itertools.product(*(values for _, values in parameters))
        options = [Options(**dict(zip(names, values, strict=True))) for values in choices]
        traces = dict.fromkeys(map(trace_of, options))
        return [Candidate(task.task_id, trace, self._origin) for trace in traces]

    def mutate(self, candidate: Candidate, seed: int) -> Candidate | None:
        """Return a candidate with one option drawn anew, and others with a small probability."""
        task, _, space, _ = self._of(candidate.task_id)
        generator = random.Random(seed)  # noqa: S311
        options = options_of(task, candidate.trace_json)
        name, values = generator.choice(space.parameters)
        changed = options.replace(**{name: generator.choice(values)})
        return _child(candidate, space.mutate(generator, changed, _MUTATION_RATE))

    def crossover(self, first: Candidate, second: Candidate, seed: int) -> Candidate | None:
        """Return a candidate that takes each option from one of two candidates."""
        task, _, space, _ = self._of(first.task_id)
        if second.task_id != first.task_id:
            return None
        generator = random.Random(seed)  # noqa: S311
        parents = [options_of(task, parent.trace_json) for parent in (first, second)]
        return _child(first, space.cross(generator, parents))

    def knobs(self, candidate: Candidate) -> Mapping[str, float]:
        """Return the options that differ from the default."""
        return trace_knobs(candidate.trace_json)

    def features(self, candidate: Candidate) -> np.ndarray:
        """Return float32 [nests, f]."""
        options = options_of(self._of(candidate.task_id)[0], candidate.trace_json)
        return features_of_groups(self._groups(candidate.task_id, options), options)

    def graph(self, candidate: Candidate) -> ProgramGraph:
        """Return the planned loop nests as a graph."""
        task, instance, _, _ = self._of(candidate.task_id)
        options = options_of(task, candidate.trace_json)
        return graph_of_groups(instance, self._groups(candidate.task_id, options))

    @property
    def _origin(self) -> Origin:
        return Origin.TEMPLATE if self._has_templates else Origin.RANDOM

    def _of(self, task_id: str) -> tuple[Task, Instance, OptionSpace, Relations]:
        if task_id not in self._tasks:
            raise TuningError(
                f"The candidate's task `{task_id}` is unknown to the space. Pass the task to "
                "`sample` or `add` first."
            )
        return self._tasks[task_id]

    def _planned(self, task_id: str, options: Options) -> Sequence[Group]:
        task, instance, _, dependences = self._of(task_id)
        try:
            return plan_groups(instance, options, this_machine(), options.threads or 1, dependences)
        except GraphNetError as error:
            raise TuningError(
                f"Options of the task `{task.task_name}` cannot be planned: {error} Leave out this "
                "candidate."
            ) from error


def features_of_groups(groups: Sequence[Group], options: Options) -> np.ndarray:
    """Return float32 [nests, f] of planned groups; logs are to base 2.

    A row has the logs of the extents of up to six dimensions and three reductions, the loops that
    the group shares and its nests; the operations and accesses of a step; the mode, one-hot; logs
    of the vectors and rows of the register tile, of the block of terms, of two cache blocks and of
    the estimated cycles; the parallel loops, prefetch distance, unroll factor and packing; the
    reductions and epilogues; and the compiler's flags.
    """
    rows = []
    for shared, nests, plans in groups:
        for placed, plan in zip(nests, plans, strict=True):
            nest, traffic = placed.nest, Traffic.of(placed.nest)
            blocks = [size for _, size in plan.blocks]
            rows.append(
                [
                    *_logs([dim.extent for dim in nest.dims], 6),
                    *_logs([dim.extent for dim in nest.reductions], 3),
                    *(len(shared), len(nests)),
                    *(traffic.operations, len(traffic.elements)),
                    *(float(plan.mode == mode) for mode in _MODES),
                    *_logs([plan.num_vectors, math.prod(size for _, size in plan.rows)], 2),
                    *_logs([plan.k_block], 1),
                    *_logs(blocks, 2),
                    *_logs([int(plan.cycles)], 1),
                    *(plan.num_parallel, plan.prefetch, plan.unroll),
                    0.0 if plan.packed is None else 2.0 - plan.packed.is_first,
                    *(len(nest.updates), len(nest.epilogues)),
                    *(float(flag in options.extra_flags) for flag in _FLAGS),
                ]
            )
    return np.array(rows, np.float32)


def _logs(sizes: Sequence[int], count: int) -> list[float]:
    logs = [math.log2(1 + size) for size in sizes[:count]]
    return logs + [0.0] * (count - len(logs))


def _child(parent: Candidate, options: Options) -> Candidate | None:
    trace = trace_of(options)
    if trace == parent.trace_json:
        return None
    return Candidate(parent.task_id, trace, Origin.MUTATE)

"""The search space of MetaSchedule: sketches, random decisions and mutations.

Use this module only in isolated processes, because it parses workloads and traces. Elsewhere use
`isolated_space.IsolatedSpace`, which offers the same space.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..decoding import load_json
from ..errors import TuningError
from .candidate import Candidate, Origin, ProgramGraph
from .extract import load_target, load_workload, replay, tool_versions, trace_text
from .interfaces import Space
from .intrinsics import import_meta_schedule
from .knobs import trace_knobs
from .machine_code import MACHINE_CODE_SET, machine_code_features
from .task import Task
from .tir_graph import graph_of_function
from .tir_lowering import build, lowered

FEATURE_SET = "tvm-per-store-164"
"""The features of Ansor's cost model (`PerStoreFeature` in TVM). A row per store statement
describes loops, the buffers read and written, and arithmetic."""

MAX_ATTEMPTS = 8
"""Draws per requested candidate, since some draws are invalid or repeated."""

_MAX_SEED = 2**31 - 1


@dataclasses.dataclass
class _Context:
    """TVM's tuning context of a task: sketches and mutators."""

    task: Task
    workload: Any
    tune_context: Any
    sketches: list[Any]
    mutators: list[Any]
    mutator_probabilities: np.ndarray


class TvmSpace(Space):
    """The space of `PostOrderApply`: the rules of the target kind, then its postprocessors.

    A sketch is a trace without decisions. A candidate's trace contains its decisions and the
    effects of the postprocessors, so that it replays alone. TVM uses one thread. Tasks and traces
    must pass the verifier unless `trust_remote_code`.
    """

    machine_code_set = MACHINE_CODE_SET

    def __init__(self, *, trust_remote_code: bool = False) -> None:
        self._trust_remote_code = trust_remote_code
        self._ms = import_meta_schedule()
        self._tvm = importlib.import_module("tvm")
        self._extractor = self._ms.feature_extractor.PerStoreFeature()
        self._contexts: dict[str, _Context] = {}
        version = ".".join(tool_versions()["tvm"].split(".")[:2])
        self.feature_set = f"{FEATURE_SET}/{version}"

    def add(self, task: Task) -> None:
        """Register a task, as `sample` does, before its candidates are passed to other methods.

        Raises:
            TuningError: its workload or target cannot be parsed, or no rule applies to it.
        """
        if task.task_id in self._contexts:
            return
        trust = self._trust_remote_code
        workload = load_workload(task.workload_json, trust_remote_code=trust)
        target = load_target(task.target_json, trust_remote_code=trust)
        try:
            tune_context = self._ms.TuneContext(
                workload,
                target=target,
                space_generator="post-order-apply",
                search_strategy=self._ms.search_strategy.ReplayTrace(),
                num_threads=1,  # the default counts all processors, even busy ones
                rand_state=1,
            )
            sketches = [space.trace for space in tune_context.generate_design_space()]
        except Exception as error:  # TVM raises many types
            raise TuningError(
                f"TVM has no schedules for the task `{task.task_name}`: {_last_line(error)}. Tune "
                "other tasks."
            ) from error
        weights = tune_context.space_generator.mutator_probs
        probabilities = np.array([float(probability) for probability in weights.values()])
        self._contexts[task.task_id] = _Context(
            task,
            workload,
            tune_context,
            sketches,
            list(weights),
            probabilities / probabilities.sum(),
        )

    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` candidates with random sketches and random decisions."""
        self.add(task)
        context = self._contexts[task.task_id]
        random = np.random.default_rng(seed)
        traces: dict[str, None] = {}
        trace_class = importlib.import_module("tvm.s_tir.schedule").Trace
        for _ in range(MAX_ATTEMPTS * n):
            if len(traces) >= n:
                break
            sketch = context.sketches[int(random.integers(len(context.sketches)))]
            text = self._apply(context, trace_class(sketch.insts, {}), _seed_of(random))
            if text is not None:
                traces.setdefault(text)
        return [Candidate(task.task_id, text, Origin.RANDOM) for text in traces]

    def mutate(self, candidate: Candidate, seed: int) -> Candidate | None:
        """Return a candidate with one decision changed by a mutator of TVM, or None."""
        context = self._context_of(candidate)
        random = np.random.default_rng(seed)
        trace = self._replay(context, candidate.trace_json).trace
        index = int(random.choice(len(context.mutators), p=context.mutator_probabilities))
        apply = importlib.import_module("tvm.s_tir.meta_schedule._ffi_api").MutatorApply
        try:
            mutated = apply(context.mutators[index], trace, _seed_of(random))
        except Exception:  # TVM raises many types if a decision cannot be changed
            return None
        if mutated is None:
            return None
        return self._candidate(candidate, self._apply(context, mutated, _seed_of(random)))

    def crossover(self, first: Candidate, second: Candidate, seed: int) -> Candidate | None:
        """Return a child of two candidates of the same sketch, choosing each decision at random."""
        context = self._context_of(first)
        if second.task_id != first.task_id:
            return None
        random = np.random.default_rng(seed)
        try:
            first_trace, second_trace = (
                load_json(trace.trace_json, "a trace") for trace in (first, second)
            )
            if _kinds(first_trace) != _kinds(second_trace):
                return None
            second_decisions = dict((int(index), value) for index, value in second_trace[1])
            decisions = [
                [index, second_decisions.get(int(index), value) if random.random() < 0.5 else value]
                for index, value in first_trace[1]
            ]
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise TuningError(
                f"A trace is not a MetaSchedule trace: {error}. Pass candidates of this space."
            ) from error
        try:
            trace = self._replay(context, json.dumps([first_trace[0], decisions])).trace
        except TuningError:  # the decisions are incompatible
            return None
        return self._candidate(first, self._apply(context, trace, _seed_of(random)))

    def features(self, candidate: Candidate) -> np.ndarray:
        """Return float32 [stores, 164]."""
        (matrix,) = self._extract([candidate])
        return matrix

    def knobs(self, candidate: Candidate) -> Mapping[str, float]:
        """Return the decisions in the trace."""
        return trace_knobs(candidate.trace_json)

    def graph(self, candidate: Candidate) -> ProgramGraph:
        """Return the lowered program of a schedule as a graph.

        Raises:
            TuningError: the trace does not replay, or the schedule cannot be lowered.
        """
        context = self._context_of(candidate)
        schedule = self._replay(context, candidate.trace_json)
        try:
            program = lowered(schedule.mod)
        except Exception as error:  # TVM raises many types
            raise TuningError(
                f"A schedule cannot be lowered: {_last_line(error)}. Leave out this candidate."
            ) from error
        return graph_of_function(program["main"])

    def machine_code(self, candidate: Candidate) -> np.ndarray:
        """Return the features of LLVM's assembly, float32 [n], in the order of `FEATURE_NAMES`.

        Raises:
            TuningError: the trace does not replay, or the schedule does not compile.
        """
        context = self._context_of(candidate)
        schedule = self._replay(context, candidate.trace_json)
        target = load_target(context.task.target_json, trust_remote_code=self._trust_remote_code)
        try:
            assembly = build(schedule.mod, target).inspect_source("asm")
        except Exception as error:  # TVM and LLVM raise many types
            raise TuningError(
                f"A schedule cannot be compiled: {_last_line(error)}. Leave out this candidate."
            ) from error
        return machine_code_features(assembly)

    def features_of_schedule(self, task: Task, schedule: Any) -> np.ndarray:
        """Return the features of a task's schedule, float32 [stores, 164]."""
        self.add(task)
        candidate = self._ms.MeasureCandidate(schedule, [])
        context = self._contexts[task.task_id].tune_context
        (extracted,) = self._extractor.extract_from(context, [candidate])
        return np.asarray(extracted.numpy(), np.float32)

    def _extract(self, candidates: Sequence[Candidate]) -> list[np.ndarray]:
        matrices = []
        for candidate in candidates:
            context = self._context_of(candidate)
            schedule = self._replay(context, candidate.trace_json)
            try:
                matrices.append(self.features_of_schedule(context.task, schedule))
            except Exception as error:  # TVM raises many types
                raise TuningError(
                    f"A schedule has no features: {_last_line(error)}. Leave out this candidate."
                ) from error
        return matrices

    def _replay(self, context: _Context, trace_json: str) -> Any:
        return replay(context.workload, trace_json, trust_remote_code=self._trust_remote_code)

    def _context_of(self, candidate: Candidate) -> _Context:
        context = self._contexts.get(candidate.task_id)
        if context is None:
            raise TuningError(
                f"The candidate's task `{candidate.task_id}` is unknown to the space. Pass the "
                "task to `sample` or `add` first."
            )
        return context

    def _apply(self, context: _Context, trace: Any, seed: int) -> str | None:
        """Return a trace with missing decisions sampled and postprocessors applied, or None."""
        try:
            schedule = self._tvm.s_tir.Schedule(
                context.workload, seed=seed, debug_mask=0, error_render_level="none"
            )
            trace.apply_to_schedule(schedule, remove_postproc=True)
            schedule.enter_postproc()
            for postprocessor in context.tune_context.space_generator.postprocs:
                if not postprocessor.apply(schedule):
                    return None
            return trace_text(schedule.trace)
        except Exception:  # TVM raises many types if a decision is invalid
            return None

    def _candidate(self, parent: Candidate, text: str | None) -> Candidate | None:
        if text is None or text == parent.trace_json:
            return None
        return Candidate(parent.task_id, text, Origin.MUTATE)


def _kinds(trace: Any) -> list[Any]:
    """Return the instructions with their attributes, which traces of one sketch share."""
    return [[instruction[0], instruction[2]] for instruction in trace[0]]


def _seed_of(random: np.random.Generator) -> int:
    return int(random.integers(1, _MAX_SEED))


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip().rstrip(".")[:300]

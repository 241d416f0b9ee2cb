"""The schedules of tasks as MetaSchedule makes them: sketches, random decisions, mutations.

For isolated processes: it parses workloads and traces. `isolated_space.IsolatedSpace` is the same
space for any other process.
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
from .task import Task
from .tir_graph import graph_of_function
from .tir_lowering import lowered

FEATURE_SET = "tvm-per-store-164"
"""The features of Ansor's cost model, a row for each statement that stores: of loops, of buffers
read and written, of arithmetic. TVM's `PerStoreFeature`."""

MAX_ATTEMPTS = 8
"""Draws for each candidate that is asked for: some break a rule, some come twice."""

_MAX_SEED = 2**31 - 1


@dataclasses.dataclass
class _Context:
    """What TVM knows of a task: its rules, its sketches, its mutators."""

    task: Task
    workload: Any
    tune_context: Any
    sketches: list[Any]
    mutators: list[Any]
    mutator_probabilities: np.ndarray


class TvmSpace(Space):
    """The space of `PostOrderApply`: the rules of the target's kind, then its postprocessors.

    A sketch is a trace without decisions. A candidate's trace has its decisions and what the
    postprocessors did, so that it replays alone. Threads of TVM are never more than one. Tasks and
    traces pass the verifier unless `trust_remote_code`.
    """

    def __init__(self, *, trust_remote_code: bool = False) -> None:
        self._trust_remote_code = trust_remote_code
        self._ms = import_meta_schedule()
        self._tvm = importlib.import_module("tvm")
        self._extractor = self._ms.feature_extractor.PerStoreFeature()
        self._contexts: dict[str, _Context] = {}
        version = ".".join(tool_versions()["tvm"].split(".")[:2])
        self.feature_set = f"{FEATURE_SET}/{version}"

    def add(self, task: Task) -> None:
        """Make a task known, as `sample` does; `mutate` and `features` know candidates by it.

        Raises:
            TuningError: its workload or target cannot be read, or no rule applies to it.
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
                num_threads=1,  # the default asks psutil, whatever the machine is busy with
                rand_state=1,
            )
            sketches = [each.trace for each in tune_context.generate_design_space()]
        except Exception as error:  # whatever TVM raises
            raise TuningError(
                f"TVM has no schedules for the task `{task.task_name}`: {_last_line(error)}."
            ) from error
        found = tune_context.space_generator.mutator_probs
        probabilities = np.array([float(each) for each in found.values()])
        self._contexts[task.task_id] = _Context(
            task, workload, tune_context, sketches, list(found), probabilities / probabilities.sum()
        )

    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` candidates, each of a sketch and decisions drawn at random."""
        self.add(task)
        context = self._contexts[task.task_id]
        random = np.random.default_rng(seed)
        found: dict[str, None] = {}
        trace_class = importlib.import_module("tvm.s_tir.schedule").Trace
        for _ in range(MAX_ATTEMPTS * n):
            if len(found) >= n:
                break
            sketch = context.sketches[int(random.integers(len(context.sketches)))]
            text = self._apply(context, trace_class(sketch.insts, {}), _seed_of(random))
            if text is not None:
                found.setdefault(text)
        return [Candidate(task.task_id, text, Origin.RANDOM) for text in found]

    def mutate(self, candidate: Candidate, seed: int) -> Candidate | None:
        """Return a candidate with one decision changed: TVM's mutators at their probabilities."""
        context = self._context_of(candidate)
        random = np.random.default_rng(seed)
        trace = self._replay(context, candidate.trace_json).trace
        index = int(random.choice(len(context.mutators), p=context.mutator_probabilities))
        apply = importlib.import_module("tvm.s_tir.meta_schedule._ffi_api").MutatorApply
        try:
            mutated = apply(context.mutators[index], trace, _seed_of(random))
        except Exception:  # whatever TVM raises where a decision cannot be changed
            return None
        if mutated is None:
            return None
        return self._candidate(candidate, self._apply(context, mutated, _seed_of(random)))

    def crossover(self, first: Candidate, second: Candidate, seed: int) -> Candidate | None:
        """Return a child of two candidates of one sketch: each decision of one of both."""
        context = self._context_of(first)
        if second.task_id != first.task_id:
            return None
        random = np.random.default_rng(seed)
        try:
            ours, theirs = (load_json(trace.trace_json, "a trace") for trace in (first, second))
            if _kinds(ours) != _kinds(theirs):
                return None
            other = dict((int(index), value) for index, value in theirs[1])
            decisions = [
                [index, other.get(int(index), value) if random.random() < 0.5 else value]
                for index, value in ours[1]
            ]
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise TuningError(f"A trace is not one of TVM: {error}.") from error
        try:
            trace = self._replay(context, json.dumps([ours[0], decisions])).trace
        except TuningError:  # the decisions of both do not fit together
            return None
        return self._candidate(first, self._apply(context, trace, _seed_of(random)))

    def features(self, candidate: Candidate) -> np.ndarray:
        """Return float32 [stores, 164]."""
        (found,) = self._extract([candidate])
        return found

    def features_of(self, candidates: Sequence[Candidate]) -> list[np.ndarray | None]:
        """Return the features of many, None for a trace that does not replay."""
        found: list[np.ndarray | None] = []
        for each in candidates:
            try:
                found.append(self.features(each))
            except TuningError:
                found.append(None)
        return found

    def knobs(self, candidate: Candidate) -> Mapping[str, float]:
        """Return the decisions in the trace's text."""
        return trace_knobs(candidate.trace_json)

    def graph(self, candidate: Candidate) -> ProgramGraph:
        """Return the scheduled program, lowered, as a graph.

        Raises:
            TuningError: the trace does not replay, or its schedule cannot be lowered.
        """
        context = self._context_of(candidate)
        schedule = self._replay(context, candidate.trace_json)
        try:
            program = lowered(schedule.mod)
        except Exception as error:  # whatever TVM raises
            raise TuningError(f"A schedule cannot be lowered: {_last_line(error)}.") from error
        return graph_of_function(program["main"])

    def features_of_schedule(self, task: Task, schedule: Any) -> np.ndarray:
        """Return float32 [stores, 164] of a schedule of a task."""
        self.add(task)
        candidate = self._ms.MeasureCandidate(schedule, [])
        context = self._contexts[task.task_id].tune_context
        (found,) = self._extractor.extract_from(context, [candidate])
        return np.asarray(found.numpy(), np.float32)

    def _extract(self, candidates: Sequence[Candidate]) -> list[np.ndarray]:
        found = []
        for each in candidates:
            context = self._context_of(each)
            schedule = self._replay(context, each.trace_json)
            try:
                found.append(self.features_of_schedule(context.task, schedule))
            except Exception as error:  # whatever TVM raises
                raise TuningError(f"A schedule has no features: {_last_line(error)}.") from error
        return found

    def _replay(self, context: _Context, trace_json: str) -> Any:
        return replay(context.workload, trace_json, trust_remote_code=self._trust_remote_code)

    def _context_of(self, candidate: Candidate) -> _Context:
        found = self._contexts.get(candidate.task_id)
        if found is None:
            raise TuningError(
                f"The task `{candidate.task_id}` of a candidate is not known to the space. Pass "
                "its task to `sample` or `add` first."
            )
        return found

    def _apply(self, context: _Context, trace: Any, seed: int) -> str | None:
        """Return the text of a trace with decisions where it had none, and postprocessed."""
        try:
            schedule = self._tvm.s_tir.Schedule(
                context.workload, seed=seed, debug_mask=0, error_render_level="none"
            )
            trace.apply_to_schedule(schedule, remove_postproc=True)
            schedule.enter_postproc()
            for each in context.tune_context.space_generator.postprocs:
                if not each.apply(schedule):
                    return None
            return trace_text(schedule.trace)
        except Exception:  # whatever TVM raises where a decision does not fit
            return None

    def _candidate(self, parent: Candidate, text: str | None) -> Candidate | None:
        if text is None or text == parent.trace_json:
            return None
        return Candidate(parent.task_id, text, Origin.MUTATE)


def _kinds(trace: Any) -> list[Any]:
    """Return what two traces of one sketch share: their instructions with attributes."""
    return [[each[0], each[2]] for each in trace[0]]


def _seed_of(random: np.random.Generator) -> int:
    return int(random.integers(1, _MAX_SEED))


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip().rstrip(".")[:300]

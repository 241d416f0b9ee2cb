"""The child side of calls with other sizes and numbers: eager plans them, a candidate follows."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ...compilers import make_compiler
from ...compilers.replacement import is_replacement
from ...errors import FixedInputError
from ...frameworks import make_inputs, materialize
from ...frameworks.outputs import append_described
from ...inputs.storage import STORAGE
from ...isolation import Reporter, describe_error
from ...sample import Sample
from ...schema.sample_files import read_sample
from ...scores.tolerance import min_t
from ...transforms.symbolic import find_literals, split_uses
from ..handover import VARIED, WRITTEN, varied_message
from ..varied_calls import (
    DISTINCT_T,
    MAX_FROZEN,
    MAX_LITERALS,
    MAX_SCALARS,
    VariedCall,
    VaryingPlan,
    as_called,
    other_numbers,
    other_sizes,
    plan_calls,
    with_literals,
)
from ..worker_job import WorkerJob
from .arms import Arm, Workload
from .kept_outputs import Outputs
from .setup import load_workload

WHOLE_BYTES = 2**24
"""The size of a call's outputs, in bytes, up to which all elements are compared."""
MAX_FILE_BYTES = 2**30
"""The limit of a file of outputs; beyond it, outputs with frozen sizes and numbers are omitted."""
_FIRST_INDEX = 2**20
"""The input set of the first varied call; lower sets belong to `Workload`."""

_Number: TypeAlias = float | int | bool


class VaryingWorkload(Workload):
    """A workload whose input sets from `_FIRST_INDEX` on are those of varied calls."""

    def __init__(self, runtime: Any, sample: Sample, **options: Any) -> None:
        self.calls: list[VariedCall] = []
        super().__init__(runtime, sample, **options)
        plain = self._make_inputs
        draw = functools.partial(
            make_inputs,
            sample,
            seed=self.seed,
            **{name: options[name] for name in ("mode", "device", "weights")},
        )

        def make(index: int) -> dict[str, Any]:
            number = index - _FIRST_INDEX
            if not 0 <= number < len(self.calls):
                return plain(index)
            call = self.calls[number]
            return {**draw(sizes=call.sizes), **call.scalars}

        self._make_inputs = make

    def add(self, call: VariedCall) -> int:
        """Add a call and return the number of its input set."""
        self.calls.append(call)
        return _FIRST_INDEX + len(self.calls) - 1


def run_eager_varied(job: WorkerJob, reporter: Reporter, directory: Path) -> None:
    """Find sizes and numbers that eager supports, call eager with them and report the outputs."""
    sample = read_sample(directory)
    reporter.enter("baseline")
    count = job.settings.num_variations - 1
    literals = () if is_replacement(job.compiler) else find_literals(sample)
    tried = tuple(literals)[:MAX_LITERALS]
    called = _called(job, sample, tried)
    explorer = _Explorer(_load(job, directory, called), sample.hints)
    sizes = explorer.find_sizes(sample, count)
    own, lifted = _split_scalars(called, len(tried))
    values = explorer.find_values((*own, *lifted), count)
    is_random = explorer.is_random()
    del explorer

    literals = tuple(literal for literal, name in zip(tried, lifted, strict=True) if name in values)
    called = _called(job, sample, literals)
    changing = {name: values[name] for name in own if name in values}
    for name, old_name in zip(
        _split_scalars(called, len(literals))[1],
        (name for name in lifted if name in values),
        strict=True,
    ):
        changing[name] = values[old_name]
    workload = _load(job, directory, called)
    workload.note_writes()
    base = {name: workload.first[name] for names in _split_scalars(called, 0) for name in names}
    calls = plan_calls(sample.hints, base, sizes, changing)
    arm = Arm(workload, workload.module)
    start = None
    frozen = None if workload.is_writing else _Frozen(job, with_literals(sample, literals), calls)
    with (directory / VARIED).open("wb") as file:
        for number, call in enumerate(calls):
            arm.prepare(workload.add(call))
            arm()
            outputs = workload.runtime.excerpt(arm.results(), start)
            if number == 0 and sum(memoryview(data).nbytes for *_, data in outputs) > WHOLE_BYTES:
                start = int.from_bytes(os.urandom(4), "little")
                outputs = workload.runtime.excerpt(arm.results(), start)
            reporter.send({varied_message(number): append_described(outputs, file)})
            frozen_outputs = () if frozen is None else frozen.outputs(workload, number, start)
            for place, outputs in enumerate(frozen_outputs):
                if file.tell() > MAX_FILE_BYTES:
                    break
                reporter.send({varied_message(number, place): append_described(outputs, file)})
    plan = VaryingPlan(calls, literals, start)
    written = [*workload.written, *workload.state]
    reporter.send({"plan": plan.to_json(), "is_random": is_random, WRITTEN: written})


def run_candidate_varied(job: WorkerJob, reporter: Reporter, directory: Path) -> None:
    """Compile once, make the calls of the plan and hand over the outputs of each."""
    plan = VaryingPlan.from_json(job.varying or {})
    workload = _load(job, directory, _called(job, read_sample(directory), plan.literals))
    runtime = workload.runtime
    indices = [workload.add(call) for call in plan.calls]
    reporter.enter("baseline")
    workload.note_writes()
    workload.note_variation()
    # Set up before the candidate is imported, since it may bind the counted functions.
    count_others = runtime.count_compilations()

    reporter.enter("compile")
    compiler = make_compiler(job.compiler, job.framework, job.options)
    compiler.graph_inputs = workload.graph_inputs()
    compiler.graph_attributes = workload.attributes
    compiler.use_caches(directory / "cache")
    if job.compile_cache:
        compiler.carry_caches(Path(job.compile_cache), directory / "cache")
    arguments = workload.arguments(indices[0])
    runtime.seed(workload.seed)
    compiled = compiler.compile(workload.module, arguments)
    del arguments

    reporter.enter("run")
    arm = Arm(workload, compiled)
    counts = compiler.num_compilations(), count_others()
    with (directory / VARIED).open("wb") as file:
        for number, index in enumerate(indices):
            report: dict[str, Any] = {}
            try:
                compiler.check_inputs(workload.inputs(index))
                arm.prepare(index)
                arm()
                outputs = runtime.excerpt(arm.results(), plan.start)
                report["written"] = arm.find_foreign_write()
            except FixedInputError as error:
                report |= {"verdict": "unsupported", "error": describe_error(error)}
            except Exception as error:  # candidates may raise any type
                report |= {"verdict": "failed", "error": describe_error(error)}
                report["phase"] = compiler.phase_of(error)
            else:
                reporter.send({varied_message(number): append_described(outputs, file)})
            now = compiler.num_compilations(), count_others()
            growth = (after - before for after, before in zip(now, counts, strict=True))
            report["num_compilations"] = max(0, *growth)
            counts = now
            reporter.send({f"varied call {number}": report})


class _Explorer:
    """Call eager with other sizes and numbers, and record those that it supports."""

    def __init__(self, workload: VaryingWorkload, hints: Mapping[str, int]) -> None:
        self._workload, self._hints = workload, dict(hints)
        workload.note_writes()
        self._base_outputs = self._call({}, {}) or []
        self._is_base_finite = self._is_finite

    def find_sizes(self, sample: Sample, count: int) -> list[dict[str, int]]:
        """Return up to `count` sets of sizes that eager supports."""
        sizes: list[dict[str, int]] = []
        for candidate in other_sizes(sample) if sample.is_dynamic else ():
            if len(sizes) == count:
                break
            if self._call(candidate, {}) is not None:
                sizes.append(candidate)
        return sizes

    def find_values(self, names: Sequence[str], count: int) -> dict[str, list[_Number]]:
        """Return up to `count` other values for each scalar input that changes the outputs.

        The outputs differ from those of the first value and from each other.
        """
        values: dict[str, list[_Number]] = {}
        for name in names:
            if len(values) == MAX_SCALARS:
                break
            seen, effective = [self._base_outputs], []
            for value in other_numbers(self._workload.first[name]):
                outputs = self._call({}, {name: value})
                if outputs is not None and all(_are_distinct(outputs, other) for other in seen):
                    seen.append(outputs)
                    effective.append(value)
                if len(effective) == count:
                    break
            if effective:
                values[name] = effective
        return values

    def is_random(self) -> bool:
        """Return whether the outputs depend on the seed of the generators."""
        return self._call({}, {}, seed_offset=1) != self._base_outputs

    def _call(
        self,
        sizes: Mapping[str, int],
        scalars: Mapping[str, _Number],
        seed_offset: int = 0,
    ) -> Outputs | None:
        """Return the outputs, or None if eager raises or a finite result becomes non-finite."""
        workload = self._workload
        runtime = workload.runtime
        index = workload.add(VariedCall("base", {**self._hints, **sizes}, scalars))
        try:
            arguments = workload.arguments(index)
            runtime.seed(workload.seed + seed_offset)
            results = workload.module(**arguments)
            self._is_finite = all(is_finite for *_, is_finite in runtime.digest(results))
            outputs = runtime.excerpt(results, None)
        except Exception:  # whatever an operator raises that does not take them
            return None
        if getattr(self, "_is_base_finite", False) and not self._is_finite:
            return None
        return [(dtype, shape, bytes(elements)) for dtype, shape, elements in outputs]


class _Frozen:
    """Eager with parts of the graph frozen to sizes or numbers of an earlier call.

    All symbols that are inputs are frozen together. Each use of a changing scalar input is frozen
    separately, because a compiler may freeze a number in a single operator.
    """

    def __init__(self, job: WorkerJob, sample: Sample, calls: Sequence[VariedCall]) -> None:
        base = calls[0].scalars
        changing = [
            name for name in base if any(call.scalars[name] != base[name] for call in calls)
        ]
        self._sample, self._old_name_of = split_uses(sample, changing)
        self._symbols = [
            name
            for name, value in zip(sample.input_names, sample.inputs, strict=True)
            if value.role == "symbol"
        ]
        self._job, self._calls = job, calls
        self._module: Callable[..., Any] | None = None

    def outputs(
        self, workload: VaryingWorkload, number: int, start: int | None
    ) -> Iterator[Outputs]:
        """Yield the outputs of a call for each part that may be frozen, at most `MAX_FROZEN`."""
        call = self._calls[number]
        own = self._draw(call.sizes) | dict(call.scalars)
        own |= {new: call.scalars[old] for new, old in self._old_name_of.items()}
        for changes in itertools.islice(self._changes(number), MAX_FROZEN):
            inputs = {name: workload.runtime.clone(value) for name, value in own.items()}
            outputs = self._call(workload, inputs | changes, start)
            if outputs is not None:
                yield outputs

    def _call(
        self, workload: VaryingWorkload, inputs: Mapping[str, Any], start: int | None
    ) -> Outputs | None:
        """Return the outputs, or None if eager raises because the sizes do not fit."""
        try:
            module = self._materialized()
            workload.runtime.seed(workload.seed)
            return workload.runtime.excerpt(module(**inputs), start)
        except Exception:  # whatever an operator raises that does not take them
            return None

    def _changes(self, number: int) -> Iterator[dict[str, Any]]:
        call, earlier = self._calls[number], self._calls[:number]
        if call.kind == "sizes" and self._symbols:
            for other in earlier:
                if other.sizes != call.sizes:
                    drawn = self._draw(other.sizes)
                    yield {name: drawn[name] for name in self._symbols}
        for new, old in self._old_name_of.items():
            values = dict.fromkeys(other.scalars[old] for other in earlier)
            yield from ({new: value} for value in values if value != call.scalars[old])

    def _draw(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        return make_inputs(self._sample, **self._options, sizes=sizes)

    def _materialized(self) -> Callable[..., Any]:
        settings = self._job.settings
        module = self._module or materialize(
            self._sample,
            **self._options,
            memory_limit_bytes=settings.memory_limit_bytes,
            trust_remote_code=settings.trust_remote_code,
            allow_unchecked_operators=True,
        )
        self._module = module
        return module

    @property
    def _options(self) -> dict[str, Any]:
        settings = self._job.settings
        return {
            "seed": settings.seed,
            "mode": settings.input_mode,
            "device": self._job.device,
            "weights": settings.weights,
        }


def _called(job: WorkerJob, sample: Sample, literals: Sequence[float | int]) -> Sample:
    """Return the graph that candidates replace or compile, the latter with literals as inputs."""
    return sample if is_replacement(job.compiler) else as_called(sample, literals)


def _load(job: WorkerJob, directory: Path, sample: Sample) -> VaryingWorkload:
    workload = load_workload(job, directory, sample, VaryingWorkload)
    assert isinstance(workload, VaryingWorkload)  # noqa: S101 - for the type checker
    return workload


def _split_scalars(sample: Sample, num_lifted: int) -> tuple[list[str], list[str]]:
    """Return the names of the sample's own scalar inputs, and of those lifted from literals."""
    names = [
        name
        for name, value in zip(sample.input_names, sample.inputs, strict=True)
        if value.role == "scalar"
    ]
    split = len(names) - num_lifted
    return names[:split], names[split:]


def _are_distinct(outputs: Outputs, others: Outputs) -> bool:
    """Return whether a stored answer to one call would be detected as wrong for the other."""
    if len(outputs) != len(others):
        return True
    for (dtype, shape, elements), (_, other_shape, other_elements) in zip(
        outputs, others, strict=True
    ):
        if list(shape) != list(other_shape):
            return True
        left, right = (np.frombuffer(data, STORAGE[dtype]) for data in (elements, other_elements))
        if left.size and min_t(left, right, dtype) > DISTINCT_T:
            return True
    return False

"""One arm of a run: a callable with fresh inputs before each call and nothing stale behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from ...frameworks import make_inputs, materialize
from ...sample import Sample
from ...sample.vocabulary import WEIGHT_ROLES
from .runtimes import Runtime


class Workload:
    """A sample as something to call, and its inputs in sets that calls take in turn.

    The weights are the same in every set. Set `k` has its data inputs drawn with seed `seed + k`.
    The first `num_sets` sets are kept; of all others, any number there is, only the latest.
    `written` names the inputs that the graph itself writes to, and `state` holds, by name, the
    weights inside the module that it writes to, as they were; `note_writes` finds both.
    """

    def __init__(
        self,
        runtime: Runtime,
        sample: Sample,
        *,
        device: str,
        weights: Literal["inputs", "parameters"],
        mode: Literal["replay", "probe"],
        seed: int,
        num_sets: int,
        memory_limit_bytes: int | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        self.runtime, self.seed = runtime, seed
        self._materialize = lambda: materialize(
            sample,
            device=device,
            weights=weights,
            seed=seed,
            mode=mode,
            memory_limit_bytes=memory_limit_bytes,
            trust_remote_code=trust_remote_code,
        )
        self._make_inputs = lambda index, weights: make_inputs(
            sample, seed=seed + index, mode=mode, device=device, weights=weights
        )
        self.module = self._materialize()
        first = self._make_inputs(0, weights)
        self._weight_names = frozenset(
            name
            for name, each in zip(sample.input_names, sample.inputs, strict=True)
            if each.role in WEIGHT_ROLES
        )
        self.sets = {0: first}
        for index in range(1, num_sets):
            self.sets[index] = {**first, **self._make_inputs(index, "parameters")}
        self._latest: tuple[int, dict[str, Any]] = (0, first)
        self._held = runtime.tensors_of(self.module)
        self.written: tuple[str, ...] = ()
        self.state: dict[str, Any] = {}
        self.checksums: dict[str, int] = {}

    def inputs(self, index: int) -> dict[str, Any]:
        """Return set `index`, which is not to be written to."""
        if index in self.sets:
            return self.sets[index]
        if index != self._latest[0]:
            made = self._make_inputs(index, "parameters")
            self._latest = (index, {**self.sets[0], **made})
        return self._latest[1]

    def arguments(self, index: int) -> dict[str, Any]:
        """Return set `index` with copies of all that a call may write to, and restore the state.

        Weights that the graph does not write to are handed over as they are: they may fill most of
        the memory.
        """
        for name, pristine in self.state.items():
            self.runtime.restore(self._held[name], pristine)
        return {
            name: value
            if name in self._weight_names and name not in self.written
            else self.runtime.clone(value)
            for name, value in self.inputs(index).items()
        }

    def note_writes(self) -> None:
        """Call the module once and remember what it wrote to.

        By checksums: torch counts the writes to a tensor, but some operators, such as batch_norm
        with its running statistics, write past the count.
        """
        before = self._checksums()
        arguments = self.arguments(0)
        self.runtime.seed(self.seed)
        self.module(**arguments)
        self.checksums = self._checksums()
        touched = {name for name, each in self.checksums.items() if each != before[name]}
        self.state = {}
        self.written = tuple(
            name
            for name, value in arguments.items()
            if (name in touched and name not in self._held)
            or not self.runtime.is_equal(value, self.sets[0][name])
        )
        if touched & self.sets[0].keys():
            pristine = self._make_inputs(0, "inputs")
            for each in self.sets.values():
                each |= {name: pristine[name] for name in touched if name in each}
        if touched & self._held.keys():
            fresh = self.runtime.tensors_of(self._materialize())
            self.state = {name: fresh[name] for name in self._held if name in touched}

    @property
    def is_writing(self) -> bool:
        """Whether the graph changes what it is given: a second call differs from the first."""
        return bool(self.written or self.state)

    def find_changed_weight(self) -> str | None:
        """Return the name of a weight that has changed although eager does not write to it."""
        now = self._checksums()
        for name, checksum in self.checksums.items():
            if name not in self.written and name not in self.state and checksum != now[name]:
                return name
        return None

    def _checksums(self) -> dict[str, int]:
        weights = {
            name: value for name, value in self.sets[0].items() if name in self._weight_names
        }
        return {
            name: self.runtime.checksum(tensor)
            for name, tensor in {**weights, **self._held}.items()
        }

    def effects(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return what the graph has written to besides its outputs: they are judged as well."""
        return [
            *(arguments[name] for name in self.written),
            *(self._held[name] for name in self.state),
        ]

    def find_foreign_write(self, arguments: Mapping[str, Any], index: int) -> str | None:
        """Return the name of an input that was written to although eager leaves it as it is."""
        for name, value in arguments.items():
            pristine = self.inputs(index)[name]
            if name not in self.written and not self.runtime.is_equal(value, pristine):
                return name
        return None

    def protected(self) -> set[int]:
        """Return the memory that must not be overwritten when an output is thrown away."""
        return self.runtime.storages(
            *self._held.values(),
            *(value for each in self.sets.values() for value in each.values()),
        )


class Arm:
    """A callable that is given fresh inputs before each call (`prepare`), outside the clock.

    The outputs of eager are overwritten before the next call of either arm, so that a candidate
    that returns memory without writing to it finds no answer there. A candidate's outputs are left
    alone: they may be constants that it folded.
    """

    def __init__(self, workload: Workload, call: Callable[..., Any], *, is_poisoned: bool) -> None:
        self._workload, self._call = workload, call
        self._protected = workload.protected() if is_poisoned else None
        self._arguments: dict[str, Any] = {}
        self._outputs: Any = None
        self._set_index = 0
        self._captured: Any = None

    def capture(self) -> None:
        """Put the call into a CUDA graph; from now on it is replayed (see `cuda_graphs`).

        Raises:
            RuntimeError: it cannot be captured.
        """
        from .cuda_graphs import CapturedCall

        workload = self._workload
        self._captured = CapturedCall(
            self._call, lambda: workload.arguments(0), workload.runtime.device
        )

    def release(self) -> None:
        """Go back to plain calls."""
        self._captured = None

    def prepare(self, set_index: int) -> None:
        """Lay out the inputs of the next call, and seed the generators for it."""
        self.discard()
        self._set_index = set_index
        self._arguments = self._workload.arguments(set_index)
        if self._captured is not None:
            self._captured.load(self._arguments)
            self._arguments = self._captured.buffers
        self._workload.runtime.seed(self._workload.seed + set_index)

    def __call__(self) -> None:
        """Call it on the inputs laid out; this is what a clock is held to."""
        if self._captured is None:
            self._outputs = self._call(**self._arguments)
        else:
            self._outputs = self._captured()

    def results(self) -> Any:
        """Return the outputs of the last call and, behind them, what else the graph wrote to."""
        effects = self._workload.effects(self._arguments)
        return (self._outputs, effects) if effects else self._outputs

    def discard(self) -> None:
        """Throw the outputs of the last call away."""
        if self._protected is not None:
            self._workload.runtime.poison(self._outputs, self._protected)
        self._outputs = None
        self._arguments = {}

    def find_foreign_write(self) -> str | None:
        """Return the name of an input that the last call wrote to and eager does not."""
        return self._workload.find_foreign_write(self._arguments, self._set_index)

"""The arms of a run: callables that get fresh inputs before each call and hide old outputs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from ...analysis.attributes import attributes_of
from ...frameworks import make_inputs, materialize
from ...frameworks.protocols import Runtime
from ...sample import Sample
from ...sample.vocabulary import WEIGHT_ROLES
from ..handover import MAX_SET
from .outside_state import Change, OutsideState

VARIATION_SETS = (1, MAX_SET)
"""Input sets used to check eager before the candidate is loaded; no call draws the last one."""
_FIRST_CALLS = 3
"""The number of first candidate calls after each of which the state is checked."""
_Digest: TypeAlias = "list[tuple[str, tuple[int, ...], int, bool]]"


class Workload:
    """A sample as a callable module, with numbered input sets for its calls.

    Set 0 is the recorded sample with its stored elements. Set `k` is drawn with seed `seed + k` and
    varies every input that may vary, including stored integers, masks and weights that are inputs.
    Set 0 stays in memory, and of the other sets only the latest. `has_second` reserves weights for
    a second arm (`for_candidate`), which take `copied_bytes` more.

    `written` names the inputs that the graph writes to. `state` maps the module's weights that the
    graph writes to their original values. `note_writes` determines both.
    """

    CHANGING = frozenset({"_latest"})

    def __init__(
        self,
        runtime: Runtime,
        sample: Sample,
        *,
        device: str,
        weights: Literal["inputs", "parameters"],
        mode: Literal["replay", "probe"],
        seed: int,
        memory_limit_bytes: int | None = None,
        trust_remote_code: bool = False,
        has_second: bool = False,
        is_known_to_fit: bool = False,
    ) -> None:
        self.runtime, self.seed = runtime, seed
        self.attributes = attributes_of(sample)
        self._materialize = lambda: materialize(
            sample,
            device=device,
            weights=weights,
            seed=seed,
            mode=mode,
            memory_limit_bytes=memory_limit_bytes,
            trust_remote_code=trust_remote_code,
            allow_unchecked_operators=True,  # this process runs nothing but the sample
            is_known_to_fit=is_known_to_fit,
        )
        self.is_fresh = True
        self._make_inputs = lambda index: make_inputs(
            sample,
            seed=seed + index,
            mode="fresh" if index and mode == "replay" and self.is_fresh else mode,
            device=device,
            weights=weights,
        )
        # The framework allocates both copies of the weights at the same time: the memory location
        # and page size change the duration of a call by a few percent.
        drawn = self._materialize()
        num_bytes = runtime.num_bytes(*runtime.tensors_of(drawn).values())
        is_separate = memory_limit_bytes is None or 4 * num_bytes <= memory_limit_bytes
        self.module, *self._spares = runtime.copy_module(
            drawn, 1 + has_second, is_separate=is_separate
        )
        self.copied_bytes = num_bytes * len(self._spares) if is_separate else 0
        del drawn
        self.first = self._make_inputs(0)
        self._input_names = sample.input_names
        self._weight_names = frozenset(
            name
            for name, value in zip(sample.input_names, sample.inputs, strict=True)
            if value.role in WEIGHT_ROLES
        )
        self._latest: tuple[int, dict[str, Any]] = (0, self.first)
        self._held = runtime.tensors_of(self.module)
        self.written: tuple[str, ...] = ()
        self.state: dict[str, Any] = {}
        self.checksums: dict[str, int] = {}
        self.constant_outputs: frozenset[int] = frozenset()

    def for_candidate(self) -> Workload:
        """Return a copy of the workload whose module has its own weights if memory permits."""
        workload = copy.copy(self)
        (workload.module,) = self._spares
        workload._held = self.runtime.tensors_of(workload.module)
        return workload

    def graph_inputs(self) -> dict[str, Any]:
        """Return all inputs of the graph by name, with None for those that calls pass."""
        return {name: self._held.get(name) for name in self._input_names}

    def forget_spares(self) -> None:
        """Release the weights that were copied for a second arm."""
        self._spares = []

    def inputs(self, index: int) -> dict[str, Any]:
        """Return input set `index`; the caller must not write to it."""
        if index == 0:
            return self.first
        if index != self._latest[0]:
            self._latest = (0, self.first)  # frees the old weights before allocating new ones
            self._latest = (index, self._make_inputs(index))
        return self._latest[1]

    def forget_inputs(self) -> None:
        """Release all inputs; no calls are possible afterwards."""
        self.first = {}
        self._latest = (0, self.first)

    def arguments(self, index: int, *, are_all_copies: bool = False) -> dict[str, Any]:
        """Return copies of input set `index` for a call, and restore the state.

        Weights that the graph does not write to are passed without a copy, since they may fill most
        of the memory. `are_all_copies` copies them as well.
        """
        for name, pristine in self.state.items():
            self.runtime.restore(self._held[name], pristine)
        return {
            name: value
            if name in self._weight_names and name not in self.written and not are_all_copies
            else self.runtime.clone(value)
            for name, value in self.inputs(index).items()
        }

    def note_writes(self) -> None:
        """Call the module once and record the tensors it writes to.

        Writes are detected by checksums: torch's version counter misses some operators, such as
        batch_norm with its running statistics.
        """
        before = self._checksums()
        arguments = self.arguments(0)
        self.runtime.seed(self.seed)
        self.module(**arguments)
        self.checksums = self._checksums()
        touched = {name for name, checksum in self.checksums.items() if checksum != before[name]}
        self.state = {}
        self.written = tuple(
            name
            for name, value in arguments.items()
            if (name in touched and name not in self._held)
            or not self.runtime.is_equal(value, self.first[name])
        )
        if touched & self.first.keys():
            pristine = self._make_inputs(0)
            self.first |= {name: pristine[name] for name in touched if name in self.first}
            self._latest = (0, self.first)
        if touched & self._held.keys():
            fresh = self.runtime.tensors_of(self._materialize())
            self.state = {name: fresh[name] for name in self._held if name in touched}

    def note_variation(self) -> bool:
        """Call the module on other input sets; return whether its outputs depend on its inputs.

        Eager may not support redrawn integers and masks: it raises, or returns other shapes or more
        non-finite elements. In this case all sets use the recorded values, and `is_fresh` is False.
        """
        first = self._digest(0)
        others = self._digests(is_fresh=True)
        if others is None or not all(_is_alike(first, other) for other in others):
            recorded = self._digests(is_fresh=False)
            if others is None or (recorded and all(_is_alike(first, item) for item in recorded)):
                others = recorded
            else:
                self.is_fresh = True  # shapes depend on the elements in any case
        self._latest = (0, self.first)
        if others is None or any(len(other) != len(first) for other in others):
            return True
        self.constant_outputs = frozenset(
            place
            for place, item in enumerate(first)
            if all(other[place] == item for other in others)
        )
        return not first or len(self.constant_outputs) < len(first)

    def _digests(self, *, is_fresh: bool) -> list[_Digest] | None:
        """Return the digests on `VARIATION_SETS`, or None if eager raises."""
        self.is_fresh = is_fresh
        self._latest = (0, self.first)
        try:
            return [self._digest(index) for index in VARIATION_SETS]
        except Exception:  # operators may raise any type for unsupported elements
            return None

    def _digest(self, index: int) -> _Digest:
        arguments = self.arguments(index)
        self.runtime.seed(self.seed + index)
        outputs = self.module(**arguments)
        effects = self.effects(arguments)
        return self.runtime.digest((outputs, effects) if effects else outputs)

    @property
    def is_writing(self) -> bool:
        """True if the graph writes to its inputs or weights, so that calls affect later calls."""
        return bool(self.written or self.state)

    def find_changed_weight(self) -> str | None:
        """Return the name of a weight that changed although eager does not write to it, or None."""
        now = self._checksums()
        for name, checksum in self.checksums.items():
            if name not in self.written and name not in self.state and checksum != now[name]:
                return name
        return None

    def _checksums(self) -> dict[str, int]:
        weights = {name: value for name, value in self.first.items() if name in self._weight_names}
        return {
            name: self.runtime.checksum(tensor)
            for name, tensor in {**weights, **self._held}.items()
        }

    def effects(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the tensors that the graph wrote to besides its outputs; these are judged too."""
        return [
            *(arguments[name] for name in self.written),
            *(self._held[name] for name in self.state),
        ]

    def find_foreign_write(self, arguments: Mapping[str, Any], index: int) -> str | None:
        """Return the name of an input that was written to, unlike under eager, or None."""
        for name, value in arguments.items():
            pristine = self.inputs(index)[name]
            if name not in self.written and not self.runtime.is_equal(value, pristine):
                return name
        return None

    def protected(self) -> set[int]:
        """Return the storages that must not be overwritten when outputs are discarded."""
        return self.runtime.storages(
            *self._held.values(),
            *self.first.values(),
        )


class Arm:
    """A callable that receives fresh inputs before each call (`prepare`), outside the timed window.

    The outputs are overwritten before the next call of either arm (`discard`). A candidate that
    returns memory without writing to it therefore never returns an old answer. Outputs that are
    constant under eager are not overwritten: a compiler may have folded them and hold the only
    copy.
    """

    CHANGING = frozenset({"_arguments", "_outputs", "_set_index", "_captured"})

    def __init__(self, workload: Workload, call: Callable[..., Any]) -> None:
        self._workload, self._call = workload, call
        self._protected = workload.protected()
        self._arguments: dict[str, Any] = {}
        self._outputs: Any = None
        self._set_index = 0
        self._captured: Any = None

    def capture(self) -> None:
        """Capture the call in a CUDA graph and replay it from now on (see torch's `cuda_graphs`).

        Raises:
            RuntimeError: the call cannot be captured.
        """
        workload = self._workload
        self._captured = workload.runtime.capture(
            self._call, lambda: workload.arguments(0, are_all_copies=True)
        )

    def release(self) -> None:
        """Return to calls without a CUDA graph."""
        self._captured = None

    def prepare(self, set_index: int, draw: int = 0) -> None:
        """Copy the inputs of the next call and seed the generators.

        Calls on the same inputs use different seeds if they have different values of `draw`.
        """
        self.discard()
        self._set_index = set_index
        self._arguments = self._workload.arguments(set_index)
        if self._captured is not None:
            self._captured.load(self._arguments)
            self._arguments = self._captured.buffers
        self._workload.runtime.seed(self._workload.seed + set_index + draw)

    def __call__(self) -> None:
        """Call the arm on the prepared inputs; this is the timed part."""
        if self._captured is None:
            self._outputs = self._call(**self._arguments)
        else:
            self._outputs = self._captured()

    def results(self) -> Any:
        """Return the outputs of the last call and any other tensors that the graph wrote to."""
        effects = self._workload.effects(self._arguments)
        return (self._outputs, effects) if effects else self._outputs

    def discard(self) -> None:
        """Overwrite and release the outputs of the last call."""
        if self._outputs is not None:
            runtime = self._workload.runtime
            preserved = self._protected | runtime.storages(*self._arguments.values())
            runtime.poison(self._outputs, preserved, self._workload.constant_outputs)
        self._outputs = None
        self._arguments = {}

    def find_foreign_write(self) -> str | None:
        """Return the name of an input that the last call, unlike eager, wrote to, or None."""
        return self._workload.find_foreign_write(self._arguments, self._set_index)


class WatchedArm(Arm):
    """The candidate's arm, which records or restores process state that its calls change.

    The state is checked after each of the first calls, and after all calls together
    (`find_changes`). With `restores` it is checked and restored after every call, so that eager
    never runs in a state that the candidate left behind.
    """

    CHANGING = Arm.CHANGING | {"_num_calls", "_changes"}

    def __init__(
        self,
        workload: Workload,
        call: Callable[..., Any],
        outside: OutsideState,
        *,
        restores: bool,
    ) -> None:
        super().__init__(workload, call)
        self._outside, self._restores = outside, restores
        self._num_calls = 0
        self._changes: dict[str, Change] = {}

    def prepare(self, set_index: int, draw: int = 0) -> None:
        """Prepare the inputs of the next call and record the seed at its start."""
        super().prepare(set_index, draw)
        if self._num_calls < _FIRST_CALLS:
            self._outside.renew("seed")

    def look_at_state(self) -> None:
        """Record state changes of the last call, and undo them if this arm restores the state."""
        if self._num_calls < _FIRST_CALLS:
            self._note(self._outside.undo(("seed", "process")))
        elif self._restores:
            self._note(self._outside.undo())
        self._num_calls += 1

    def find_changes(self) -> list[Change]:
        """Restore the state after all calls and return the changes that the calls made."""
        self._note(self._outside.undo())
        return list(self._changes.values())

    def _note(self, changes: list[Change]) -> None:
        for change in changes:
            self._changes.setdefault(change.name, change)


def _is_alike(first: _Digest, other: _Digest) -> bool:
    """Return whether outputs differ at most in their elements, without new non-finite elements."""
    return len(first) == len(other) and all(
        (left[0], left[1]) == (right[0], right[1]) and (right[3] or not left[3])
        for left, right in zip(first, other, strict=True)
    )

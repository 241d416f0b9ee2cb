"""One arm of a run: a callable with fresh inputs before each call and nothing stale behind it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from ...frameworks import make_inputs, materialize
from ...frameworks.runtime import Runtime
from ...sample import Sample
from ...sample.vocabulary import WEIGHT_ROLES
from ..handover import MAX_SET
from .outside_state import Change, OutsideState

VARIATION_SETS = (1, MAX_SET)
"""Sets on which eager is looked at before there is a candidate; the last is drawn for no call."""
_SEEDS_COMPARED = 3
"""Calls of the candidate after which the seed of the generators is looked at."""
_Digest: TypeAlias = "list[tuple[str, tuple[int, ...], int, bool]]"


class Workload:
    """A sample as something to call, and its inputs in sets that calls take in turn.

    Set 0 is as the sample was recorded, with its stored elements. Set `k` is drawn with seed
    `seed + k`, and every input that may differ does: stored integers and masks too, and weights
    where they are inputs. Set 0 is kept; of all others, any number there is, only the latest.
    `has_second` says that there will be a second arm (`for_candidate`), whose weights take
    `copied_bytes` besides.

    `written` names the inputs that the graph itself writes to, and `state` holds, by name, the
    weights inside the module that it writes to, as they were; `note_writes` finds both.
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
        self._materialize = lambda: materialize(
            sample,
            device=device,
            weights=weights,
            seed=seed,
            mode=mode,
            memory_limit_bytes=memory_limit_bytes,
            trust_remote_code=trust_remote_code,
            allow_unchecked_operators=True,  # this process is the sample's own
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
        # Both arms' weights are copies that the framework laid out, at the same time: where memory
        # lies, and on what pages, makes per cents of a call.
        drawn = self._materialize()
        num_bytes = runtime.num_bytes(*runtime.tensors_of(drawn).values())
        is_separate = memory_limit_bytes is None or 4 * num_bytes <= memory_limit_bytes
        self.module, *self._spares = runtime.copy_module(
            drawn, 1 + has_second, is_separate=is_separate
        )
        self.copied_bytes = num_bytes * len(self._spares) if is_separate else 0
        del drawn
        self.first = self._make_inputs(0)
        self._weight_names = frozenset(
            name
            for name, each in zip(sample.input_names, sample.inputs, strict=True)
            if each.role in WEIGHT_ROLES
        )
        self._latest: tuple[int, dict[str, Any]] = (0, self.first)
        self._held = runtime.tensors_of(self.module)
        self.written: tuple[str, ...] = ()
        self.state: dict[str, Any] = {}
        self.checksums: dict[str, int] = {}
        self.constant_outputs: frozenset[int] = frozenset()

    def for_candidate(self) -> Workload:
        """Return the same on a module of its own, whose weights lie elsewhere if there is room."""
        other = copy.copy(self)
        (other.module,) = self._spares
        other._held = self.runtime.tensors_of(other.module)
        return other

    def forget_spares(self) -> None:
        """Let go of the weights that were copied for a second arm."""
        self._spares = []

    def inputs(self, index: int) -> dict[str, Any]:
        """Return set `index`, which is not to be written to."""
        if index == 0:
            return self.first
        if index != self._latest[0]:
            self._latest = (0, self.first)  # lets go of the weights before there are others
            self._latest = (index, self._make_inputs(index))
        return self._latest[1]

    def forget_inputs(self) -> None:
        """Let go of all inputs; there are no more calls after this."""
        self.first = {}
        self._latest = (0, self.first)

    def arguments(self, index: int, *, are_all_copies: bool = False) -> dict[str, Any]:
        """Return set `index` with copies of all that a call may write to, and restore the state.

        Weights that the graph does not write to are handed over as they are unless `are_all_copies`
        is true: they may fill most of the memory.
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
        """Call the module on other sets; return whether its outputs follow its inputs.

        Where eager cannot take integers and masks that were drawn anew (it raises, or gives other
        shapes or more that is not finite), they are as recorded in all sets, which `is_fresh`
        denies.
        """
        first = self._digest(0)
        others = self._digests(is_fresh=True)
        if others is None or not all(_is_alike(first, other) for other in others):
            recorded = self._digests(is_fresh=False)
            if others is None or (recorded and all(_is_alike(first, each) for each in recorded)):
                others = recorded
            else:
                self.is_fresh = True  # shapes follow the elements anyway
        self._latest = (0, self.first)
        if others is None or any(len(other) != len(first) for other in others):
            return True
        self.constant_outputs = frozenset(
            place
            for place, each in enumerate(first)
            if all(other[place] == each for other in others)
        )
        return not first or len(self.constant_outputs) < len(first)

    def _digests(self, *, is_fresh: bool) -> list[_Digest] | None:
        """Return the digests on `VARIATION_SETS`, or None where eager raises."""
        self.is_fresh = is_fresh
        self._latest = (0, self.first)
        try:
            return [self._digest(index) for index in VARIATION_SETS]
        except Exception:  # whatever an operator raises that cannot take such elements
            return None

    def _digest(self, index: int) -> _Digest:
        arguments = self.arguments(index)
        self.runtime.seed(self.seed + index)
        outputs = self.module(**arguments)
        effects = self.effects(arguments)
        return self.runtime.digest((outputs, effects) if effects else outputs)

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
        weights = {name: each for name, each in self.first.items() if name in self._weight_names}
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
            *self.first.values(),
        )


class Arm:
    """A callable that is given fresh inputs before each call (`prepare`), outside the clock.

    Its outputs are overwritten before the next call of either arm (`discard`), so that whoever
    returns memory without writing to it finds no answer there. Those that eager gives alike for all
    inputs are spared: a compiler may have folded them, and hold the only copy.
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
        """Put the call into a CUDA graph; from now on it is replayed (see torch's `cuda_graphs`).

        Raises:
            RuntimeError: it cannot be captured.
        """
        workload = self._workload
        self._captured = workload.runtime.capture(
            self._call, lambda: workload.arguments(0, are_all_copies=True)
        )

    def release(self) -> None:
        """Go back to plain calls."""
        self._captured = None

    def prepare(self, set_index: int, draw: int = 0) -> None:
        """Copy the inputs of the next call, and seed the generators for it.

        Calls on the same inputs have other seeds where they have other numbers of a `draw`.
        """
        self.discard()
        self._set_index = set_index
        self._arguments = self._workload.arguments(set_index)
        if self._captured is not None:
            self._captured.load(self._arguments)
            self._arguments = self._captured.buffers
        self._workload.runtime.seed(self._workload.seed + set_index + draw)

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
        if self._outputs is not None:
            runtime = self._workload.runtime
            kept = self._protected | runtime.storages(*self._arguments.values())
            runtime.poison(self._outputs, kept, self._workload.constant_outputs)
        self._outputs = None
        self._arguments = {}

    def find_foreign_write(self) -> str | None:
        """Return the name of an input that the last call wrote to and eager does not."""
        return self._workload.find_foreign_write(self._arguments, self._set_index)


class WatchedArm(Arm):
    """The candidate's arm: state of the process that its calls change is noted, or restored.

    The first calls are looked at one by one, all of them together at the end (`find_changes`). With
    `restores` each call is, and eager never runs in a state that a candidate has left.
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
        """Lay out the inputs of the next call, and remember the seed that it begins with."""
        super().prepare(set_index, draw)
        if self._num_calls < _SEEDS_COMPARED:
            self._outside.renew("seed")

    def look_at_state(self) -> None:
        """Note changes that the last call made, and undo them if this arm restores the state."""
        if self._num_calls < _SEEDS_COMPARED:
            self._note(self._outside.undo(("seed",)))
        if self._restores:
            self._note(self._outside.undo())
        self._num_calls += 1

    def find_changes(self) -> list[Change]:
        """Restore the state after all calls, and return the changes that they made."""
        self._note(self._outside.undo())
        return list(self._changes.values())

    def _note(self, changes: list[Change]) -> None:
        for change in changes:
            self._changes.setdefault(change.name, change)


def _is_alike(first: _Digest, other: _Digest) -> bool:
    """Tell whether outputs differ in their elements at most, and none is less finite."""
    return len(first) == len(other) and all(
        (one[0], one[1]) == (two[0], two[1]) and (two[3] or not one[3])
        for one, two in zip(first, other, strict=True)
    )

"""Simultaneous shape propagation of a torch sample at several sizes."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from ...errors import GraphNetError, MaterializeError, TimeLimitError
from ...sample import Op, Sample
from ...sample.arguments import Ref
from ...sample.symbols import evaluate
from ..deadline import Deadline
from ..probing import Outcome
from .building.entries import entries_of
from .building.regions import Regions, check_regions
from .operators import lookup
from .walking.confined_fakes import ConfinedFakeMode
from .walking.costly_calls import check_result
from .walking.describing import describe
from .walking.unknown import Unknown, quietly
from .walking.walk import Walk


@contextlib.contextmanager
def probe(
    sample: Sample,
    points: Sequence[Mapping[str, int]],
    *,
    time_limit_s: float | None = None,
    allow_unchecked_operators: bool = False,
) -> Iterator[Prober]:
    """Yield a prober for `points`; see `frameworks.probing.probe`."""
    check_regions(sample)
    deadline = Deadline(time_limit_s)
    mode = ConfinedFakeMode(deadline, f"Finding the shapes of `{sample.id}`")
    with quietly(), _no_reports(), mode, torch.no_grad(), contextlib.ExitStack() as stack:
        walks = [
            _PointWalk(sample, sizes, deadline, mode, allow_unchecked_operators) for sizes in points
        ]
        yield Prober(sample, walks, stack)


@contextlib.contextmanager
def _no_reports() -> Iterator[None]:
    """Suppress torch's log entries for failing calls, most of which are deliberate attempts."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was_disabled


class Prober:
    """Walks at several points in parallel; state operators are called once for all points."""

    def __init__(
        self, sample: Sample, walks: list[_PointWalk], stack: contextlib.ExitStack
    ) -> None:
        self.walks = walks
        self.can_rewind = not any(entry.is_state for entry in entries_of(sample))
        self._num_inputs = len(sample.inputs)
        self._stack = stack
        self._regions = stack.enter_context(Regions())

    def call(self, ops: Sequence[Op]) -> tuple[Outcome, ...]:
        """Call an operator at all points; see `frameworks.probing.Prober`."""
        first = self.walks[0].probe(ops[0], self._regions)
        if first.kind == "failed":  # data-dependent operators may fail even at the captured sizes
            unknown = Outcome("unknown", error=first.error, result=Unknown())
            return (unknown,) * len(ops)
        if lookup(ops[0].target).is_state:
            return (first,) * len(ops)
        others = zip(self.walks[1:], ops[1:], strict=True)
        return (first, *(walk.probe(op, self._regions) for walk, op in others))

    def keep(self, outcomes: Sequence[Outcome]) -> None:
        """Use the outcomes as operands of later operators."""
        for walk, outcome in zip(self.walks, outcomes, strict=True):
            walk.values.append(outcome.result)

    def rewind(self, num_ops: int) -> int:
        """Forget all but the first `num_ops` operators, and return how many are kept."""
        if not self.can_rewind:
            num_ops = 0
            self._stack.close()
            self._regions = self._stack.enter_context(Regions())
        for walk in self.walks:
            del walk.values[self._num_inputs + num_ops :]
        return num_ops


class _PointWalk(Walk):
    """A walk whose next operator and literals are given by the caller."""

    def __init__(
        self,
        sample: Sample,
        sizes: Mapping[str, int],
        deadline: Deadline,
        mode: ConfinedFakeMode,
        allow_unchecked_operators: bool,
    ) -> None:
        super().__init__(
            sample, sizes, None, None, deadline, allow_unchecked_operators, is_quick=True
        )
        self._mode = mode  # shared, because fake tensors of different modes cannot be mixed
        self._check_inputs()
        self.values = [self._input(index) for index in range(len(sample.inputs))]

    def _check_inputs(self) -> None:
        for index, graph_input in enumerate(self.sample.inputs):
            for dim in graph_input.value.shape or ():
                if evaluate(dim, self.sizes) < 0:
                    raise MaterializeError(
                        f"Input `{self.sample.input_names[index]}` of `{self.sample.id}` has a "
                        f"negative size at {dict(self.sizes)}."
                    )

    def probe(self, op: Op, regions: Regions) -> Outcome:
        """Call an operator without keeping its result."""
        if op.target == "operator.setitem" and not isinstance(op.args[-1], Ref):
            return Outcome("known")  # assigning a number fits any size, and calling it is slow
        self.index = len(self.values)
        self.failure = None
        try:
            result = self._call(op, regions)
            check_result(result)
        except TimeLimitError:
            raise
        except GraphNetError as error:
            return Outcome("failed", error=str(error), result=Unknown())
        if self.failure is not None:
            text = str(self.failure).strip().splitlines()
            reason = text[0][:300] if text else type(self.failure).__name__
            return Outcome("failed", error=reason, result=Unknown())
        return _describe(result)


def _describe(result: Any) -> Outcome:
    if type(result) in (bool, int, float):
        return Outcome("known", number=result, result=result)
    if isinstance(result, Unknown):
        return Outcome("unknown", result=result)
    values = tuple(describe(result))
    if any(value.shape is None for value in values):
        return Outcome("unknown", values, result=result)
    return Outcome("known", values, result=result)

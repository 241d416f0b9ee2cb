"""Conversion of graphs of fixed sizes to graphs over symbols."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import TimeLimitError, TransformError, raises_only
from ...frameworks.deadline import Deadline
from ...sample import Sample
from ...sample.symbols import free_symbols
from ..bodies import check_no_bodies
from .dimensions import Dimension, DimensionKind, find_dimensions, kind_of_symbol
from .plans import Plan, finer_plans, first_plans
from .probing import Failure, Found, find_literals_by_probing
from .ranges import find_failures, with_ranges
from .refusals import FixedSizesError, Refused, refusal_of
from .reify import find_misfit, reify
from .verifying import CheckedSizes, check_by_runs, find_culprit
from .writing import declare, write

MAX_REFINEMENTS = 4
"""Maximum number of times that failing expressions are fitted again with additional sizes."""
_NUM_OTHERS = 22


@dataclasses.dataclass(frozen=True)
class Symbolised:
    """A graph over symbols, the kinds of its symbols, and the dimensions that are fixed.

    `checked` are the sizes at which the graph ran; empty without a check.
    """

    sample: Sample
    kinds: Mapping[str, DimensionKind]
    refused: tuple[Refused, ...]
    checked: tuple[Mapping[str, int], ...] = ()


@raises_only(TransformError)
def symbolise(
    sample: Sample,
    *,
    check: bool = True,
    time_limit_s: float | None = None,
    memory_limit_bytes: int | None = None,
    allow_unchecked_operators: bool = False,
) -> Symbolised:
    """Find the dimensions of a graph that can vary, and return it with symbols in their place.

    Candidates are the dimensions of data inputs: `batch`, `height` and `width` (`size` if they must
    be equal), `sequence`, `past`. The graph is walked, without memory, at several sizes of each.
    Literals that depend on sizes (of `view`, `arange`, slices, …) become expressions over the
    symbols, which are graph inputs of role `symbol`. Shapes of results become expressions where one
    fits. Symbols have the range in which the graph could be walked, and a constraint if only
    multiples of a number work. The id ends with `/symbolic`. Weights keep their shapes.

    With `check`, the result runs on the CPU at three other sizes in this process. The search for
    sizes and the graph over all symbols may take `time_limit_s` each (default: two minutes);
    dimensions not tried in that time are fixed.

    Raises:
        TransformError: no dimension can vary; the message names the operator and the reason.
        TimeLimitError: the graph over the symbols takes longer than `time_limit_s`.
        UnknownOperatorError, MaterializeError: the sample cannot be walked without running it.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> whole = Sample("example/flat", "torch", "other",
    ...     (Input("input", Value("float32", (2, 4, 6))),),
    ...     (Op("torch.Tensor.view", (Ref(0), 2, 24)), Op("torch.relu", (Ref(1),))), Ref(2))
    >>> found = symbolise(whole)
    >>> found.sample.inputs[0].value.shape, found.sample.ops[0].args[1:]
    (('batch', 'sequence', 'sequence_2'), (Ref(index=1), Ref(index=2)))
    >>> [symbol.source_name for symbol in found.sample.inputs[1:]]
    ['batch', 'sequence*sequence_2']
    """
    check_no_bodies(sample)
    search = _Symbolising(sample, time_limit_s, allow_unchecked_operators)
    plans = search.find_plans()
    symbolic = search.write(plans)
    checked: CheckedSizes = ()
    if check:
        options = {
            "memory_limit_bytes": memory_limit_bytes,
            "allow_unchecked_operators": allow_unchecked_operators,
        }
        while True:
            try:
                symbolic, checked = check_by_runs(symbolic, search.steps, **options)
                break
            except TransformError as error:
                culprit = find_culprit(symbolic, search.steps, **options)
                symbolic = search.without(culprit, str(error))
    return Symbolised(symbolic, dict(search.kinds), tuple(search.refused), checked)


class _Symbolising:
    def __init__(
        self, sample: Sample, time_limit_s: float | None, allow_unchecked_operators: bool
    ) -> None:
        self.sample = sample
        self.time_limit_s = time_limit_s
        self.deadline = Deadline(time_limit_s)
        self.allow_unchecked_operators = allow_unchecked_operators
        self.refused: list[Refused] = []
        self.kinds: dict[str, DimensionKind] = {}
        self.kept: list[tuple[Dimension, Plan]] = []

    @property
    def limits(self) -> dict[str, Any]:
        """Limits of a walk in the remaining time."""
        self.deadline.check(f"Finding the sizes of `{self.sample.id}`")
        return {
            "time_limit_s": self.deadline.left_s,
            "allow_unchecked_operators": self.allow_unchecked_operators,
        }

    @property
    def steps(self) -> dict[str, int]:
        """Step of each symbol's sizes, counted from its hint."""
        return {dimension.name: plan.step for dimension, plan in self.kept}

    def without(self, name: str, reason: str) -> Sample:
        """Return the graph without a symbol at whose sizes it does not run.

        Raises:
            FixedSizesError: no symbol remains.
        """
        dimension = next(candidate for candidate, _ in self.kept if candidate.name == name)
        self._refuse(dimension, Failure(-1, 0, reason))
        return self.write([pair for pair in self.kept if pair[0].name != name])

    def find_plans(self) -> list[tuple[Dimension, Plan]]:
        """Return the dimensions that vary alone, with their sizes."""
        declared = self._known()
        pairs = []
        for dimension in declared:
            plan = self._plan(dimension)
            if not isinstance(plan, Plan):
                # The graph declares symbols but is fixed: use the sizes of the capture.
                self.sample = dataclasses.replace(reify(self.sample), id=self.sample.id)
                pairs = []
                break
            pairs.append((dimension, plan))
        sides: list[tuple[Dimension, Failure]] = []
        for dimension in find_dimensions(self.sample):
            try:
                plan = self._plan(dimension)
            except TimeLimitError as error:
                plan = Failure(-1, 0, str(error))
            if isinstance(plan, Plan):
                pairs.append((dimension, plan))
            elif dimension.name in ("height", "width"):
                sides.append((dimension, plan))
            else:
                narrowed = self._narrowed(dimension) if self.deadline.left_s else None
                if narrowed is None:
                    self._refuse(dimension, plan)
                else:
                    pairs.append(narrowed)
        pairs += self._together(sides)
        return pairs

    def _known(self) -> list[Dimension]:
        """Return the symbols of the sample."""
        used = {
            name
            for input_value in self.sample.inputs
            for dim in (
                *(input_value.value.shape or ()),
                input_value.source_name if input_value.role == "symbol" else 0,
            )
            if isinstance(dim, str)
            for name in free_symbols(dim)
        }
        return [
            Dimension(symbol.name, kind_of_symbol(self.sample, symbol.name), symbol.hint, ())
            for symbol in self.sample.symbols
            if symbol.name in used
        ]

    def _narrowed(self, dimension: Dimension) -> tuple[Dimension, Plan] | None:
        """Return the dimension with fewer places, if it varies only there."""
        inputs = {index for index, _, _ in dimension.places}
        axes = {axis for _, axis, _ in dimension.places}
        narrower = []
        if len(axes) > 1:
            first = min(axes)
            places = tuple(place for place in dimension.places if place[1] == first)
            narrower.append(dataclasses.replace(dimension, places=places))
        if len(inputs) > 1:
            ranked = [
                index
                for index in inputs
                if len(self.sample.inputs[index].value.shape or ()) >= 2
                and "position" not in self.sample.inputs[index].source_name
            ]
            if 0 < len(ranked) < len(inputs):
                narrower.append(dimension.only(frozenset(ranked)))
            narrower += [dimension.only(frozenset([index])) for index in sorted(inputs)[:3]]
        for candidate in narrower:
            plan = self._plan(candidate)
            if isinstance(plan, Plan):
                return candidate, plan
        return None

    def _together(
        self, sides: Sequence[tuple[Dimension, Failure]]
    ) -> Iterator[tuple[Dimension, Plan]]:
        """Yield height and width as one dimension, if they vary only together."""
        if len(sides) == 2 and sides[0][0].hint == sides[1][0].hint and self.deadline.left_s:
            (first, failure), (second, _) = sides
            both = dataclasses.replace(first, name="size", places=(*first.places, *second.places))
            plan = self._plan(both)
            if isinstance(plan, Plan):
                yield both, plan
                return
            self._refuse(both, plan)
            return
        for dimension, failure in sides:
            self._refuse(dimension, failure)

    def _plan(self, dimension: Dimension) -> Plan | Failure:
        """Return sizes at which the graph can be walked, in small steps, or the failure."""
        declared = declare(self.sample, [dimension])
        smallest = 1 if dimension.kind == "batch" else 2
        failure: Failure | None = None
        for plan in first_plans(dimension.hint, smallest):
            attempt = self._try(declared, dimension.name, plan)
            if isinstance(attempt, Sample):
                finest = self._finest(declared, dimension, plan, attempt, smallest)
                if dimension.kind == "batch" or finest.step < dimension.hint:
                    return finest
                attempt = Failure(-1, 0, "only multiples of it fit, which is another batch")
            if failure is None or attempt.position > failure.position:
                failure = attempt
        return failure or Failure(-1, 0, "no other size meets the constraints of the graph")

    def _finest(
        self, declared: Sample, dimension: Dimension, plan: Plan, candidate: Sample, smallest: int
    ) -> Plan:
        """Return the plan with the smallest step at which literals keep their meaning at `plan`.

        At other steps, a different meaning may fit as well: for example, larger windows instead of
        more windows.
        """
        name = dimension.name
        sizes = [
            size for size in plan.sizes if not find_misfit(declared, {**declared.hints, name: size})
        ]
        while plan.step > 1:
            for finer in finer_plans(plan, smallest):
                written = self._try(declared, name, finer)
                if isinstance(written, Sample) and all(
                    reify(written, {name: size}).ops == reify(candidate, {name: size}).ops
                    for size in sizes
                ):
                    plan = finer
                    break
            else:
                break
        return plan

    def _try(self, declared: Sample, name: str, plan: Plan) -> Sample | Failure:
        points = [{**declared.hints, name: size} for size in plan.sizes]
        points = [point for point in points if not find_misfit(declared, point)]
        if len(points) < 2:
            return Failure(-1, 0, "no other size meets the constraints of the graph")
        return self._write_at(declared, [declared.hints, *points], {})

    def _probe(self, declared: Sample, points: Sequence[Mapping[str, int]]) -> Found | Failure:
        return find_literals_by_probing(declared, points, **self.limits)

    def write(self, pairs: list[tuple[Dimension, Plan]]) -> Sample:
        """Return the graph over all symbols that vary together, with their ranges.

        Raises:
            FixedSizesError: no symbol remains.
        """
        self.deadline = Deadline(self.time_limit_s)
        while pairs:
            declared = declare(self.sample, [dimension for dimension, _ in pairs])
            plans = {dimension.name: plan for dimension, plan in pairs}
            written = self._written(declared, plans)
            if isinstance(written, Sample):
                self.kept = pairs
                self.kinds = {dimension.name: dimension.kind for dimension, _ in pairs}
                provenance = dataclasses.replace(self.sample.provenance, parent_id=self.sample.id)
                written = dataclasses.replace(
                    written, id=f"{self.sample.id}/symbolic", provenance=provenance
                )
                return with_ranges(written, self.steps, **self.limits)
            *pairs, (dimension, _) = pairs
            self._refuse(dimension, written)
        self.kept, self.kinds = [], {}
        raise FixedSizesError(self.sample, tuple(self.refused))

    def _written(self, declared: Sample, plans: dict[str, Plan]) -> Sample | Failure:
        """Return the graph with expressions for its literals that also hold at other sizes."""
        points = [declared.hints]
        points += [
            {**declared.hints, name: size} for name, plan in plans.items() for size in plan.sizes
        ]
        points += [
            {**declared.hints, **{name: plan.sizes[at] for name, plan in plans.items()}}
            for at in ((0, 1) if len(plans) > 1 else ())
        ]
        points = [p for at, p in enumerate(points) if not at or not find_misfit(declared, p)]
        written = self._write_at(declared, points, plans)
        for turn in range(MAX_REFINEMENTS):
            if isinstance(written, Failure):
                break
            others = _other_sizes(declared, plans, _NUM_OTHERS if _rounds(written) else 4, turn)
            others = [p for p in others if not find_misfit(declared, p)]
            failures = find_failures(written, others, **self.limits)
            failed = [p for p, f in zip(others, failures, strict=True) if f is not None]
            better: Sample | Failure | None = None
            points_now = points
            for count in (len(failed), 3, 1):
                if 0 < count <= len(failed) and not isinstance(better, Sample):
                    points_now = [*points, *failed[:count]]
                    better = self._write_at(declared, points_now, plans)
            if not isinstance(better, Sample) or better == written:
                break
            points, written = points_now, better
        if isinstance(written, Sample) and len(plans) > 1:
            return self._together_or_not(written, plans)
        return written

    def _together_or_not(self, written: Sample, plans: Mapping[str, Plan]) -> Sample | Failure:
        """Return the graph, or the failure at sizes that work alone but not together."""
        alone = _other_sizes(written, plans, 4, 0)
        failures = find_failures(written, alone, **self.limits)
        fit: dict[str, list[int]] = {name: [] for name in plans}
        for sizes, failure in zip(alone, failures, strict=True):
            if failure is None:
                name = next(name for name in plans if sizes[name] != written.hints[name])
                fit[name].append(sizes[name])
        joint = [
            {
                **written.hints,
                **{name: sizes[at % len(sizes)] for name, sizes in fit.items() if sizes},
            }
            for at in range(4)
        ]
        joint = [sizes for sizes in joint if not find_misfit(written, sizes)]
        failures = find_failures(written, joint, **self.limits) if joint else ()
        return next((failure for failure in failures if failure is not None), written)

    def _write_at(
        self,
        declared: Sample,
        points: Sequence[Mapping[str, int]],
        plans: dict[str, Plan],
    ) -> Sample | Failure:
        literals = self._probe(declared, points)
        if isinstance(literals, Failure):
            return literals
        written = write(declared, literals, plans)
        if isinstance(written, tuple):
            return Failure(written[0], 0, f"it has {written[1]}")
        return written

    def _refuse(self, dimension: Dimension, failure: Failure) -> None:
        self.refused.append(refusal_of(self.sample, dimension, failure))


def _rounds(sample: Sample) -> bool:
    """Return whether a literal is a quotient, whose rounding is visible only at many sizes."""
    return any("//" in symbol.source_name for symbol in sample.inputs if symbol.role == "symbol")


def _other_sizes(
    sample: Sample, plans: Mapping[str, Plan], count: int, turn: int
) -> list[dict[str, int]]:
    """Return sizes that were not tried, from half to double the size of the capture."""
    other_sizes = []
    for at in range(count):
        share = ((at + 1 + turn / MAX_REFINEMENTS) / count) * (1.0 if at % 2 else -0.5)
        for name, plan in plans.items():
            steps = round(share * plan.hint / plan.step) or (1 if at % 2 else -1)
            size = plan.hint + plan.step * steps
            if size >= 1 and size not in plan.sizes:
                other_sizes.append({**sample.hints, name: size})
    return other_sizes

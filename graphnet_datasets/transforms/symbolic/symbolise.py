"""Graphs of fixed sizes as graphs over symbols."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import TimeLimitError, TransformError, raises_only
from ...frameworks.deadline import Deadline
from ...sample import Sample
from ...sample.symbols import free_symbols
from .dimensions import Dimension, DimensionKind, find_dimensions, kind_of_symbol
from .plans import Plan, finer_plans, first_plans
from .probing import Failure, Found, find_literals_by_probing
from .ranges import find_failures, with_ranges
from .refusals import FixedSizesError, Refused, refusal_of
from .reify import find_misfit, reify
from .verifying import CheckedSizes, check_by_runs, find_culprit
from .writing import declare, write

MAX_REFINEMENTS = 4
"""Times that expressions which fail at another size are looked for anew with that size."""
_NUM_OTHERS = 22


@dataclasses.dataclass(frozen=True)
class Symbolised:
    """A graph over symbols, the kinds of its symbols, and the dimensions that stay.

    `checked` are the sizes at which it was run; none without a check.
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
    """Find which dimensions of a graph can vary, and return it with symbols in their place.

    Candidates are the dimensions of data inputs: `batch`, `height` and `width` (`size` where they
    have to be equal), `sequence`, `past`. The graph is walked, without memory, at several sizes of
    each; literals that have to follow (of `view`, `arange`, slices, …) become expressions over the
    symbols, which the graph takes as inputs of the role `symbol`. Shapes of results are expressions
    too, where one was found. Symbols have the range in which the graph was walked, and there is a
    constraint for each that only has multiples of a number. Its id ends in `/symbolic`. Weights
    keep their shapes.

    With `check` the result is run on the CPU at three other sizes, in this process. The search for
    sizes and the graph over all symbols may take `time_limit_s` each (default: two minutes); what
    was not tried in that time stays as it is.

    Raises:
        TransformError: no dimension can vary; the message names the operator and the reason.
        TimeLimitError: the graph over the symbols takes longer.
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
    >>> [each.source_name for each in found.sample.inputs[1:]]
    ['batch', 'sequence*sequence_2']
    """
    search = _Symbolising(sample, time_limit_s, allow_unchecked_operators)
    kept = search.find_plans()
    found = search.write(kept)
    checked: CheckedSizes = ()
    if check:
        options = {
            "memory_limit_bytes": memory_limit_bytes,
            "allow_unchecked_operators": allow_unchecked_operators,
        }
        while True:
            try:
                found, checked = check_by_runs(found, search.steps, **options)
                break
            except TransformError as error:
                culprit = find_culprit(found, search.steps, **options)
                found = search.without(culprit, str(error))
    return Symbolised(found, dict(search.kinds), tuple(search.refused), checked)


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
        """What a walk may take of the time that is left."""
        self.deadline.check(f"Finding the sizes of `{self.sample.id}`")
        return {
            "time_limit_s": self.deadline.left_s,
            "allow_unchecked_operators": self.allow_unchecked_operators,
        }

    @property
    def steps(self) -> dict[str, int]:
        """Of which numbers the sizes of each symbol are multiples, counted from its hint."""
        return {dimension.name: plan.step for dimension, plan in self.kept}

    def without(self, name: str, reason: str) -> Sample:
        """Return the graph without a symbol, at whose sizes it does not run.

        Raises:
            FixedSizesError: no symbol is left.
        """
        dimension = next(each for each, _ in self.kept if each.name == name)
        self._refuse(dimension, Failure(-1, 0, reason))
        return self.write([each for each in self.kept if each[0].name != name])

    def find_plans(self) -> list[tuple[Dimension, Plan]]:
        """Return the dimensions that vary alone, and the sizes at which they do."""
        known = self._known()
        kept = []
        for dimension in known:
            plan = self._plan(dimension)
            if not isinstance(plan, Plan):
                # A graph that says it varies and does not: its sizes are those of the capture.
                self.sample = dataclasses.replace(reify(self.sample), id=self.sample.id)
                kept = []
                break
            kept.append((dimension, plan))
        sides: list[tuple[Dimension, Failure]] = []
        for dimension in find_dimensions(self.sample):
            try:
                plan = self._plan(dimension)
            except TimeLimitError as error:
                plan = Failure(-1, 0, str(error))
            if isinstance(plan, Plan):
                kept.append((dimension, plan))
            elif dimension.name in ("height", "width"):
                sides.append((dimension, plan))
            else:
                narrowed = self._narrowed(dimension) if self.deadline.left_s else None
                if narrowed is None:
                    self._refuse(dimension, plan)
                else:
                    kept.append(narrowed)
        kept += self._together(sides)
        return kept

    def _known(self) -> list[Dimension]:
        """Return the symbols that the sample has already."""
        used = {
            name
            for each in self.sample.inputs
            for dim in (*(each.value.shape or ()), each.source_name if each.role == "symbol" else 0)
            if isinstance(dim, str)
            for name in free_symbols(dim)
        }
        return [
            Dimension(symbol.name, kind_of_symbol(self.sample, symbol.name), symbol.hint, ())
            for symbol in self.sample.symbols
            if symbol.name in used
        ]

    def _narrowed(self, dimension: Dimension) -> tuple[Dimension, Plan] | None:
        """Return the dimension with fewer places, if it varies in these alone."""
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
        for each in narrower:
            plan = self._plan(each)
            if isinstance(plan, Plan):
                return each, plan
        return None

    def _together(
        self, sides: Sequence[tuple[Dimension, Failure]]
    ) -> Iterator[tuple[Dimension, Plan]]:
        """Yield height and width as one dimension, if they vary together alone."""
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
        """Return sizes at which the graph can be walked, in small steps; or why there are none."""
        declared = declare(self.sample, [dimension])
        smallest = 1 if dimension.kind == "batch" else 2
        failure: Failure | None = None
        for plan in first_plans(dimension.hint, smallest):
            found = self._try(declared, dimension.name, plan)
            if isinstance(found, Sample):
                finest = self._finest(declared, dimension, plan, found, smallest)
                if dimension.kind == "batch" or finest.step < dimension.hint:
                    return finest
                found = Failure(-1, 0, "only whole multiples of it fit, which is another batch")
            if failure is None or found.position > failure.position:
                failure = found
        return failure or Failure(-1, 0, "no other size meets the constraints of the graph")

    def _finest(
        self, declared: Sample, dimension: Dimension, plan: Plan, found: Sample, smallest: int
    ) -> Plan:
        """Return the plan of the smallest step at which literals mean what they did at `plan`.

        At other steps they may also mean something else that fits: not more windows, but larger
        ones.
        """
        name = dimension.name
        sizes = [
            size for size in plan.sizes if not find_misfit(declared, {**declared.hints, name: size})
        ]
        while plan.step > 1:
            for finer in finer_plans(plan, smallest):
                written = self._try(declared, name, finer)
                if isinstance(written, Sample) and all(
                    reify(written, {name: size}).ops == reify(found, {name: size}).ops
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

    def write(self, kept: list[tuple[Dimension, Plan]]) -> Sample:
        """Return the graph over all symbols that vary together, with their ranges.

        Raises:
            FixedSizesError: no symbol is left.
        """
        self.deadline = Deadline(self.time_limit_s)
        while kept:
            declared = declare(self.sample, [dimension for dimension, _ in kept])
            plans = {dimension.name: plan for dimension, plan in kept}
            written = self._written(declared, plans)
            if isinstance(written, Sample):
                self.kept = kept
                self.kinds = {dimension.name: dimension.kind for dimension, _ in kept}
                provenance = dataclasses.replace(self.sample.provenance, parent_id=self.sample.id)
                written = dataclasses.replace(
                    written, id=f"{self.sample.id}/symbolic", provenance=provenance
                )
                return with_ranges(written, self.steps, **self.limits)
            *kept, (dimension, _) = kept
            self._refuse(dimension, written)
        self.kept, self.kinds = [], {}
        raise FixedSizesError(self.sample, tuple(self.refused))

    def _written(self, declared: Sample, plans: dict[str, Plan]) -> Sample | Failure:
        """Return the graph with expressions for its literals that hold at other sizes as well."""
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
        """Return the graph, or why sizes that fit alone do not fit together."""
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
        found = self._probe(declared, points)
        if isinstance(found, Failure):
            return found
        written = write(declared, found, plans)
        if isinstance(written, tuple):
            return Failure(written[0], 0, f"it has {written[1]}")
        return written

    def _refuse(self, dimension: Dimension, failure: Failure) -> None:
        self.refused.append(refusal_of(self.sample, dimension, failure))


def _rounds(sample: Sample) -> bool:
    """Tell whether a literal is a quotient, whose rounding many sizes have to show."""
    return any("//" in each.source_name for each in sample.inputs if each.role == "symbol")


def _other_sizes(
    sample: Sample, plans: Mapping[str, Plan], count: int, turn: int
) -> list[dict[str, int]]:
    """Return sizes that were not tried, from a half to the double of the capture's."""
    found = []
    for at in range(count):
        share = ((at + 1 + turn / MAX_REFINEMENTS) / count) * (1.0 if at % 2 else -0.5)
        for name, plan in plans.items():
            steps = round(share * plan.hint / plan.step) or (1 if at % 2 else -1)
            size = plan.hint + plan.step * steps
            if size >= 1 and size not in plan.sizes:
                found.append({**sample.hints, name: size})
    return found

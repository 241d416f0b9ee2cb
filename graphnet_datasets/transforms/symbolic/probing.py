"""Search for the meanings of a graph's literals, by walking it at several sizes at once.

Each operator is called at every point with the most likely choice of literals that it accepts. If
an operator accepts none, choices that it depends on are changed, nearest first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence

from ...frameworks.probing import Outcome, Prober, probe
from ...sample import Op, Sample, Value
from ...sample.arguments import ListArg, Ref, SliceArg, iterate_refs
from ...sample.targets import base_name
from .choices import Sizes, choices_of
from .fitting import Fitter, Row
from .literals import Places, find_literals, places_of, replace_literals
from .reshapes import Choice, Shape

MAX_REPAIRS = 24
"""Maximum number of walks with changed choices."""
_MAX_ALTERNATIVES = 3


@dataclasses.dataclass(frozen=True)
class Failure:
    """The operator that fails at other sizes, and the error of the framework."""

    position: int
    point: int
    error: str


@dataclasses.dataclass(frozen=True)
class Found:
    """Values of the literals of each operator at all points, and the results of operators.

    `literals[i]` is None if the literals of operator `i` are constant; `values[i]` is None if the
    results are unknown without a run.
    """

    points: tuple[Mapping[str, int], ...]
    literals: tuple[Choice | None, ...]
    values: tuple[tuple[tuple[Value, ...], ...] | None, ...]


def find_literals_by_probing(
    sample: Sample,
    points: Sequence[Mapping[str, int]],
    *,
    time_limit_s: float | None = None,
    allow_unchecked_operators: bool = False,
) -> Found | Failure:
    """Find the meanings of a sample's literals; `points[0]` are the sizes of the capture.

    Raises:
        MaterializeError, MemoryLimitError, TimeLimitError: the graph cannot be walked.
    """
    with probe(
        sample,
        points,
        time_limit_s=time_limit_s,
        allow_unchecked_operators=allow_unchecked_operators,
    ) as prober:
        return _Search(sample, points, prober).run()


class _Search:
    def __init__(self, sample: Sample, points: Sequence[Mapping[str, int]], prober: Prober) -> None:
        self.sample = sample
        self.points = tuple(points)
        self.prober = prober
        self.fitter = Fitter(points)
        self.sizes = Sizes(self.fitter, self.fitter.columns.values())
        self.num_inputs = len(sample.inputs)
        self.shapes: list[Shape | None] = [
            None
            if input_value.value.shape is None or input_value.role in ("symbol", "scalar")
            else tuple(self.fitter.evaluate(dim) for dim in input_value.value.shape)
            for input_value in sample.inputs
        ]
        for shape in self.shapes:
            self.sizes.add_shape(shape or ())
        self.numbers: dict[int, Row] = {
            index: self.fitter.evaluate(input_value.source_name)
            for index, input_value in enumerate(sample.inputs)
            if input_value.role == "symbol"
        }
        self.values: list[tuple[tuple[Value, ...], ...] | None] = []
        self.literals: list[Choice | None] = []
        self.keys: list[Hashable | None] = []
        self.options: dict[Hashable, list[Choice]] = {}
        self.decided: dict[Hashable, int] = {}
        self.repairs = 0

    def run(self) -> Found | Failure:
        failure = self.advance(self.sample.num_ops)
        while failure is not None:
            if not self.repair(failure):
                return failure
            failure = self.advance(self.sample.num_ops)
        return Found(self.points, tuple(self.literals), tuple(self.values))

    def advance(self, stop: int) -> Failure | None:
        """Walk up to an operator, or to an operator that fails."""
        while len(self.values) < stop:
            position = len(self.values)
            op = self.sample.ops[position]
            key, choice, outcomes = self.call(position, op)
            if not isinstance(outcomes, tuple):
                return outcomes
            self.prober.keep(outcomes)
            self.keys.append(key)
            self.literals.append(choice)
            self.note(outcomes)
        return None

    def call(
        self, position: int, op: Op
    ) -> tuple[Hashable | None, Choice | None, tuple[Outcome, ...] | Failure]:
        plain = dataclasses.replace(op, results=None)
        numbers = find_literals(op)
        key, options = self.options_of(op, numbers) if numbers else (None, [])
        if not options:
            outcomes = self.prober.call([plain] * len(self.points))
            failed = _first_failed(position, outcomes)
            return None, None, failed or outcomes
        failure: Failure | None = None
        for at in range(self.decided.get(key, 0), len(options)):
            choice = options[at]
            columns = zip(*choice, strict=True)
            outcomes = self.prober.call(
                [replace_literals(plain, iter(column)) for column in columns]
            )
            failed = _first_failed(position, outcomes)
            if failed is None:
                self.decided[key] = at
                return key, choice, outcomes
            failure = failure or failed
        return key, None, failure or Failure(position, 0, "no choice of its sizes remains")

    def options_of(self, op: Op, numbers: tuple[int, ...]) -> tuple[Hashable | None, list[Choice]]:
        places = places_of(op)
        refs = [ref for ref in iterate_refs((op.args, op.kwargs)) if self.shapes[ref] is not None]
        shapes = tuple(self.shapes[ref] for ref in refs)
        operand_numbers: tuple[object, ...] = tuple(self.numbers.get(ref) for ref in _refs(op))
        if places is not None and places.family == "mean":
            operand_numbers = (*operand_numbers, self.summed_axes(op))
        key = (op.target, _text(op.args), _text(op.kwargs), shapes, operand_numbers)
        if key not in self.options:
            assert places is not None  # noqa: S101 - or it had no literals
            operand = shapes[0] if shapes else None
            if places.family == "slice":
                self.options[key] = _slice_choices(op, numbers, operand, self.sizes)
            elif places.family == "parts":
                axis = _axis(op, operand)
                self.options[key] = choices_of("parts", numbers, axis, self.sizes)
            else:
                if places.family == "expand" and operand is not None:
                    operand = _aligned(op, operand, self.fitter.constant(1))
                if base_name(op.target) == "unflatten":
                    operand = _axis(op, operand)
                if places.family == "mean":
                    operand = self.summed_axes(op)
                self.options[key] = self.choices(op, places, numbers, operand)
        options = self.options[key]
        is_plain = len(options) == 1 and all(
            row == self.fitter.constant(row[0]) for row in options[0]
        )
        return key, [] if is_plain else options

    def choices(
        self, op: Op, places: Places, numbers: tuple[int, ...], operand: Shape | None
    ) -> list[Choice]:
        """Return choices for sizes that may be open or come from other operators."""
        layout: list[int | Row | None] = []
        count = 0
        for leaf in _leaves((op.args[places.first :], tuple(arg for _, arg in op.kwargs))):
            if isinstance(leaf, Ref):
                layout.append(self.numbers.get(leaf.index))
            elif type(leaf) is int:
                layout.append(count if leaf >= 1 else None)
                count += leaf >= 1
        return choices_of(places.family, numbers, operand, self.sizes, layout)

    def summed_axes(self, op: Op) -> Shape:
        """Return the axes that the producer of the operand has summed over."""
        ref = next(iter(_refs(op)), -1)
        if ref < self.num_inputs:
            return ()
        maker = self.sample.ops[ref - self.num_inputs]
        remaining = self.shapes[ref] or ()
        source_axes = [row for source in _refs(maker) for row in self.shapes[source] or ()]
        return tuple(row for row in source_axes if row not in remaining)

    def note(self, outcomes: tuple[Outcome, ...]) -> None:
        """Record the results of an operator at all points."""
        if any(outcome.kind != "known" for outcome in outcomes):
            self.values.append(None)
            self.shapes.append(None)
            return
        values = tuple(outcome.values for outcome in outcomes)
        self.values.append(values)
        if all(type(outcome.number) is int for outcome in outcomes):
            row = tuple(int(outcome.number or 0) for outcome in outcomes)
            self.numbers[self.num_inputs + len(self.values) - 1] = row
        shape = None
        for tensors in zip(*values, strict=False):
            if len({len(value.shape or ()) for value in tensors}) == 1:
                shape = tuple(zip(*(value.shape or () for value in tensors), strict=True))
                self.sizes.add_shape(shape)
        self.shapes.append(
            shape if all(len(point_values) == 1 for point_values in values) else None
        )

    def repair(self, failure: Failure) -> bool:
        """Change a choice that an operator depends on so that the walk continues.

        If no single change helps, all choices of operators with the same name change together: for
        example, two rows that are concatenated are either both repeated for the batch or not at
        all.
        """
        keys = list(self.ambiguous_before(failure.position))
        alike: dict[Hashable, list[Hashable]] = {}
        for key in keys:
            alike.setdefault(_target_of(key), []).append(key)
        for group in [[key] for key in keys] + [
            group_keys for group_keys in alike.values() if len(group_keys) > 1
        ]:
            first = group[0]
            others = [at for at in range(len(self.options[first])) if at != self.decided[first]]
            for at in others[:_MAX_ALTERNATIVES]:
                if self.repairs >= MAX_REPAIRS:
                    return False
                self.repairs += 1
                previous = dict(self.decided)
                self.decided |= {
                    key: at for key in group if at < len(self.options[key]) or key == first
                }
                self.rewind(self._begin_of(group))
                if self.advance(failure.position + 1) is None:
                    return True
                self.decided = previous
                self.rewind(self._begin_of(group))
                self.advance(failure.position)
        return False

    def _begin_of(self, group: Sequence[Hashable]) -> int:
        """Return the position at which the first of several choices was made."""
        positions = [self.keys.index(key) for key in group if key in self.keys]
        return min(positions, default=0)

    def ambiguous_before(self, position: int) -> Iterator[Hashable]:
        """Yield the choices that an operator depends on, nearest first."""
        pending = {ref - self.num_inputs for ref in _refs(self.sample.ops[position])}
        seen: set[Hashable] = set()
        while pending:
            nearest = max(pending)
            pending.discard(nearest)
            if nearest < 0:
                continue
            key = self.keys[nearest]
            if key is not None and key not in seen and len(self.options[key]) > 1:
                seen.add(key)
                yield key
            pending |= {ref - self.num_inputs for ref in _refs(self.sample.ops[nearest])}

    def rewind(self, position: int) -> None:
        position = self.prober.rewind(position)
        del self.values[position:], self.literals[position:], self.keys[position:]
        del self.shapes[self.num_inputs + position :]


def _refs(op: Op) -> list[int]:
    return list(iterate_refs((op.args, op.kwargs)))


def _target_of(key: Hashable) -> Hashable:
    return key[0] if isinstance(key, tuple) else key


def _first_failed(position: int, outcomes: Sequence[Outcome]) -> Failure | None:
    for point, outcome in enumerate(outcomes):
        if outcome.kind == "failed":
            return Failure(position, point, outcome.error)
    return None


def _text(arg: object) -> str:
    """Return an argument as a string without the values it refers to."""
    if isinstance(arg, Ref):
        return "%"
    if isinstance(arg, tuple):
        return f"({','.join(map(_text, arg))})"
    if isinstance(arg, ListArg):
        return f"[{','.join(map(_text, arg.items))}]"
    if isinstance(arg, SliceArg):
        return ":".join(map(_text, (arg.start, arg.stop, arg.step)))
    return repr(arg)


def _leaves(arg: object) -> Iterator[object]:
    if isinstance(arg, ListArg):
        arg = arg.items
    if isinstance(arg, tuple):
        for item in arg:
            yield from _leaves(item)
    else:
        yield arg


def _aligned(op: Op, operand: Shape, row: Row) -> Shape:
    """Pad a shape with leading axes of one element, for sizes that are counted from the end.

    Only literals count: the positions of -1 and of results of other operators are omitted.
    """
    leaves = [leaf for leaf in _leaves(op.args[1:]) if isinstance(leaf, int | Ref)]
    padded = (*(row,) * (len(leaves) - len(operand)), *operand)
    return tuple(
        row
        for row, leaf in zip(padded, leaves, strict=False)
        if isinstance(leaf, int) and leaf >= 1
    )


def _axis(op: Op, operand: Shape | None) -> Shape | None:
    """Return the size of the axis that an operator names, as a shape of one axis."""
    axis = dict(op.kwargs).get("dim", dict(op.kwargs).get("axis"))
    where = 1 if base_name(op.target) == "unflatten" else 2
    if axis is None:
        axis = op.args[where] if len(op.args) > where else 0
    if operand is None or type(axis) is not int or not -len(operand) <= axis < len(operand):
        return None
    return (operand[axis],)


def _slice_choices(
    op: Op, numbers: tuple[int, ...], operand: Shape | None, sizes: Sizes
) -> list[Choice]:
    """Return choices for the bounds of slices, each with the axis of the bound."""
    axes: list[Row | None] = []
    if base_name(op.target) in ("getitem", "setitem"):
        index = op.args[1] if isinstance(op.args[1], tuple) else (op.args[1],)
        used = sum(part is not None and part is not Ellipsis for part in index)
        axis = 0
        for part in index:
            if part is Ellipsis:
                axis = len(operand) - (used - axis) if operand is not None else axis
                continue
            if isinstance(part, SliceArg):
                is_known = operand is not None and 0 <= axis < len(operand)
                for bound in (part.start, part.stop):
                    if type(bound) is int and bound >= 1:
                        axes.append(operand[axis] if is_known and operand else None)
            axis += part is not None
    if len(axes) != len(numbers):
        axes = [None] * len(numbers)
    choices: list[Choice] = [()]
    for number, axis_row in zip(numbers, axes, strict=True):
        axis_shape: Shape = () if axis_row is None else (axis_row,)
        if axis_row is not None and number > axis_row[0]:
            listed: list[Choice] = [(sizes.fitter.constant(number),)]
        else:
            # The bound of an unknown axis is more likely an index than a size.
            listed = choices_of("slice" if axis_shape else "constant", [number], axis_shape, sizes)[
                :4
            ]
        choices = [(*before, *choice) for before in choices for choice in listed][:16]
    return choices

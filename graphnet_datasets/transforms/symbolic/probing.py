"""Find what the literals of a graph stand for, by a walk at several sizes at once.

Each operator is called at every point with the likeliest choice of its literals that it takes. Of
an operator that takes none, the choices among what it depends on are changed, the nearest first.
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
"""Times that a graph is walked anew with other choices."""
_MAX_ALTERNATIVES = 3


@dataclasses.dataclass(frozen=True)
class Failure:
    """The operator that does not take other sizes, and what the framework says to that."""

    position: int
    point: int
    error: str


@dataclasses.dataclass(frozen=True)
class Found:
    """What the literals of each operator are at all points, and the values that operators give.

    `literals[i]` is None where those of operator `i` stay; `values[i]` is None where only a run
    would tell.
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
    """Find what the literals of a sample stand for; `points[0]` are the sizes of the capture.

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
            if each.value.shape is None or each.role in ("symbol", "scalar")
            else tuple(self.fitter.evaluate(dim) for dim in each.value.shape)
            for each in sample.inputs
        ]
        for shape in self.shapes:
            self.sizes.add_shape(shape or ())
        self.numbers: dict[int, Row] = {
            index: self.fitter.evaluate(each.source_name)
            for index, each in enumerate(sample.inputs)
            if each.role == "symbol"
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
        """Walk on to an operator, or to one that fails."""
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
            outcomes = self.prober.call([replace_literals(plain, iter(each)) for each in columns])
            failed = _first_failed(position, outcomes)
            if failed is None:
                self.decided[key] = at
                return key, choice, outcomes
            failure = failure or failed
        return key, None, failure or Failure(position, 0, "no choice of its sizes is left")

    def options_of(self, op: Op, numbers: tuple[int, ...]) -> tuple[Hashable | None, list[Choice]]:
        places = places_of(op)
        refs = [ref for ref in iterate_refs((op.args, op.kwargs)) if self.shapes[ref] is not None]
        shapes = tuple(self.shapes[ref] for ref in refs)
        given: tuple[object, ...] = tuple(self.numbers.get(ref) for ref in _refs(op))
        if places is not None and places.family == "mean":
            given = (*given, self.summed_axes(op))
        key = (op.target, _text(op.args), _text(op.kwargs), shapes, given)
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
        """Return choices for sizes of which some may be left open, or come from other operators."""
        layout: list[int | Row | None] = []
        count = 0
        for each in _leaves((op.args[places.first :], tuple(arg for _, arg in op.kwargs))):
            if isinstance(each, Ref):
                layout.append(self.numbers.get(each.index))
            elif type(each) is int:
                layout.append(count if each >= 1 else None)
                count += each >= 1
        return choices_of(places.family, numbers, operand, self.sizes, layout)

    def summed_axes(self, op: Op) -> Shape:
        """Return the sizes of axes that the operator before one has taken sums along."""
        ref = next(iter(_refs(op)), -1)
        if ref < self.num_inputs:
            return ()
        maker = self.sample.ops[ref - self.num_inputs]
        own = self.shapes[ref] or ()
        taken = [row for source in _refs(maker) for row in self.shapes[source] or ()]
        return tuple(row for row in taken if row not in own)

    def note(self, outcomes: tuple[Outcome, ...]) -> None:
        """Take note of what an operator gave at all points."""
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
        self.shapes.append(shape if all(len(each) == 1 for each in values) else None)

    def repair(self, failure: Failure) -> bool:
        """Change a choice that an operator depends on so that the walk gets further.

        Where no single one helps, all choices of the operators of one name are changed alike: two
        rows that are put beside one another are repeated for the batch, or neither is.
        """
        keys = list(self.ambiguous_before(failure.position))
        alike: dict[Hashable, list[Hashable]] = {}
        for key in keys:
            alike.setdefault(_target_of(key), []).append(key)
        for group in [[key] for key in keys] + [some for some in alike.values() if len(some) > 1]:
            first = group[0]
            others = [at for at in range(len(self.options[first])) if at != self.decided[first]]
            for at in others[:_MAX_ALTERNATIVES]:
                if self.repairs >= MAX_REPAIRS:
                    return False
                self.repairs += 1
                kept = dict(self.decided)
                self.decided |= {
                    key: at for key in group if at < len(self.options[key]) or key == first
                }
                self.rewind(self._begin_of(group))
                if self.advance(failure.position + 1) is None:
                    return True
                self.decided = kept
                self.rewind(self._begin_of(group))
                self.advance(failure.position)
        return False

    def _begin_of(self, group: Sequence[Hashable]) -> int:
        """Return where the first of some choices was made."""
        found = [self.keys.index(key) for key in group if key in self.keys]
        return min(found, default=0)

    def ambiguous_before(self, position: int) -> Iterator[Hashable]:
        """Yield the choices that what an operator takes rests on, the nearest first."""
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
    """Return an argument without the values that it refers to."""
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
        for each in arg:
            yield from _leaves(each)
    else:
        yield arg


def _aligned(op: Op, operand: Shape, one: Row) -> Shape:
    """Return a shape with axes of one element in front, for sizes that are counted from the end.

    Only literals count: places of -1, and of what other operators give, are left out.
    """
    wanted = [each for each in _leaves(op.args[1:]) if isinstance(each, int | Ref)]
    padded = (*(one,) * (len(wanted) - len(operand)), *operand)
    return tuple(
        row
        for row, each in zip(padded, wanted, strict=False)
        if isinstance(each, int) and each >= 1
    )


def _axis(op: Op, operand: Shape | None) -> Shape | None:
    """Return the size of the axis that an operator names, as a shape of its own."""
    given = dict(op.kwargs).get("dim", dict(op.kwargs).get("axis"))
    where = 1 if base_name(op.target) == "unflatten" else 2
    if given is None:
        given = op.args[where] if len(op.args) > where else 0
    if operand is None or type(given) is not int or not -len(operand) <= given < len(operand):
        return None
    return (operand[given],)


def _slice_choices(
    op: Op, numbers: tuple[int, ...], operand: Shape | None, sizes: Sizes
) -> list[Choice]:
    """Return choices for the bounds of slices, each with the axis that it is a bound along."""
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
        own: Shape = () if axis_row is None else (axis_row,)
        if axis_row is not None and number > axis_row[0]:
            listed: list[Choice] = [(sizes.fitter.constant(number),)]
        else:
            # Of an axis that is not known a bound is rather an index than a size.
            listed = choices_of("slice" if own else "constant", [number], own, sizes)[:4]
        choices = [(*before, *each) for before in choices for each in listed][:16]
    return choices

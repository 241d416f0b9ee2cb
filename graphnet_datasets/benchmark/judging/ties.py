"""Verdicts on outputs whose order the operator leaves open.

A permutation is correct if it selects the sorted keys and contains each position once. The position
of a tied element is correct if its key is equal. The keys come from eager alone, on the inputs of
each call. Computed keys are tied if they are equal up to rounding.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...analysis.orders import OpenOrder, Orders
from ...scores.formats import decode_wide
from ...scores.tolerance import min_t, oracle_t, tolerances
from .calls import DECIDED_T, Pair
from .correctness import Output
from .windows import are_in_windows, has_tied_maxima

Keys: TypeAlias = "Sequence[Output] | None"
"""The keys of each open order in one call, or None if they were not stored."""

TIED_T = -4.0
"""The tolerance at which computed keys are tied, because rounding alone may change their order. Its
relative part is 2e-5 in float32."""


@dataclasses.dataclass(slots=True)
class SettledCalls:
    """Calls with the candidate's valid orders replaced by eager's.

    `position_t` maps a positions output to the smallest t at which the selected keys pass; computed
    keys differ by rounding. `open_outputs` maps an output to an operator if the output depends on
    the order of tied elements and differs from eager's in a call with ties. An output that another
    call decides is not open: the calls with ties then contain eager's output.
    """

    calls: Sequence[Pair]
    position_t: dict[int, float] = dataclasses.field(default_factory=dict)
    open_outputs: dict[int, OpenOrder] = dataclasses.field(default_factory=dict)

    def take(self, rows: Sequence[dict[str, Any]], without: Collection[int] = ()) -> str | None:
        """Set the tolerances of positions; return why the outputs allow no verdict, or None.

        No verdict is possible if every wrong output depends on the order of tied elements. Outputs
        in `without` are judged elsewhere.
        """
        for place, t in self.position_t.items():
            if place not in without:
                rows[place]["min_t"] = t
        wrong = [place for place, row in enumerate(rows) if row["min_t"] > DECIDED_T]
        if not wrong or not self.open_outputs.keys() - set(without) >= set(wrong):
            return None
        order = self.open_outputs[wrong[0]]
        if order.kind == "body":
            return (
                f"Output {wrong[0]} depends on the order of tied elements, which an operator in a "
                f"body of `{order.target}` (operator {order.position}) does not specify."
            )
        open_order = (
            "which of several writes to one element is the last"
            if order.kind == "overwrite"
            else "the order of tied elements"
        )
        return (
            f"Output {wrong[0]} depends on {open_order}, which `{order.target}` (operator "
            f"{order.position}) does not specify."
        )


def settle(calls: Sequence[Pair], orders: Orders, keys: Sequence[Keys]) -> SettledCalls:
    """Return the calls with valid orders of the candidate replaced by eager's.

    `keys` contains the keys of each call, in the order of the outputs of `keys_sample`.
    """
    settled_calls: list[tuple[list[Output], list[Output]]] = []
    settled = SettledCalls(settled_calls)
    excused: dict[int, dict[int, OpenOrder]] = {}
    for (expected, actual), call_keys in zip(calls, keys, strict=True):
        eager, candidate = list(expected), list(actual)
        reordered: set[int] = set()
        _settle_unique(settled, orders, eager, candidate)
        for place, (number, result) in orders.direct.items():
            order = orders.operators[number]
            if order.kind == "unique" or _is_equal(eager[place], candidate[place]):
                continue
            order_keys, *_ = _keys_of(orders, number, call_keys) or (None,)
            if order.kind == "mode":
                if _settle_mode(settled, orders, place, order_keys, actual):
                    candidate[place] = eager[place]
                continue
            if result == "values":
                if not _sort_values(order, eager, candidate, place):
                    settled.open_outputs[place] = order
                continue
            is_exact = orders.are_keys_exact[number]
            if order.is_first and is_exact:
                continue
            if order_keys is None:
                settled.open_outputs[place] = order
                continue
            make = _PooledPositions if order.kind == "pool" else _Positions
            positions = make(order, order_keys, eager[place], candidate[place])
            t = positions.tolerance(is_exact=is_exact)
            settled.position_t[place] = max(settled.position_t.get(place, -math.inf), t)
            if t < math.inf:
                candidate[place] = eager[place]
            if t <= DECIDED_T:
                reordered.add(number)
        for place in orders.reached.keys() - settled.open_outputs.keys():
            order = _excuse(orders, place, expected, actual, call_keys, reordered)
            if order is not None and not _is_equal(eager[place], candidate[place]):
                excused.setdefault(place, {})[len(settled_calls)] = order
        settled_calls.append((eager, candidate))
    for place, of_calls in excused.items():
        is_decided = [number not in of_calls for number in range(len(settled_calls))]
        if any(is_decided[1:]):  # the calls after the first show a stored answer
            for number in of_calls:
                eager, candidate = settled_calls[number]
                candidate[place] = eager[place]
        else:
            settled.open_outputs.setdefault(place, next(iter(of_calls.values())))
    return settled


def without_ties(
    eager: Sequence[Output], oracle: Sequence[Output], orders: Orders, keys: Keys
) -> list[Output | None]:
    """Return the outputs in float64 with eager's order, and None where float64 breaks a tie.

    There an output depends on the order of tied elements, so its difference from eager's is no
    measure of eager's accuracy.
    """
    settled = settle([(eager, oracle)], orders, [keys])
    ((_, outputs),) = settled.calls
    return [
        None if place in settled.open_outputs and _disagrees(eager[place], output) else output
        for place, output in enumerate(outputs)
    ]


def _disagrees(eager: Output, truth: Output) -> bool:
    """Return whether an output of eager fails against float64 at the tolerance of verdicts."""
    if eager.shape != truth.shape:
        return False
    t = oracle_t(eager.elements, decode_wide(truth.elements, truth.dtype), eager.dtype)
    return t is not None and t > DECIDED_T


def _excuse(
    orders: Orders,
    place: int,
    eager: Sequence[Output],
    candidate: Sequence[Output],
    keys: Keys,
    reordered: Collection[int],
) -> OpenOrder | None:
    """Return an operator whose ties may change an output in a call, or None.

    Ties change nothing if the candidate returns the positions and they equal eager's. Operators in
    `reordered` have returned other positions than eager's that are correct; their keys are then
    tied at the tolerance of verdicts.
    """
    for number in sorted(orders.reached[place]):
        if number in reordered:
            return orders.operators[number]
        is_same = any(
            operator == number
            and result == "positions"
            and _is_whole(eager[other])
            and _is_equal(eager[other], candidate[other])
            for other, (operator, result) in orders.direct.items()
        )
        own = _keys_of(orders, number, keys)
        if not is_same and (not own or _has_ties(orders, number, own)):
            return orders.operators[number]
    return None


def _keys_of(orders: Orders, number: int, keys: Keys) -> Sequence[Output]:
    """Return the keys of an open order, or nothing if they are unknown."""
    start = sum(len(order.all_keys) for order in orders.operators[:number])
    return [] if keys is None else keys[start : start + len(orders.operators[number].all_keys)]


def _is_equal(left: Output, right: Output) -> bool:
    return left.elements.tobytes() == right.elements.tobytes()


def _is_whole(output: Output) -> bool:
    """Return whether an output, or its excerpt, contains all elements."""
    return output.elements.size == math.prod(output.shape)


def _replaced(output: Output, elements: npt.NDArray) -> Output:
    """Return an output with different elements but the same order, shape and dtype."""
    elements = elements.astype(output.elements.dtype).reshape(output.elements.shape)
    return dataclasses.replace(output, elements=elements)


class _Positions:
    """Positions of both arms along the sorted dimension, and the keys they select."""

    def __init__(self, order: OpenOrder, keys: Output, eager: Output, candidate: Output) -> None:
        self._order, self._dtype = order, keys.dtype
        array, dim = keys.elements, order.dim
        if dim is None or array.ndim == 0:
            array, dim = array.reshape(-1), 0
        dim %= array.ndim
        shape = list(eager.shape)
        if order.dim is None or keys.elements.ndim == 0:
            shape = [math.prod(shape)]
        elif len(shape) == array.ndim - 1:
            shape.insert(dim, 1)
        others = [list(sizes[:dim]) + list(sizes[dim + 1 :]) for sizes in (shape, array.shape)]
        self._fits = len(shape) == array.ndim and others[0] == others[1]
        self._array, self._dim, self._shape = array, dim, tuple(shape)
        self._places = np.arange(math.prod(shape))[eager.part or slice(None)]
        self._eager, self._candidate = (
            output.elements.reshape(-1).astype(np.int64) for output in (eager, candidate)
        )

    def tolerance(self, *, is_exact: bool) -> float:
        """Return the smallest t at which the candidate's positions are correct.

        Returns -inf if the selected keys equal the keys that eager's positions select. Returns +inf
        if a position is out of range or, in a permutation, duplicated. Exact keys must be equal.
        """
        length = self._array.shape[self._dim]
        chosen = self._candidate
        if not self._fits or chosen.size != self._eager.size or not length:
            return math.inf
        if chosen.size and not (chosen.min() >= 0 and chosen.max() < length):
            return math.inf
        if self._order.is_cumulative:
            own = np.unravel_index(self._places, self._shape)[self._dim]
            if (chosen > own).any():
                return math.inf
        if self._order.kind == "sort":
            rows = self._rows()
            if np.unique(rows * length + chosen).size != chosen.size:
                return math.inf
            if "values" in self._order.open_results:
                return self._tolerance_of_sets(rows)
        by_eager, by_candidate = self._selected(self._eager), self._selected(chosen)
        wide = [decode_wide(selected, self._dtype) for selected in (by_eager, by_candidate)]
        if ((wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1]))).all():
            return -math.inf
        return math.inf if is_exact else min_t(by_candidate, by_eager, self._dtype)

    def _tolerance_of_sets(self, rows: npt.NDArray) -> float:
        """Return -inf if both arms select the same keys in each row, in any order, else +inf."""
        pairs = []
        for positions in (self._eager, self._candidate):
            keys = decode_wide(self._selected(positions), self._dtype)
            pairs.append(keys[np.lexsort((keys, rows))])
        return -math.inf if np.array_equal(*pairs, equal_nan=True) else math.inf

    def _rows(self) -> npt.NDArray:
        """Return the row number along the dimension for each position."""
        coordinates = list(np.unravel_index(self._places, self._shape))
        coordinates[self._dim] = np.zeros_like(self._places)
        return np.ravel_multi_index(coordinates, self._shape)

    def _selected(self, positions: npt.NDArray) -> npt.NDArray:
        coordinates = list(np.unravel_index(self._places, self._shape))
        coordinates[self._dim] = positions
        return self._array[tuple(coordinates)]


class _PooledPositions(_Positions):
    """Positions of window maxima, flat over the last dimensions of the keys."""

    def __init__(self, order: OpenOrder, keys: Output, eager: Output, candidate: Output) -> None:
        leading = eager.shape[: -order.num_axes]
        self._in_shape = keys.shape[-order.num_axes :]
        self._out_shape = eager.shape[-order.num_axes :]
        elements = keys.elements.reshape(*keys.shape[: -order.num_axes], math.prod(self._in_shape))
        flat_shape = (*leading, math.prod(self._out_shape))
        arms = [dataclasses.replace(arm, whole_shape=flat_shape) for arm in (eager, candidate)]
        order = dataclasses.replace(order, dim=len(leading))
        super().__init__(order, dataclasses.replace(keys, elements=elements), *arms)

    def tolerance(self, *, is_exact: bool) -> float:
        window = self._order.window
        if window is None or not self._fits or self._candidate.size != self._eager.size:
            return math.inf
        cells = self._places % max(1, math.prod(self._out_shape))
        if not are_in_windows(
            window, self._candidate, cells, self._eager, self._in_shape, self._out_shape
        ):
            return math.inf
        return super().tolerance(is_exact=is_exact)


def _settle_mode(
    settled: SettledCalls,
    orders: Orders,
    place: int,
    keys: Output | None,
    outputs: Sequence[Output],
) -> bool:
    """Judge the candidate's most frequent element or its position; return whether it is correct.

    `outputs` belong to the candidate. A position must point to the returned element.
    """
    number, result = orders.direct[place]
    order, chosen = orders.operators[number], outputs[place].elements.reshape(-1)
    if keys is None or not _is_whole(outputs[place]):
        settled.open_outputs[place] = order
        return False
    array = np.moveaxis(np.atleast_1d(keys.elements), order.dim or 0, -1)
    rows = array.reshape(-1, array.shape[-1])
    numbers = decode_wide(rows, keys.dtype)
    elements = None
    if result == "values":
        elements = chosen
        distances = np.abs(numbers - decode_wide(chosen, keys.dtype)[:, None])
        chosen = np.argmin(np.where(np.isnan(distances), np.inf, distances), axis=-1)
    else:
        for other, (of_operator, name) in orders.direct.items():
            if (of_operator, name) == (number, "values") and _is_whole(outputs[other]):
                elements = outputs[other].elements.reshape(-1)
    t = math.inf
    chosen = chosen.astype(np.int64)
    if ((chosen >= 0) & (chosen < rows.shape[-1])).all():
        picked = rows[np.arange(len(rows)), chosen]
        t = -math.inf
        if elements is not None and picked.tobytes() != elements.tobytes():
            is_exact = orders.are_keys_exact[number]
            t = math.inf if is_exact else min_t(elements, picked, keys.dtype)
        counts = (numbers == numbers[np.arange(len(rows)), chosen][:, None]).sum(axis=-1)
        most = [np.unique(row, return_counts=True)[1].max() for row in numbers]
        if (counts != most).any():
            t = math.inf
    settled.position_t[place] = max(settled.position_t.get(place, -math.inf), t)
    return t < math.inf


def _sort_values(
    order: OpenOrder, eager: list[Output], candidate: list[Output], place: int
) -> bool:
    """Sort the values of both arms along the dimension; return whether that is possible."""
    if not _is_whole(eager[place]) or order.dim is None or not eager[place].shape:
        return False
    for arm in (eager, candidate):
        output = arm[place]
        elements = output.elements.reshape(output.shape)
        by = np.argsort(decode_wide(elements, output.dtype), axis=order.dim, kind="stable")
        elements = np.take_along_axis(elements, by, order.dim)
        arm[place] = _replaced(output, elements)
    return True


def _settle_unique(
    settled: SettledCalls, orders: Orders, eager: list[Output], candidate: list[Output]
) -> None:
    """Reorder unique elements, their inverse and their counts consistently in both arms.

    An excerpt cannot be reordered, so the output stays open.
    """
    for number, order in enumerate(orders.operators):
        places = {
            result: place
            for place, (operator, result) in orders.direct.items()
            if operator == number and order.kind == "unique"
        }
        if all(_is_equal(eager[place], candidate[place]) for place in places.values()):
            continue
        if not all(_is_whole(eager[place]) for place in places.values()):
            settled.open_outputs |= dict.fromkeys(places.values(), order)
            continue
        for arm in (eager, candidate):
            by = _unique_order(places, arm, order.dim)
            if by is None:
                continue
            for result in ("values", "counts"):
                if result in places:
                    output = arm[places[result]]
                    dim = order.dim if result == "values" else None
                    arm[places[result]] = _replaced(output, np.take(output.elements, by, dim))
            if "inverse" in places:
                output = arm[places["inverse"]]
                rank = np.empty_like(by)
                rank[by] = np.arange(by.size)
                arm[places["inverse"]] = _replaced(output, rank[output.elements])


def _unique_order(
    places: Mapping[str, int], arm: Sequence[Output], dim: int | None
) -> npt.NDArray | None:
    """Return the order of the unique elements: by value, else by occurrence, else by count.

    With `dim` the elements are slices along it. Returns None if the inverse does not reference
    every element, which no reordering fixes.
    """
    sizes = [
        arm[places[name]].elements.size
        if dim is None or name == "counts"
        else arm[places[name]].shape[dim]
        for name in ("values", "counts")
        if name in places
    ]
    first = None
    if "inverse" in places:
        labels, first = np.unique(arm[places["inverse"]].elements, return_index=True)
        if not np.array_equal(labels, np.arange(sizes[0] if sizes else labels.size)):
            return None
    if "values" in places:
        output = arm[places["values"]]
        numbers = decode_wide(output.elements, output.dtype)
        if dim is not None:
            slices = np.moveaxis(numbers, dim, 0)
            return np.lexsort(slices.reshape(len(slices), -1).T[::-1])
        return np.argsort(numbers, kind="stable")
    if first is not None:
        return np.argsort(first)
    return np.argsort(arm[places["counts"]].elements, kind="stable")


def _has_ties(orders: Orders, number: int, all_keys: Sequence[Output]) -> bool:
    """Return whether an open order has several valid results for these keys."""
    order = orders.operators[number]
    if order.kind == "overwrite":
        return _may_overwrite(order, all_keys)
    (keys,) = all_keys
    if order.is_first and orders.are_keys_exact[number]:
        return False
    rtol = 0.0 if orders.are_keys_exact[number] else tolerances(TIED_T, keys.dtype)[1]
    if order.kind == "pool":
        decoded = decode_wide(keys.elements, keys.dtype)
        return order.window is None or has_tied_maxima(
            order.window, decoded, order.num_axes, rtol=rtol
        )
    array = keys.elements.reshape(-1) if order.dim is None else keys.elements
    if array.ndim == 0 or array.size == 0:
        return False
    if order.kind == "mode" or (order.kind == "unique" and order.dim is not None):
        return array.shape[order.dim or 0] > 1
    dim = 0 if order.dim is None else order.dim
    values = np.moveaxis(np.sort(decode_wide(array, keys.dtype), axis=dim), dim, -1)
    if order.kind == "unique":
        return bool((values != values.reshape(-1)[0]).any())
    if order.count is not None:
        if "values" in order.open_results and order.count > 1:
            return True
        values = (values[..., ::-1] if order.is_largest else values)[..., : order.count + 1]
    # The ends contain the minimum and the maximum.
    ends = (values[..., :2], values[..., -2:]) if order.is_first else (values,)
    with np.errstate(invalid="ignore"):
        sizes = np.abs(np.where(np.isfinite(values), values, 0)).max(axis=-1, keepdims=True)
        return any(
            bool(((end[..., 1:] == end[..., :-1]) | (np.abs(np.diff(end)) <= rtol * sizes)).any())
            for end in ends
        )


def _may_overwrite(order: OpenOrder, keys: Sequence[Output]) -> bool:
    """Return whether two writes may have the same indices; a negative index counts from the end."""
    if any(key.dtype == "bool" for key in keys):
        return False  # the positions of a mask are distinct
    arrays = np.broadcast_arrays(*(np.atleast_1d(key.elements) for key in keys))
    if any((array < 0).any() and (array >= 0).any() for array in arrays):
        return True
    if order.dim is not None:
        (array,) = arrays
        return bool((np.diff(np.sort(array, axis=order.dim), axis=order.dim) == 0).any())
    indices = np.stack([array.reshape(-1) for array in arrays])
    return np.unique(indices, axis=1).shape[1] < indices.shape[1]

"""Operators with unspecified result order: positions of tied elements, unsorted unique elements."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from ..operators import OperatorNames, OperatorValues
from ..sample import Op, Sample
from ..sample.arguments import ListArg, Ref, iterate_leaves, iterate_refs
from ..sample.targets import base_name
from .effects import effect_kinds, memory_classes, written_values
from .randomness import random_inputs, random_outputs

Kind = Literal["sort", "select", "unique", "mode", "pool", "overwrite", "body"]
Result = Literal["positions", "values", "inverse", "counts"]


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """The windows of a pooling operator, with one number for each spatial dimension.

    `kernel` is the window size. For adaptive operators it is the number of windows, or empty if
    unknown. `is_random` means that the windows start at random places.
    """

    kernel: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = (0, 0, 0)
    dilation: tuple[int, ...] = (1, 1, 1)
    is_adaptive: bool = False
    is_random: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class OpenOrder:
    """An operator whose results have several valid orders.

    `kind` is "sort" for a permutation along `dim`, "select" for one position in each row, "mode"
    for a most frequent element and its position, "pool" for the position of the maximum of each
    `window` of the last `num_axes` dimensions, "unique" for distinct elements, or slices along
    `dim`, in any order, "overwrite" for writes to the indices `keys` and `further_keys`: if two
    indices along `dim` are equal, each of these writes may be the last. An order of kind "body"
    represents the open orders in the bodies of a branch or a loop. `results` names the operator's
    results in order; those in `open_results` have an unspecified order. `keys` is the sorted value,
    `dim` the dimension (None: flattened), and `keeps_dim` whether the result keeps it. `count` is
    the number of elements that `topk` returns, the largest if `is_largest`. `is_first` means that
    the operator guarantees the first of tied elements, `is_cumulative` that each position refers to
    its own place or an earlier one. `are_keys_known` is False if the graph overwrites the keys
    afterwards, or if they are in a body.
    """

    position: int
    target: str
    kind: Kind
    keys: int
    dim: int | None
    keeps_dim: bool
    results: tuple[Result, ...]
    open_results: frozenset[Result]
    count: int | None = None
    is_largest: bool = True
    is_first: bool = False
    is_cumulative: bool = False
    window: Window | None = None
    num_axes: int = 0
    further_keys: tuple[int, ...] = ()
    are_keys_known: bool = True

    @property
    def all_keys(self) -> tuple[int, ...]:
        """The values that are stored as keys: none if the keys are unknown."""
        return (self.keys, *self.further_keys) if self.are_keys_known else ()


@dataclasses.dataclass(frozen=True, slots=True)
class Orders:
    """The open orders of a sample and the flat outputs that they affect.

    In `operators`, those with known keys come first.
    `direct` maps an output to its operator (an index into `operators`) and its result name.
    `reached` maps an output to the other operators whose order affects its elements. `inputs` does
    the same for the names of inputs that the graph writes to. `num_outputs` counts flat outputs.
    `are_keys_exact` is True for operators whose keys are inputs or not floats, so that two
    compilers sort equal numbers.
    """

    operators: tuple[OpenOrder, ...]
    are_keys_exact: tuple[bool, ...]
    direct: dict[int, tuple[int, Result]]
    reached: dict[int, frozenset[int]]
    inputs: dict[str, frozenset[int]]
    num_outputs: int

    def with_written(self, names: Sequence[str]) -> Orders:
        """Return the orders for outputs followed by the inputs `names`, which eager changes."""
        places = enumerate(names, self.num_outputs)
        written = {place: self.inputs[name] for place, name in places if name in self.inputs}
        return dataclasses.replace(self, reached=self.reached | written)


def find_orders(sample: Sample) -> Orders | None:
    """Return the open orders that affect an output or a written input of a sample, or None.

    >>> from graphnet_datasets.sample import Input, Value
    >>> order = Op("torch.argsort", (Ref(0),))
    >>> sample = Sample("example/order", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (4,))),),
    ...     ops=(order, Op("torch.add", (Ref(1), 1))), outputs=(Ref(1), Ref(2)))
    >>> orders = find_orders(sample)
    >>> orders.direct, orders.reached
    ({0: (0, 'positions')}, {1: frozenset({0})})
    """
    operators = [
        order
        for position, op in enumerate(sample.ops)
        if (order := _open_order(sample, position, op)) is not None
    ]
    if not operators:
        return None
    operators = sorted(
        _without_overwritten_keys(sample, operators), key=lambda order: not order.are_keys_known
    )
    of_value = {len(sample.inputs) + order.position: i for i, order in enumerate(operators)}
    reached, results = _flows(sample, operators, of_value)
    direct: dict[int, tuple[int, Result]] = {}
    indirect: dict[int, frozenset[int]] = {}
    leaves = list(_flat_outputs(sample, operators, of_value))
    for place, leaf in enumerate(leaves):
        result = results.get(leaf.index) if isinstance(leaf, Ref) else None
        if isinstance(leaf, tuple):
            result = leaf
        if result is not None and result[1] in operators[result[0]].open_results:
            direct[place] = result
        if result is not None:
            leaf = Ref(operators[result[0]].keys)  # an earlier open order may affect the keys
        if isinstance(leaf, Ref) and reached[leaf.index]:
            indirect[place] = reached[leaf.index]
    inputs = {
        name: orders for name, orders in zip(sample.input_names, reached, strict=False) if orders
    }
    if not direct and not indirect and not inputs:
        return None
    exact = tuple(
        order.kind == "overwrite" or (order.kind != "body" and _are_exact(sample, order.keys))
        for order in operators
    )
    return Orders(tuple(operators), exact, direct, indirect, inputs, len(leaves))


def find_steady_orders(sample: Sample) -> Orders | None:
    """Return the open orders that affect an output or input without a random draw, or None.

    The other outputs are judged by their distribution. Their keys belong to another draw.

    >>> from graphnet_datasets.sample import Input, Value
    >>> sample = Sample("example/order", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (4,))),),
    ...     ops=(Op("torch.rand_like", (Ref(0),)), Op("torch.argmax", (Ref(1),)),
    ...         Op("torch.argmax", (Ref(0),))), outputs=(Ref(2), Ref(3)))
    >>> [*find_orders(sample).direct], [*find_steady_orders(sample).direct]
    ([0, 1], [1])
    """
    orders = find_orders(sample)
    if orders is None:
        return None
    places = set(itertools.compress(itertools.count(), random_outputs(sample)))
    names = set(itertools.compress(sample.input_names, random_inputs(sample)))
    return dataclasses.replace(
        orders,
        direct={place: result for place, result in orders.direct.items() if place not in places},
        reached={
            place: numbers for place, numbers in orders.reached.items() if place not in places
        },
        inputs={name: numbers for name, numbers in orders.inputs.items() if name not in names},
    )


def keys_sample(sample: Sample, orders: Orders) -> Sample:
    """Return the sample with the keys of its open orders as outputs."""
    outputs = tuple(Ref(key) for order in orders.operators for key in order.all_keys)
    return dataclasses.replace(sample, outputs=outputs)


_SAME_ELEMENTS = OperatorNames("same_elements")
_SAME_KEYS = OperatorNames("same_keys")


def _flows(
    sample: Sample, operators: list[OpenOrder], of_value: dict[int, int]
) -> tuple[list[frozenset[int]], dict[int, tuple[int, Result]]]:
    """Return the open orders that affect each value, and which values are their results."""
    num_inputs = len(sample.inputs)
    memory = memory_classes(sample)
    kinds = effect_kinds(sample)
    nothing: frozenset[int] = frozenset()
    reached = [nothing] * (num_inputs + sample.num_ops)
    written: dict[int, frozenset[int]] = {}
    results: dict[int, tuple[int, Result]] = {}
    for position, (op, kind) in enumerate(zip(sample.ops, kinds, strict=True)):
        value = num_inputs + position
        refs = list(iterate_refs((op.args, op.kwargs)))
        own = nothing.union(*(reached[ref] | written.get(memory[ref], nothing) for ref in refs))
        name, first = base_name(op.target), op.args[0] if op.args else None
        source = first.index if isinstance(first, Ref) else None
        if name in ("getitem", "__getitem__") and source in of_value:
            order = operators[of_value[source]]
            index = op.args[1] if len(op.args) > 1 else None
            if type(index) is int and len(order.results) > 1:
                result = order.results[index]
                results[value] = of_value[source], result
                is_open = result in order.open_results
                own = frozenset({of_value[source]}) if is_open else reached[order.keys]
        elif name in _SAME_ELEMENTS and source in results and not _narrows(op):
            results[value] = results[source]
        if value in of_value:
            order = operators[of_value[value]]
            own |= {of_value[value]}
            if len(order.results) == 1:
                results[value] = of_value[value], order.results[0]
        reached[value] = own
        if own and "w" in kind:
            for ref in written_values(op):
                written[memory[ref]] = written.get(memory[ref], nothing) | own
    return [
        orders | written.get(number, nothing)
        for orders, number in zip(reached, memory, strict=True)
    ], results


def _without_overwritten_keys(sample: Sample, operators: list[OpenOrder]) -> Iterator[OpenOrder]:
    """Yield the orders, and mark the keys as unknown that a later operator may write to."""
    memory = memory_classes(sample)
    last_writes = {
        memory[value]: position
        for position, (op, kind) in enumerate(zip(sample.ops, effect_kinds(sample), strict=True))
        if "w" in kind
        for value in written_values(op)
    }
    for order in operators:
        is_known = order.are_keys_known and all(
            last_writes.get(memory[key], -1) <= order.position for key in order.all_keys
        )
        yield dataclasses.replace(order, are_keys_known=is_known)


def _narrows(op: Op) -> bool:
    """Return whether a conversion to another dtype may change integers."""
    named = [*op.args[1:], *(value for _, value in op.kwargs)]
    return base_name(op.target) in ("to", "_to_copy") and any(
        "float" in str(arg) or "bool" in str(arg) or "int8" in str(arg) for arg in named
    )


def _flat_outputs(
    sample: Sample, operators: list[OpenOrder], of_value: dict[int, int]
) -> Iterator[Any]:
    """Yield the leaves of the outputs, including each result of a multi-result operator."""
    for leaf in iterate_leaves(sample.outputs):
        if isinstance(leaf, Ref) and leaf.index in of_value:
            number = of_value[leaf.index]
            for result in operators[number].results:
                yield number, result
            if not operators[number].results:
                yield from itertools.repeat(leaf, sample.count_results(leaf))
        else:
            yield from itertools.repeat(leaf, sample.count_results(leaf))


def _are_exact(sample: Sample, value: int) -> bool:
    """Return whether a value is an input or a view of an input, or is not floating-point."""
    num_inputs = len(sample.inputs)
    while value >= num_inputs:
        op = sample.ops[value - num_inputs]
        results = op.results or ()
        if len(results) == 1 and results[0].dtype and "float" not in results[0].dtype:
            return "complex" not in results[0].dtype
        name = base_name(op.target)
        is_view = name in _SAME_ELEMENTS or name in _SAME_KEYS
        if not is_view or not op.args or not isinstance(op.args[0], Ref):
            return False
        value = op.args[0].index
    return True


def _open_order(sample: Sample, position: int, op: Op) -> OpenOrder | None:
    """Return the open order of an operator, or None if its order is specified.

    The results of a branch or a loop are open if an open order affects an output of a body: the
    condition of a loop decides about all results.
    """
    if any(map(find_orders, sample.bodies.get(position, ()))):
        nothing: frozenset[Result] = frozenset()
        return OpenOrder(
            position, op.target, "body", -1, None, False, (), nothing, are_keys_known=False
        )
    name = base_name(op.target)
    if name not in _ORDERS or (not op.args and not op.kwargs):
        return None
    arguments = _Arguments(op)
    columns = _READERS[_ORDERS[name]](sample.framework, op.target, arguments)
    if columns is None:
        return None
    if columns.get("dim", 0) is not None and type(columns.get("dim", 0)) is not int:
        return None
    keys = columns.pop("keys", arguments.get(0, "input", "self", "x"))
    if not isinstance(keys, Ref):
        return None
    defaults = {"dim": None, "keeps_dim": True}
    return OpenOrder(position, op.target, keys=keys.index, **(defaults | columns))


class _Arguments:
    """Arguments of an operator by position or by one of several names."""

    def __init__(self, op: Op) -> None:
        self._args, self._kwargs = op.args, dict(op.kwargs)

    def __len__(self) -> int:
        return len(self._args) + len(self._kwargs)

    def get(self, position: int | None, *names: str, default: Any = None) -> Any:
        """Return an argument; `position` is None for keyword-only arguments."""
        for name in names:
            if name in self._kwargs:
                return self._kwargs[name]
        if position is not None and position < len(self._args):
            return self._args[position]
        return default


def _argsort(framework: str, target: str, arguments: _Arguments) -> dict[str, Any] | None:
    stable = arguments.get(3 if framework == "paddle" else None, "stable", default=False)
    if stable is True:
        return None
    dim = arguments.get(1, "dim", "axis", default=-1)
    if target.startswith("paddle._C_ops"):
        results: tuple[Result, ...] = ("values", "positions")
    else:
        results = ("positions",)
    return _sorting(dim, results)


def _sort(framework: str, _: str, arguments: _Arguments) -> dict[str, Any] | None:
    if framework == "paddle" or arguments.get(None, "stable", default=False) is True:
        return None  # Paddle's operator returns only the values
    return _sorting(arguments.get(1, "dim", default=-1), ("values", "positions"))


def _topk(_: str, __: str, arguments: _Arguments) -> dict[str, Any]:
    dim = arguments.get(2, "dim", "axis", default=-1)
    columns = _sorting(-1 if dim is None else dim, ("values", "positions"))
    if arguments.get(4, "sorted", default=True) is False:
        columns["open_results"] = frozenset({"values", "positions"})
    count = arguments.get(1, "k")
    columns["count"] = count if type(count) is int else None
    return columns | {"is_largest": arguments.get(3, "largest", default=True) is not False}


def _sorting(dim: Any, results: tuple[Result, ...]) -> dict[str, Any]:
    return {
        "kind": "sort",
        "dim": dim,
        "results": results,
        "open_results": frozenset({"positions"}),
    }


def _kthvalue(_: str, __: str, arguments: _Arguments) -> dict[str, Any]:
    dim = arguments.get(2, "dim", "axis", default=-1)
    return _choice(-1 if dim is None else dim, arguments.get(3, "keepdim", default=False))


def _mode(_: str, __: str, arguments: _Arguments) -> dict[str, Any]:
    dim = arguments.get(1, "dim", "axis", default=-1)
    columns = _choice(-1 if dim is None else dim, arguments.get(2, "keepdim", default=False))
    return columns | {"kind": "mode", "open_results": frozenset({"values", "positions"})}


def _median(framework: str, _: str, arguments: _Arguments) -> dict[str, Any] | None:
    dim = arguments.get(1, "dim", "axis")
    mode = arguments.get(3, "mode", default="avg")
    if type(dim) is not int or (framework == "paddle" and mode != "min"):
        return None  # only the values
    return _choice(dim, arguments.get(2, "keepdim", default=False))


def _cumulative(_: str, __: str, arguments: _Arguments) -> dict[str, Any] | None:
    dim = arguments.get(1, "dim", "axis")
    if type(dim) is not int:
        return None
    return _choice(dim, True) | {"is_cumulative": True}


def _arg_extreme(framework: str, _: str, arguments: _Arguments) -> dict[str, Any]:
    dim = arguments.get(1, "dim", "axis")
    if framework == "paddle" and arguments.get(3, "flatten", default=False) is True:
        dim = None
    keeps = arguments.get(2, "keepdim", "keepdims", default=False)
    columns = _choice(dim, dim is not None and keeps)
    return columns | {"results": ("positions",), "is_first": framework == "torch"}


def _extreme(framework: str, _: str, arguments: _Arguments) -> dict[str, Any] | None:
    dim = arguments.get(1, "dim")
    if framework != "torch" or type(dim) is not int:
        return None  # only the values
    return _choice(dim, arguments.get(2, "keepdim", default=False)) | {"is_first": True}


def _choice(dim: Any, keeps_dim: Any) -> dict[str, Any]:
    return {
        "kind": "select",
        "dim": dim,
        "keeps_dim": keeps_dim is True,
        "results": ("values", "positions"),
        "open_results": frozenset({"positions"}),
    }


def _unique(framework: str, target: str, arguments: _Arguments) -> dict[str, Any] | None:
    if framework != "torch" or arguments.get(1, "sorted", default=True) is not False:
        return None
    is_low_level = "_unique" in target
    results: list[Result] = ["values"]
    if is_low_level or arguments.get(2, "return_inverse", default=False) is True:
        results.append("inverse")
    is_counted = arguments.get(3, "return_counts", default=False) is True
    if target.rpartition(".")[2] != "_unique" and (is_counted or "_unique2" in target):
        results.append("counts")
    return _uniqueness(results, arguments.get(4, "dim"))


def _unique_dim(framework: str, _: str, arguments: _Arguments) -> dict[str, Any] | None:
    if framework != "torch" or arguments.get(2, "sorted", default=True) is not False:
        return None
    return _uniqueness(["values", "inverse", "counts"], arguments.get(1, "dim"))


def _uniqueness(results: list[Result], dim: Any) -> dict[str, Any]:
    return {
        "kind": "unique",
        "dim": dim,
        "results": tuple(results),
        "open_results": frozenset(results),
    }


def _overwrite(framework: str, target: str, arguments: _Arguments) -> dict[str, Any] | None:
    name = base_name(target).strip("_")
    dim = None
    if name == "scatter":
        dim, keys, source = (arguments.get(i, n) for i, n in enumerate(("dim", "index", "src"), 1))
        adds = arguments.get(4, "reduce")
    elif name == "index_copy":
        keys, source = arguments.get(2, "index"), arguments.get(3, "source", "tensor")
        adds = None
    else:
        keys = arguments.get(1, "indices", "index")
        source = arguments.get(2, "values", "source")
        adds = arguments.get(3, "accumulate")
    items = keys.items if isinstance(keys, ListArg) else keys if isinstance(keys, tuple) else [keys]
    indices = [item for item in items if isinstance(item, Ref)]
    if framework != "torch" or adds or not indices or not isinstance(source, Ref):
        return None  # a number has no order
    further = tuple(index.index for index in indices[1:])
    columns = {"kind": "overwrite", "keys": indices[0], "further_keys": further, "dim": dim}
    return columns | {"results": (), "open_results": frozenset()}


def _max_pool(framework: str, target: str, arguments: _Arguments) -> dict[str, Any] | None:
    name = base_name(target)
    num_axes = _num_axes(name)
    is_low_level = target.startswith(("torch.ops.", "paddle._C_ops."))
    if not (is_low_level or name.endswith("_with_indices")):
        place = 4 if framework == "paddle" else 6
        if arguments.get(place, "return_indices", "return_mask", default=False) is not True:
            return None
    if framework == "paddle" and arguments.get(5, "adaptive", default=False) is True:
        return _pooling(
            num_axes, Window(_numbers(arguments.get(1), num_axes) or (), is_adaptive=True)
        )
    kernel = _numbers(arguments.get(1, "kernel_size"), num_axes)
    stride = _numbers(arguments.get(2, "stride", "strides"), num_axes) or kernel
    padding = _numbers(arguments.get(3, "padding", "paddings", default=0), num_axes)
    dilation = _numbers(
        arguments.get(4, "dilation", default=1) if framework == "torch" else 1, num_axes
    )
    if kernel is None or stride is None or padding is None or dilation is None:
        return None
    return _pooling(num_axes, Window(kernel, stride, padding, dilation))


def _adaptive_max_pool(framework: str, target: str, arguments: _Arguments) -> dict[str, Any] | None:
    if not _returns_positions(framework, target, arguments, 2):
        return None
    num_axes = _num_axes(base_name(target))
    sizes = _numbers(arguments.get(1, "output_size"), num_axes)
    return _pooling(num_axes, Window(sizes or (), is_adaptive=True))


def _fractional_max_pool(
    framework: str, target: str, arguments: _Arguments
) -> dict[str, Any] | None:
    if framework != "torch" or not _returns_positions(framework, target, arguments, 4):
        return None
    num_axes = _num_axes(base_name(target))
    kernel = _numbers(arguments.get(1, "kernel_size"), num_axes)
    return None if kernel is None else _pooling(num_axes, Window(kernel, is_random=True))


def _returns_positions(framework: str, target: str, arguments: _Arguments, place: int) -> bool:
    """Return whether a pooling operator returns positions, which a flag may control."""
    if not target.startswith(f"{framework}.nn.functional.") or target.endswith("_with_indices"):
        return True
    return arguments.get(place, "return_indices", "return_mask", default=False) is True


def _num_axes(name: str) -> int:
    """Return the number of spatial dimensions of a pooling operator.

    >>> _num_axes("adaptive_max_pool2d_with_indices")
    2
    """
    return int(name.partition("pool")[2][0])


def _pooling(num_axes: int, window: Window) -> dict[str, Any]:
    return {
        "kind": "pool",
        "results": ("values", "positions"),
        "open_results": frozenset({"positions"}),
        "window": window,
        "num_axes": num_axes,
    }


def _numbers(size: Any, count: int) -> tuple[int, ...] | None:
    """Return a size for each axis, or None if it is unknown before the call."""
    items = size.items if isinstance(size, ListArg) else size
    if isinstance(items, int):
        return (items,) * count
    if not isinstance(items, tuple):
        return None
    sizes = tuple(item for item in items if isinstance(item, int))
    if len(sizes) != len(items):
        return None
    sizes = sizes * count if len(sizes) == 1 else sizes
    return sizes if len(sizes) == count else None


_READERS: dict[str, Any] = {
    reader.__name__.removeprefix("_"): reader
    for reader in (
        *(_argsort, _sort, _topk, _kthvalue, _mode, _median, _cumulative, _arg_extreme, _extreme),
        *(_unique, _unique_dim, _max_pool, _adaptive_max_pool, _fractional_max_pool),
        _overwrite,
    )
}
_ORDERS = OperatorValues("order")

"""Categories of problems."""

from __future__ import annotations

from collections.abc import Iterator

from graphnet_datasets.analysis.effects import effect_kinds, memory_classes, written_values
from graphnet_datasets.analysis.tags import op_tags
from graphnet_datasets.operators import entries
from graphnet_datasets.sample import Input, Op, Sample
from graphnet_datasets.sample.arguments import ListArg, Ref, iterate_refs
from graphnet_datasets.sample.targets import base_name

from .canonical import core_operators, kind_of_dtype

_TAGS = (
    *("attention", "moe", "recurrent", "quantized", "convolution", "embedding", "fourier"),
    *("norm", "pooling", "matmul", "sort", "scatter_gather", "random"),
)
"""Tags of operators by importance; a problem belongs to the first."""

_CACHE_WRITES = frozenset({"index_copy", "index_put", "scatter", "slice_scatter"})
_CACHE_READS = frozenset({"gather", "getitem", "index", "index_select", "take_along_axis"})
_CACHE_RANK = 3
"""Caches of keys and values have at least this rank: tokens, heads and width."""

_OF_LOSSES = frozenset(
    {"abs", "log", "log1p", "log_sigmoid", "log_softmax", "_log_softmax", "logsigmoid"}
    | {"logsumexp", "norm", "pow", "softplus"}
)
"""Core operators of which the mean or the sum over all elements is a loss."""
_DIVISIONS = frozenset({"div", "divide", "truediv"})


def category_of(sample: Sample) -> str:
    """Return the category of a problem from the graph of a workload.

    Updates of parameters are `optimizers`, and attention with a cache is `serving`. Other problems
    belong to `losses`, to the most important tag of their operators, or to `reductions` or
    `pointwise`.

    >>> from graphnet_datasets.sample import Value
    >>> def category(target, role):
    ...     inputs = (Input(role, Value("float32", (8,))),) * 2
    ...     op = Op(target, (Ref(0), Ref(1)))
    ...     return category_of(Sample("example/a", "torch", "other", inputs, (op,), Ref(2)))
    >>> category("torch.Tensor.add_", "parameter"), category("torch.Tensor.add_", "input")
    ('optimizers', 'pointwise')
    >>> category("torch.nn.functional.mse_loss", "input"), category("torch.mm", "input")
    ('losses', 'matmul')
    """
    families = {family for op in sample.ops if (family := _family(op)) is not None}
    if "optimizers" in families or _updates_parameters(sample):
        return "optimizers"
    tags = set(op_tags(sample))
    if _uses_cache(sample, "attention" in tags):
        return "serving"
    if "losses" in families or _returns_loss(sample):
        return "losses"
    return next(
        (tag for tag in _TAGS if tag in tags),
        "reductions" if "reductions" in families else "pointwise",
    )


def _family(op: Op) -> str | None:
    name = _name(op)
    if name.endswith("_backward") and ("loss" in name or "entropy" in name):
        return "losses"
    entry = entries().get(base_name(op.target)) or entries().get(name)
    return entry and entry.family


def _name(op: Op) -> str:
    return base_name(op.target).rstrip("_")


def _updates_parameters(sample: Sample) -> bool:
    """Return whether a graph is a step of an optimizer.

    A step writes to a parameter, divides by the root of a second moment, accumulates a square, or
    updates an input by another input that it has updated.
    """
    if any(op.target.startswith("torch._foreach_") for op in sample.ops):
        return True
    names = {_name(op) for op in sample.ops}
    if {"addcdiv", "sqrt"} <= names:
        return True
    places = {place: place for place in range(len(sample.inputs))}
    updated: set[int] = set()
    for position, (op, kind) in enumerate(zip(sample.ops, effect_kinds(sample), strict=True)):
        if "w" not in kind or _family(op) != "pointwise":
            continue
        if _name(op) == "addcmul" and op.args[1] == op.args[2]:
            return True
        targets = {places[ref] for ref in written_values(op) if ref in places}
        operands = {places.get(ref) for ref in iterate_refs((op.args, op.kwargs))}
        if any(sample.inputs[target].role == "parameter" for target in targets):
            return True
        if targets and (operands - targets) & updated:
            return True
        updated |= targets
        if len(targets) == 1:
            places[len(sample.inputs) + position] = targets.pop()
    return False


def _uses_cache(sample: Sample, has_attention: bool) -> bool:
    """Return whether a graph writes to a cache, or reads keys or values of attention from one."""
    kinds = effect_kinds(sample)
    memory = memory_classes(sample) if any("w" in kind for kind in kinds) else []
    caches = {place for place, item in enumerate(sample.inputs) if _is_cache(item)}
    for op, kind in zip(sample.ops, kinds, strict=True):
        if "w" in kind and _name(op) in {*_CACHE_WRITES, "copy"}:
            written = {memory[ref] for ref in written_values(op)}
            roles = {sample.inputs[cache].role for cache in caches if memory[cache] in written}
            if "buffer" in roles or (roles and _name(op) != "copy"):
                return True
    return has_attention and _reads_cache(sample, caches)


def _is_cache(item: Input) -> bool:
    is_data = item.role in ("input", "buffer") and kind_of_dtype(item.value.dtype) == "float"
    return is_data and len(item.value.shape or ()) >= _CACHE_RANK


def _reads_cache(sample: Sample, caches: set[int]) -> bool:
    """Return whether keys or values, but not queries, are gathered from caches or appended."""
    num_inputs = len(sample.inputs)
    views = set(caches)
    cached: set[int] = set()
    for position, op in enumerate(sample.ops):
        value = num_inputs + position
        refs = list(iterate_refs((op.args, op.kwargs)))
        name = _name(op)
        is_read = name in _CACHE_READS and any(isinstance(item, Ref) for item in _flat(op.args[1:]))
        if refs and refs[0] in views and (is_read or name in _CACHE_WRITES or _appends(op)):
            cached.add(value)
        elif not core_operators(op.target):
            for values in (views, cached):
                if refs and refs[0] in values:
                    values.add(value)
        elif name in ("bmm", "matmul") or "attention" in name:
            query, *others = refs
            if query not in cached and cached & set(others):
                return True
    return False


def _flat(argument: object) -> Iterator[object]:
    if isinstance(argument, ListArg):
        argument = argument.items
    if isinstance(argument, tuple):
        for item in argument:
            yield from _flat(item)
    else:
        yield argument


def _appends(op: Op) -> bool:
    """Return whether tensors of rank 4 are concatenated along their tokens."""
    dim = dict(op.kwargs).get("dim", op.args[1] if len(op.args) > 1 else 0)
    rank = len(op.results[0].shape or ()) if op.results else 0
    return _name(op) in ("cat", "concat") and rank == _CACHE_RANK + 1 and dim in (2, -2)


def _returns_loss(sample: Sample) -> bool:
    """Return whether an output is the mean or the sum of logarithms, powers or ratios of sums."""
    num_inputs = len(sample.inputs)
    sums: set[int] = set()
    terms: set[int] = set()
    losses: set[int] = set()
    for position, op in enumerate(sample.ops):
        value = num_inputs + position
        refs = set(iterate_refs((op.args, op.kwargs)))
        core = set(core_operators(op.target))
        is_reduction = bool(core & {"mean", "sum"})
        if is_reduction or refs & sums:
            sums.add(value)
        if core & _OF_LOSSES or refs & terms or (_name(op) in _DIVISIONS and refs <= sums):
            terms.add(value)
        is_scalar = bool(op.results) and op.results[0].shape == ()
        if is_scalar and (refs & losses or (is_reduction and refs & terms)):
            losses.add(value)
    return not losses.isdisjoint(iterate_refs(sample.outputs))

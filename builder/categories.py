"""Categories of problems, from the operators and the data flow of their graphs."""

from __future__ import annotations

from collections.abc import Collection

from graphnet_datasets.analysis.effects import effect_kinds, memory_classes, written_values
from graphnet_datasets.analysis.tags import op_tags
from graphnet_datasets.inputs.consumers import operand, short_name
from graphnet_datasets.sample import Input, Op, Sample
from graphnet_datasets.sample.arguments import Ref, iterate_leaves, iterate_refs

from .canonical import core_operators, find_operator, kind_of_dtype

_TAGS = (
    *("attention", "moe", "recurrent", "quantized", "convolution", "embedding", "fourier"),
    *("norm", "pooling", "matmul", "sort", "scatter_gather", "random"),
)
"""Tags of operators by importance; a problem belongs to the first."""

_CACHE_WRITES = frozenset({"index_copy", "index_put", "scatter", "slice_scatter"})
_CACHE_READS = frozenset({"gather", "getitem", "index", "index_select", "take_along_axis"})
_CACHE_RANK = 3
"""Minimum rank of a cache of keys or values, which has dimensions of tokens, heads and width."""

_OF_LOSSES = frozenset(
    {"abs", "log", "log1p", "log_sigmoid", "log_softmax", "_log_softmax", "logsigmoid"}
    | {"logsumexp", "norm", "pow", "softplus"}
)
"""Core operators whose mean or sum over all elements is a loss."""
_DIVISIONS = frozenset({"div", "divide", "truediv"})


def category_of(sample: Sample) -> str:
    """Return the category of a problem from the graph of a workload.

    It is the first that applies of `optimizers` for updates of parameters, `serving` for caches of
    keys and values, `losses`, the most important tag of the operators, `reductions`, `pointwise`.

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
    caches = {place for place, item in enumerate(sample.inputs) if _is_cache(item)}
    if _writes_cache(sample, caches) or ("attention" in tags and _reads_cache(sample, caches)):
        return "serving"
    if "losses" in families or _returns_loss(sample):
        return "losses"
    return next(
        (tag for tag in _TAGS if tag in tags),
        "reductions" if "reductions" in families else "pointwise",
    )


def _family(op: Op) -> str | None:
    name = short_name(op.target)
    if name.endswith("_backward") and ("loss" in name or "entropy" in name):
        return "losses"
    _, entry = find_operator(op.target)
    return entry and entry.family


def _updates_parameters(sample: Sample) -> bool:
    """Return whether a graph is a step of an optimizer.

    A step calls an operator of many tensors, divides by the root of a second moment, adds a square
    in place, writes to a parameter, or updates an input with another input that it has updated.
    """
    if any(op.target.startswith("torch._foreach_") for op in sample.ops):
        return True
    names = {short_name(op.target) for op in sample.ops}
    if {"addcdiv", "sqrt"} <= names:
        return True
    places = {place: place for place in range(len(sample.inputs))}
    updated: set[int] = set()
    for position, (op, kind) in enumerate(zip(sample.ops, effect_kinds(sample), strict=True)):
        if "w" not in kind or _family(op) != "pointwise":
            continue
        if short_name(op.target) == "addcmul" and op.args[1] == op.args[2]:
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


def _writes_cache(sample: Sample, caches: Collection[int]) -> bool:
    """Return whether a graph stores values in a cache by index, or copies to a buffer."""
    memory = memory_classes(sample)
    for op, kind in zip(sample.ops, effect_kinds(sample), strict=True):
        name = short_name(op.target)
        if "w" not in kind or not (name == "copy" or name in _CACHE_WRITES):
            continue
        written = {memory[ref] for ref in written_values(op)}
        roles = {sample.inputs[cache].role for cache in caches if memory[cache] in written}
        if "buffer" in roles or (roles and name != "copy"):
            return True
    return False


def _is_cache(item: Input) -> bool:
    is_data = item.role in ("input", "buffer") and kind_of_dtype(item.value.dtype) == "float"
    return is_data and len(item.value.shape or ()) >= _CACHE_RANK


def _reads_cache(sample: Sample, caches: Collection[int]) -> bool:
    """Return whether attention takes keys or values, but not queries, from caches.

    They are gathered from a cache, or are a cache to which new values were added.
    """
    num_inputs = len(sample.inputs)
    views = set(caches)
    cached: set[int] = set()
    for position, op in enumerate(sample.ops):
        value = num_inputs + position
        refs = list(iterate_refs((op.args, op.kwargs)))
        name = short_name(op.target)
        has_index = any(isinstance(item, Ref) for item in iterate_leaves(op.args[1:]))
        is_read = name in _CACHE_READS and has_index
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


def _appends(op: Op) -> bool:
    """Return whether an operator concatenates tensors of rank 4 along their tokens."""
    rank = len(op.results[0].shape or ()) if op.results else 0
    is_concatenation = short_name(op.target) in ("cat", "concat")
    return is_concatenation and rank == _CACHE_RANK + 1 and operand(op, (1, "dim")) in (2, -2)


def _returns_loss(sample: Sample) -> bool:
    """Return whether an output is a mean or sum of logarithms or powers, or of ratios of sums."""
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
        if (
            core & _OF_LOSSES
            or refs & terms
            or (short_name(op.target) in _DIVISIONS and refs <= sums)
        ):
            terms.add(value)
        is_scalar = bool(op.results) and op.results[0].shape == ()
        if is_scalar and (refs & losses or (is_reduction and refs & terms)):
            losses.add(value)
    return not losses.isdisjoint(iterate_refs(sample.outputs))

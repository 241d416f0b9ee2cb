"""Uses of weights in a graph: statistics of normalizations, factors of products, and positive
weights.

A value is weight-only if it is computed only from parameters, buffers, constants and literals. Its
root is the single weight that it is proportional to, if any: that of a transposed kernel is the
kernel, and that of a gain times a normalized direction is the gain.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from ..operators import OperatorNames
from ..sample import Op, Sample
from ..sample.arguments import iterate_refs
from ..sample.vocabulary import WEIGHT_ROLES
from .consumers import operand, ref_of, short_name
from .keeping import once_per_sample
from .rules import rules_of
from .terms import is_whole

_NORM_NAMES = OperatorNames("statistics_norm")
_PRODUCTS = OperatorNames("proportional")

_LINEAR = OperatorNames("linear_in_weight")
_POSITIVE = OperatorNames("needs_positive")


@dataclasses.dataclass(frozen=True, slots=True)
class Norm:
    """A normalization with running statistics: its input, running mean, running variance and
    epsilon."""

    value: int
    mean: int
    variance: int
    epsilon: float


@dataclasses.dataclass(frozen=True)
class WeightUses:
    """The uses of weights in a graph.

    `dependents` maps each weight to the weight-only operators that depend on it, in order. `norms`
    maps operator positions to normalizations, and `products` maps operator positions to the weight
    that the result is proportional to. `positive` are weights that must not be negative: variances,
    and arguments of square roots and logarithms.
    """

    weight_only: frozenset[int]
    dependents: Mapping[int, tuple[int, ...]]
    norms: Mapping[int, Norm]
    products: Mapping[int, int]
    positive: frozenset[int]


@once_per_sample
def find_weight_uses(sample: Sample) -> WeightUses:
    """Return how a sample's graph uses its weights.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> data, weight = Value("float32", (2, 3)), Value("float32", (4, 3))
    >>> sample = Sample("example/linear", "torch", "other",
    ...     (Input("input", data), Input("parameter", weight)),
    ...     (Op("torch.nn.functional.linear", (Ref(0), Ref(1))),), Ref(2))
    >>> find_weight_uses(sample).products
    {0: 1}
    """
    num_inputs = len(sample.inputs)
    made_of: dict[int, frozenset[int]] = {}
    root: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for index, sample_input in enumerate(sample.inputs):
        if sample_input.role in WEIGHT_ROLES:
            made_of[index] = frozenset({index})
            if not is_whole(sample_input.value.dtype or "bool"):
                root[index] = index
            sizes[index] = 1
            for size in sample.shape_of(sample_input.value) or ():
                sizes[index] *= size
    dependents: dict[int, list[int]] = {}
    norms: dict[int, Norm] = {}
    products: dict[int, int] = {}
    positive: set[int] = set()
    for position, op in enumerate(sample.ops):
        own = num_inputs + position
        name = short_name(op.target)
        refs = list(iterate_refs((op.args, op.kwargs)))
        if name in _POSITIVE:
            positive |= {root[ref] for ref in refs if ref in root}
        if refs and all(ref in made_of for ref in refs):
            sources = frozenset().union(*(made_of[ref] for ref in refs))
            made_of[own] = sources
            for source in sources:
                dependents.setdefault(source, []).append(position)
            result_root = _root(sample, name, op, root, sizes)
            if result_root is not None:
                root[own] = result_root
            continue
        norm = _norm(sample, name, op, root)
        if norm is not None:
            norms[position] = norm
            positive.add(norm.variance)
            continue
        if name in _PRODUCTS and not op.target.endswith("_"):
            roots = {root[ref] for ref in refs if ref in root and _is_factor(sample, op, ref)}
            if roots:
                products[position] = max(roots, key=sizes.__getitem__)
    return WeightUses(
        frozenset(made_of),
        {source: tuple(positions) for source, positions in dependents.items()},
        norms,
        products,
        frozenset(positive),
    )


def is_positive_weight(sample: Sample, index: int, minimum: float) -> bool:
    """Return whether the graph requires a weight to be positive and the recorded minimum allows it.

    `minimum` is the recorded minimum, or minus infinity.
    """
    sample_input = sample.inputs[index]
    if sample_input.role not in WEIGHT_ROLES or (minimum < 0 and minimum != -math.inf):
        return False
    return index in find_weight_uses(sample).positive


def _root(
    sample: Sample, name: str, op: Op, root: Mapping[int, int], sizes: Mapping[int, int]
) -> int | None:
    """Return the weight that a weight-only result is proportional to, or None."""
    refs = list(iterate_refs((op.args, op.kwargs)))
    if name == "_weight_norm":
        return root.get(refs[1]) if len(refs) > 1 else None
    if name in _LINEAR:
        roots = {root.get(ref) for ref in refs if not _is_integer(sample, ref)}
        return roots.pop() if len(roots) == 1 else None
    if name in ("add", "scale") and len(refs) == 1 and refs[0] in root:
        return root[refs[0]]  # a variance plus epsilon: approximately proportional
    if name in ("mul", "multiply", "imul", "__mul__"):
        # For a gain times a normalized direction, the gain is the smaller weight.
        roots = {root[ref] for ref in refs if ref in root}
        return min(roots, key=sizes.__getitem__) if roots else None
    if name in ("div", "divide", "truediv") and refs:
        return root.get(refs[0])
    return None


def _is_integer(sample: Sample, ref: int) -> bool:
    return ref < len(sample.inputs) and is_whole(sample.inputs[ref].value.dtype or "float")


def _is_factor(sample: Sample, op: Op, ref: int) -> bool:
    """Return whether a product is proportional to an operand, unlike to a bias or a mask."""
    bias = rules_of(sample.framework).bias(op)
    if bias is not None:
        return ref_of(operand(op, (bias, "bias"))) != ref
    if short_name(op.target) in ("addmm", "baddbmm"):
        return bool(op.args) and ref_of(op.args[0]) != ref
    return True


def _norm(sample: Sample, name: str, op: Op, root: Mapping[int, int]) -> Norm | None:
    if name not in _NORM_NAMES:
        return None
    rules = rules_of(sample.framework)
    places = rules.norm(op)
    if places is None:
        return None
    keywords = ("input", "running_mean", "running_var")
    value, mean, variance = (
        ref_of(operand(op, place)) for place in zip(places, keywords, strict=True)
    )
    if (
        value is None
        or mean is None
        or variance is None
        or mean not in root
        or variance not in root
    ):
        return None
    if rules.is_training(op):
        return None
    epsilons = [arg for arg in (*op.args, *(arg for _, arg in op.kwargs))
                if type(arg) is float and 0 < arg < 0.05]  # fmt: skip
    return Norm(value, root[mean], root[variance], epsilons[-1] if epsilons else 1e-5)

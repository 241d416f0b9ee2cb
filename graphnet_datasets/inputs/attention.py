"""Attention in graphs: its scores, their entropy, and the weights that scale them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from ..operators import OperatorNames
from ..sample import Op, Sample
from ..sample.vocabulary import WEIGHT_ROLES
from .consumers import operand, ref_of, short_name
from .keeping import once_per_sample
from .rules import rules_of
from .weights import WeightUses, find_weight_uses

LEAST_ENTROPY, MOST_ENTROPY = 0.2, 0.8
"""Accepted entropy of attention, relative to that of uniform attention."""

_TARGET = 0.5
_MASKED = -9e3
"""Scores up to this number are masked; models mask by adding -1e4, the lowest number or -inf."""
_MAX_SCORES, _MAX_SOLVED = 2**22, 2**17
_MAX_EXPONENT = 12.0
_MAX_STEPS = 16
"""Maximum number of operators between a softmax and the products around it."""

_PASSES_ON, _LINEAR = OperatorNames("passes_on"), OperatorNames("linear_in_weight")
_MATMULS = OperatorNames("matmul")
_ALSO_LINEAR = frozenset(
    ("unbind", "repeat_interleave", "dropout", "view_as_complex", "view_as_real", "baddbmm")
)
_SOFTMAX = frozenset({"softmax", "_softmax", "_safe_softmax"})
_FUSED = frozenset({"scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu"})

Array = npt.NDArray[np.float32]
ArrayOf = Callable[[int], Array | None]


@dataclasses.dataclass(frozen=True, slots=True)
class Attention:
    """An attention: a softmax between two products, or a fused operator.

    `scores` is the value that the softmax is applied to; None for a fused operator. `query` and
    `key` are the operands of the first product. The scores are proportional to each of
    `query_weights`, `key_weights` and `score_weights`, as far as known.
    """

    op: Op
    scores: int | None
    query: int | None
    key: int | None
    query_weights: frozenset[int] = frozenset()
    key_weights: frozenset[int] = frozenset()
    score_weights: frozenset[int] = frozenset()


@once_per_sample
def find_attention(sample: Sample) -> dict[int, Attention]:
    """Return the attentions of a graph by the positions of their softmax or fused operator.

    >>> from graphnet_datasets.sample import Input, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> fused = Op("torch.nn.functional.scaled_dot_product_attention", (Ref(0), Ref(0), Ref(0)))
    >>> tokens = Input("input", Value("float32", (1, 2, 4, 8)))
    >>> sorted(find_attention(Sample("example/attention", "torch", "nlp", (tokens,), (fused,), 1)))
    [0]
    """
    uses = find_weight_uses(sample)
    num_inputs = len(sample.inputs)
    attentions: dict[int, Attention] = {}
    for position, op in enumerate(sample.ops):
        name = short_name(op.target)
        if name in _FUSED or name == "flash_attn":
            query, key = ref_of(operand(op, (0, "query"))), ref_of(operand(op, (1, "key")))
            sides = [
                frozenset() if value is None else weights_behind(sample, value)
                for value in (query, key)
            ]
            attentions[position] = Attention(op, None, query, key, *sides)
        elif name in _MATMULS and position not in uses.products:
            for ref in sample.op_refs[position]:
                for softmax in _behind(sample, ref, _is_softmax):
                    if softmax not in attentions and num_inputs + softmax not in uses.weight_only:
                        attentions[softmax] = _attention(sample, uses, sample.ops[softmax])
    return attentions


def weights_behind(sample: Sample, value: int) -> frozenset[int]:
    """Return the weights that a value is proportional to, up to shifts: those of the products and
    normalizations that it comes from without a nonlinear operator in between."""
    uses = find_weight_uses(sample)
    ends = _behind(
        sample, value, lambda position, _: position in uses.products or position in uses.norms
    )
    weights = (
        uses.products.get(position, _scale_of(sample, sample.ops[position])) for position in ends
    )
    return frozenset(weight for weight in weights if weight is not None)


def _scale_of(sample: Sample, op: Op) -> int | None:
    """Return the scale of a normalization by running statistics, or None without one."""
    places = rules_of(sample.framework).norm(op)
    place = 1 if places is not None and places[1] == 3 else 3
    weight = ref_of(operand(op, (place, "weight")))
    if weight is None or weight >= len(sample.inputs):
        return None
    return weight if sample.inputs[weight].role in WEIGHT_ROLES else None


def _attention(sample: Sample, uses: WeightUses, op: Op) -> Attention:
    scores = ref_of(op.args[0]) if op.args else None
    if scores is None:
        return Attention(op, None, None, None)

    def is_product(position: int, candidate: Op) -> bool:
        return short_name(candidate.target) in _MATMULS or position in uses.products

    sides: list[frozenset[int]] = [frozenset(), frozenset()]
    direct: set[int] = set()
    for position in _behind(sample, scores, is_product):
        if position in uses.products:
            direct.add(uses.products[position])
            continue
        for place, ref in enumerate(sample.op_refs[position][-2:]):
            sides[place] |= weights_behind(sample, ref)
    return Attention(op, scores, None, None, sides[0], sides[1], frozenset(direct))


def _is_softmax(_: int, op: Op) -> bool:
    return short_name(op.target) in _SOFTMAX and not op.target.endswith("_")


def _behind(sample: Sample, value: int, is_end: Callable[[int, Op], bool]) -> Iterator[int]:
    """Yield the nearest operators of a kind that a value comes from through linear operators."""
    num_inputs = len(sample.inputs)
    waiting, seen = [(value, 0)], {value}
    while waiting:
        current, steps = waiting.pop(0)
        position = current - num_inputs
        if position < 0:
            continue
        op = sample.ops[position]
        if is_end(position, op):
            yield position
            continue
        name = short_name(op.target)
        if steps < _MAX_STEPS and (name in _PASSES_ON or name in _LINEAR or name in _ALSO_LINEAR):
            for ref in sample.op_refs[position]:
                if ref not in seen:
                    seen.add(ref)
                    waiting.append((ref, steps + 1))


def scores_of(attention: Attention, array: ArrayOf) -> Array | None:
    """Return the scores of an attention before its softmax, of shape (rows, entries).

    Masked entries are -inf. Of many rows, a part is returned. Returns None if the scores cannot be
    computed.
    """
    if attention.scores is not None:
        scores = array(attention.scores)
        axis = operand(attention.op, (1, "dim"))
        axis = operand(attention.op, (1, "axis")) if axis is None else axis
        axis = axis if type(axis) is int else -1
        if scores is None or not scores.size or not -scores.ndim <= axis < scores.ndim:
            return None
        scores = np.moveaxis(scores, axis, -1)
        scores = scores.reshape(-1, scores.shape[-1])
        scores = scores[:: 1 + scores.size // _MAX_SCORES]
    else:
        scores = _fused_scores(attention, array)
    if scores is None or not scores.size:
        return None
    return np.where(scores > _MASKED, scores, np.float32(-np.inf))


def _fused_scores(attention: Attention, array: ArrayOf) -> Array | None:
    op = attention.op
    query, key = (
        None if value is None else array(value) for value in (attention.query, attention.key)
    )
    name = short_name(op.target)
    mask_place, causal_place = {
        "flash_attn": ((4, "attn_mask"), (6, "causal")),
        "scaled_dot_product_attention": ((3, "attn_mask"), (5, "is_causal")),
    }.get(name, ((99, "attn_mask"), (4, "is_causal")))
    if query is None or key is None or query.ndim != key.ndim or query.ndim < 3:
        return None
    if not query.size or not key.size:
        return None
    if name == "flash_attn":
        query, key = query.swapaxes(1, 2), key.swapaxes(1, 2)
    if query.ndim == 4 and query.shape[1] != key.shape[1]:
        key = np.repeat(key, query.shape[1] // key.shape[1], axis=1)
    num_rows, num_keys = query.shape[-2], key.shape[-2]
    every = 1 + math.prod(query.shape[:-1]) * num_keys // _MAX_SCORES
    rows = np.arange(0, num_rows, min(every, num_rows))
    scale = operand(op, (99, "scale"))
    factor = scale if type(scale) is float else query.shape[-1] ** -0.5
    scores = np.matmul(query[..., rows, :] * np.float32(factor), key.swapaxes(-1, -2))
    mask_ref = ref_of(operand(op, mask_place))
    mask = None if mask_ref is None else array(mask_ref)
    if mask_ref is not None and mask is None:
        return None
    if mask is not None:
        mask = mask[..., rows, :] if mask.shape[-2] == num_rows else mask
        is_keep = bool(np.isin(mask, (0, 1)).all()) and bool(mask.any())
        scores = np.where(mask > 0, scores, -np.inf) if is_keep else scores + mask
    if operand(op, causal_place) is True:
        scores = np.where(np.arange(num_keys) <= rows[:, None], scores, -np.inf)
    return scores.reshape(-1, num_keys).astype(np.float32)


def relative_entropy(scores: Array, factor: float = 1.0) -> float | None:
    """Return the mean entropy of the softmax of the rows, relative to that of a uniform row.

    The maximum is the logarithm of the number of entries that are not masked. Rows with fewer than
    two such entries do not count.

    >>> relative_entropy(np.zeros((2, 4), np.float32))
    1.0
    """
    counts = np.isfinite(scores).sum(axis=1)
    scores, counts = scores[counts > 1], counts[counts > 1]
    if not counts.size:
        return None
    with np.errstate(under="ignore", invalid="ignore"):
        shifted = (scores - scores.max(axis=1, keepdims=True)).astype(np.float64) * factor
        shares = np.exp(shifted)
        total = shares.sum(axis=1)
        weighted = np.where(np.isfinite(shifted), shares * shifted, 0.0).sum(axis=1)
    entropies = np.log(total) - weighted / total
    return float((entropies / np.log(counts)).mean())


def find_factor(scores: Array) -> float | None:
    """Return the factor of the scores with which the entropy is in the middle of its interval.

    Returns None if no factor reaches the interval, because scores are constant or masked.

    >>> round(find_factor(np.array([[0.0, 0.1, 0.2, 0.1]], np.float32)))
    21
    """
    scores = scores[:: 1 + scores.size // _MAX_SOLVED]
    low, high = -_MAX_EXPONENT, _MAX_EXPONENT
    for _ in range(20):
        middle = (low + high) / 2
        entropy = relative_entropy(scores, 2.0**middle)
        if entropy is None:
            return None
        low, high = (middle, high) if entropy > _TARGET else (low, middle)
    entropy = relative_entropy(scores, 2.0**low)
    return 2.0**low if entropy and LEAST_ENTROPY < entropy < MOST_ENTROPY else None

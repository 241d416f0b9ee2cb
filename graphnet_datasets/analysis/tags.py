"""Tags that describe a graph's operators, and operator counts."""

from __future__ import annotations

import collections
import re

from ..errors import SampleError, raises_only
from ..operators import OperatorNames
from ..sample import Sample
from ..sample.arguments import iterate_refs
from ..sample.targets import base_name
from .effects import classify

TAGS = (
    "attention", "convolution", "dynamic", "embedding", "fourier", "in_place", "matmul", "moe",
    "norm", "pooling", "quantized", "random", "recurrent", "scatter_gather", "sort", "state",
)  # fmt: skip
"""All tags. `in_place`, `random` and `state` (autocast, grad mode, vmap) describe the actual calls,
not the capabilities of an operator; `dynamic` means `Sample.is_dynamic`.
"""

_WORDS = {
    "attention": r"scaled_dot_product|(flash|efficient|cudnn|multi_head)_attention|flash_attn",
    "convolution": r"conv(olution)?(_?transpose)?\d?d?$|convolution|conv[123]d|depthwise_conv",
    "embedding": r"embedding",
    "fourier": r"^_?fft|^[ih]?r?fft|fft[123n]?$|^i?stft$",
    "moe": r"grouped_mm",
    "norm": r"norm(_|\d|$)|_norm_|normalize",
    "pooling": r"pool",
    "quantized": r"quantize|_int8|int4|_scaled_mm",
    "recurrent": r"(^|_)(lstm|gru|rnn)(_|$)",
    "scatter_gather": r"scatter|gather|index_(select|add|copy|put|fill|reduce)|take_along|masked_",
    "sort": r"^(arg)?sort$|topk|msort|searchsorted",
}
_PATTERNS = {tag: re.compile(pattern) for tag, pattern in _WORDS.items()}

_MATMULS = OperatorNames("matmul")
_VECTOR_NORMS = OperatorNames("vector_norm")

_EXPERTS = re.compile(r"(^|[._])(moe|experts?|router)([._]|$)")
_DISPATCH = OperatorNames("dispatches")

_PASSES_ON = OperatorNames("passes_on")
_MAX_STEPS = 8


@raises_only(SampleError)
def op_tags(sample: Sample) -> list[str]:
    """Return the tags of a sample, sorted.

    Attention is detected as a dedicated operator or as a softmax between two matrix products.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> op_tags(Sample("example/relu", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),), (Op("torch.relu_", (Ref(0),)),), Ref(1)))
    ['in_place']
    """
    names = [base_name(op.target) for op in sample.ops]
    different = {base_name(op.target) for op in sample.iterate_ops()}
    tags = {
        tag
        for tag, pattern in _PATTERNS.items()
        if any(pattern.search(name) for name in different - _VECTOR_NORMS)
    }
    if any(name in _MATMULS for name in different):
        tags.add("matmul")
    effects = "".join(classify(sample.framework, op) for op in set(sample.iterate_ops()))
    tags |= {tag for letter, tag in _EFFECTS.items() if letter in effects}
    if sample.is_dynamic:
        tags.add("dynamic")
    if "attention" not in tags and _has_softmax_between_products(sample, names):
        tags.add("attention")
    chooses = "topk" in different and different & _DISPATCH
    if chooses or any(_EXPERTS.search(module) for module in {op.module for op in sample.ops}):
        tags.add("moe")
    return sorted(tags)


_EFFECTS = {"w": "in_place", "r": "random", "s": "state"}


@raises_only(SampleError)
def op_histogram(sample: Sample) -> list[dict[str, str | int]]:
    """Return the number of calls of each operator, by decreasing count, then by name.

    Operators of bodies count once each, however often the body runs.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> op_histogram(Sample("example/relu", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),), (Op("torch.relu", (Ref(0),)),), Ref(1)))
    [{'target': 'torch.relu', 'count': 1}]
    """
    counts = collections.Counter(op.target for op in sample.iterate_ops())
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"target": target, "count": count} for target, count in ordered]


def _has_softmax_between_products(sample: Sample, names: list[str]) -> bool:
    num_inputs = len(sample.inputs)
    # The distance in operators of values derived from a matrix product, and of values derived from
    # a softmax.
    after_product: dict[int, int] = {}
    after_softmax: dict[int, int] = {}
    for position, (op, name) in enumerate(zip(sample.ops, names, strict=True)):
        value = num_inputs + position
        refs = list(iterate_refs((op.args, op.kwargs)))
        is_product = name in _MATMULS and name != "linear"
        if is_product:
            if any(ref in after_softmax for ref in refs):
                return True
            after_product[value] = 0
        elif "softmax" in name and "log" not in name:
            if any(ref in after_product for ref in refs):
                after_softmax[value] = 0
        elif name.rstrip("_") in _PASSES_ON or name in _PASSES_ON:
            for reached in (after_product, after_softmax):
                steps = min((reached[ref] for ref in refs if ref in reached), default=_MAX_STEPS)
                if steps < _MAX_STEPS:
                    reached[value] = steps + 1
    return False

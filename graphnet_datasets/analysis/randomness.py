"""Outputs that depend on random numbers drawn by the graph."""

from __future__ import annotations

from ..errors import SampleError, UnknownOperatorError, raises_only
from ..frameworks import module
from ..sample import Op, Sample
from ..sample.arguments import Ref, iterate_leaves, iterate_refs
from ..sample.targets import base_name
from .effects import effect_kinds, memory_classes, written_values

_READS_NO_ELEMENT = frozenset(
    {"device", "dim", "dtype", "empty_like", "full_like", "is_complex", "is_floating_point", "ndim",
     "new_empty", "new_full", "new_ones", "new_zeros", "numel", "ones_like", "shape", "size",
     "stride", "zeros_like"}
)  # fmt: skip
"""Operators whose result depends only on the shape or dtype of their first argument."""
_SHAPE_FOLLOWS_ELEMENTS = frozenset(
    {"argwhere", "bincount", "masked_select", "nonzero", "repeat_interleave", "unique",
     "unique_consecutive"}
)  # fmt: skip


@raises_only(SampleError)
def is_random(sample: Sample) -> bool:
    """Return whether an output, or an input that the graph writes to, depends on a random draw.

    Dropout in eval mode or with probability 0 draws nothing. A draw that does not affect an output
    is ignored.

    >>> from graphnet_datasets.sample import Input, Value
    >>> def dropout(probability):
    ...     call = Op("torch.nn.functional.dropout", (Ref(0), probability))
    ...     return Sample("example/dropout", "torch", "other",
    ...         inputs=(Input("input", Value("float32", (2,))),), ops=(call,), outputs=Ref(1))
    >>> is_random(dropout(0.5)), is_random(dropout(0.0))
    (True, False)
    """
    return any(random_inputs(sample)) or any(random_outputs(sample))


@raises_only(SampleError)
def random_outputs(sample: Sample) -> tuple[bool, ...]:
    """Return, for each flat output, whether it depends on a random draw.

    An operator with several results, such as `topk`, has an output for each of them.

    >>> from graphnet_datasets.sample import Input, Value
    >>> noise = Op("torch.rand_like", (Ref(0),))
    >>> random_outputs(Sample("example/noise", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),), ops=(noise,),
    ...     outputs=(Ref(0), Ref(1))))
    (False, True)
    """
    reached = _reached_values(sample)
    return tuple(
        isinstance(leaf, Ref) and reached[leaf.index]
        for leaf in iterate_leaves(sample.outputs)
        for _ in range(sample.count_results(leaf))
    )


@raises_only(SampleError)
def random_inputs(sample: Sample) -> tuple[bool, ...]:
    """Return, for each input, whether the graph may set it to a value that depends on a draw.

    >>> from graphnet_datasets.sample import Input, Value
    >>> noise = Op("torch.Tensor.normal_", (Ref(0),))
    >>> count = Op("torch.Tensor.add_", (Ref(1), 1))
    >>> inputs = (Input("buffer", Value("float32", (2,))), Input("buffer", Value("int64", ())))
    >>> random_inputs(Sample("example/noise", "torch", "other", inputs, (noise, count), Ref(0)))
    (True, False)
    """
    return tuple(_reached_values(sample)[: len(sample.inputs)])


def _reached_values(sample: Sample) -> list[bool]:
    """Return, for each value, whether its elements depend on a draw after the graph has run."""
    num_inputs = len(sample.inputs)
    kinds = effect_kinds(sample)
    reached = [False] * (num_inputs + sample.num_ops)
    if not any("r" in kind for kind in kinds):
        return reached
    memory = memory_classes(sample)
    names = [base_name(op.target) for op in sample.ops]
    are_shapes_known = not _SHAPE_FOLLOWS_ELEMENTS.intersection(names)
    written: set[int] = set()
    for position, (op, kind, name) in enumerate(zip(sample.ops, kinds, names, strict=True)):
        refs = list(iterate_refs((op.args, op.kwargs)))
        is_reached = "r" in kind and not _drops_nothing(sample.framework, op)
        if not (are_shapes_known and name in _READS_NO_ELEMENT):
            is_reached |= any(reached[ref] or memory[ref] in written for ref in refs)
        reached[num_inputs + position] = is_reached
        if is_reached and "w" in kind:
            written.update(memory[ref] for ref in written_values(op))
    return [is_reached or memory[value] in written for value, is_reached in enumerate(reached)]


def _drops_nothing(framework: str, op: Op) -> bool:
    try:
        return module(framework, "operators").drops_nothing(op)
    except UnknownOperatorError:
        return False

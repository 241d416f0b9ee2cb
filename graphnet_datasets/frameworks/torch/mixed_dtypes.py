"""Products whose operands have different dtypes, which no kernel takes.

On meta tensors they pass: a model that was captured without being run, half of it moved to another
dtype, may hold them.
"""

from __future__ import annotations

from ...inputs.consumers import short_name
from ...operators import OperatorNames
from ...sample import Sample
from ...sample.arguments import iterate_refs
from .building.regions import AUTOCAST

PRODUCTS = OperatorNames("product")
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


def mixed_dtypes(sample: Sample) -> list[str]:
    """Return a sentence for each product that a run would refuse for the dtypes of its operands.

    Nothing is told of a graph that enters autocast, which changes them.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> one, other = (Input("input", Value(dtype, (4, 4))) for dtype in ("float32", "bfloat16"))
    >>> product = Op("torch.matmul", (Ref(0), Ref(1)))
    >>> mixed_dtypes(Sample("example", "torch", "other", (one, other), (product,), Ref(2)))
    ['Op 0 (`torch.matmul`) multiplies bfloat16 and float32, which no kernel does.']
    """
    if any(op.target == AUTOCAST for op in sample.ops):
        return []
    dtypes = {index: each.value.dtype for index, each in enumerate(sample.inputs)}
    found: list[str] = []
    for position, op in enumerate(sample.ops):
        if op.results is not None and len(op.results) == 1:
            dtypes[len(sample.inputs) + position] = op.results[0].dtype
        if short_name(op.target) not in PRODUCTS:
            continue
        used = {dtypes.get(ref) for ref in iterate_refs((op.args, op.kwargs))} & _FLOATS
        if len(used) > 1:
            names = " and ".join(sorted(map(str, used)))
            found.append(f"Op {position} (`{op.target}`) multiplies {names}, which no kernel does.")
    return found

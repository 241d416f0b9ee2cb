"""Detection of products with operands of different dtypes, which no kernel supports.

Meta tensors accept them, so they can occur in models that were captured without being run after
part of the model was converted to another dtype.
"""

from __future__ import annotations

from graphnet_datasets.frameworks.torch.building.regions import AUTOCAST
from graphnet_datasets.frameworks.torch.calibration import PRODUCTS
from graphnet_datasets.inputs.consumers import short_name
from graphnet_datasets.sample import Sample
from graphnet_datasets.sample.arguments import iterate_refs

_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


def mixed_dtypes(sample: Sample) -> list[str]:
    """Return a sentence for each product that would fail because its operand dtypes differ.

    Graphs that enter autocast are not checked, because autocast changes the dtypes.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> one, other = (Input("input", Value(dtype, (4, 4))) for dtype in ("float32", "bfloat16"))
    >>> product = Op("torch.matmul", (Ref(0), Ref(1)))
    >>> mixed_dtypes(Sample("example", "torch", "other", (one, other), (product,), Ref(2)))
    ['Op 0 (`torch.matmul`) multiplies bfloat16 and float32, which no kernel does.']
    """
    if any(op.target == AUTOCAST for op in sample.ops):
        return []
    dtypes = {index: graph_input.value.dtype for index, graph_input in enumerate(sample.inputs)}
    problems: list[str] = []
    for position, op in enumerate(sample.ops):
        if op.results is not None and len(op.results) == 1:
            dtypes[len(sample.inputs) + position] = op.results[0].dtype
        if short_name(op.target) not in PRODUCTS:
            continue
        used = {dtypes.get(ref) for ref in iterate_refs((op.args, op.kwargs))} & _FLOATS
        if len(used) > 1:
            names = " and ".join(sorted(map(str, used)))
            problems.append(
                f"Op {position} (`{op.target}`) multiplies {names}, which no kernel does."
            )
    return problems

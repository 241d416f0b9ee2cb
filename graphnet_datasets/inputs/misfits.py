"""Detection of recorded indices that are out of range."""

from __future__ import annotations

from ..sample import Sample
from .flows import trace
from .roles import recorded_range, stored_elements


def misfits(sample: Sample) -> list[str]:
    """Return a message for each integer input whose recorded elements index out of range.

    Graphs that were captured without running them (with fake tensors or from a file) may contain
    such elements. Their eager run then fails, independent of the compiler.

    >>> import numpy as np
    >>> from graphnet_datasets.sample import Input, Op, Sample, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> ids = Input("input", Value("int64", (2,)), "ids", data=np.array([3, 9], "<i8").tobytes())
    >>> table = Input("parameter", Value("float32", (8, 4)), "table")
    >>> lookup = Op("torch.nn.functional.embedding", (Ref(0), Ref(1)))
    >>> misfits(Sample("example", "torch", "nlp", (ids, table), (lookup,), Ref(2)))
    ['The elements of the input `ids` are in [3, 9], but it is an index in [0, 7].']
    """
    messages: list[str] = []
    for index, findings in trace(sample).items():
        graph_input = sample.inputs[index]
        value_range = recorded_range(graph_input, stored_elements(sample, graph_input))
        if value_range is None:
            continue
        for low, high in findings.bounds:
            if value_range[0] < low or (high is not None and value_range[1] > high):
                messages.append(
                    f"The elements of the input `{graph_input.source_name}` are in "
                    f"[{value_range[0]}, {value_range[1]}], but it is an index in [{low}, "
                    f"{'…' if high is None else high}]."
                )
                break
    return messages

"""Distinct parts of one sample, with the number of their occurrences."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from ..errors import GraphNetError, SampleError, TransformError
from ..frameworks import observe
from ..frameworks.results import Observed
from ..sample import Sample
from .cut import Cutter
from .subgraphs import METHODS, reason_of, subgraph_hash, text_of


def open_cutter(
    sample: Sample, *, may_run: bool = True, allow_unchecked_operators: bool = False
) -> Cutter:
    """Return a cutter of a sample with the values observed in one run.

    Without `may_run`, or if the graph does not run on the CPU, crossing tensors have no
    statistics.

    Raises:
        UnknownOperatorError, MaterializeError: the graph cannot be walked without running it.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> twice = Sample("example/twice", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.relu", (Ref(0),)), Op("torch.relu", (Ref(1),))), Ref(2))
    >>> open_cutter(twice).cut([1]).sample.inputs[0].statistics.min
    0.0
    """
    seen: Mapping[int, Observed] = {}
    if may_run:
        # The parts of a graph that does not run on a CPU are still useful.
        with contextlib.suppress(GraphNetError):
            seen = observe(sample, allow_unchecked_operators=allow_unchecked_operators)
    return Cutter(sample, seen=seen, allow_unchecked_operators=allow_unchecked_operators)


def make_parts(
    cutter: Cutter, method: str, groups: Iterable[Iterable[int]] | None = None
) -> Iterator[Sample | TransformError]:
    """Yield the distinct parts found by a method, with `num_occurrences`, in order of appearance.

    `groups` of operators replace the method's search. Parts are compared as in `Subgraphs`. A group
    that cannot be cut out is yielded as an error.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> twice = Sample("example/twice", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.relu", (Ref(0),)), Op("torch.relu", (Ref(1),))), Ref(2))
    >>> parts = make_parts(open_cutter(twice), "sole_op")
    >>> [(part.id, part.provenance.num_occurrences) for part in parts]
    [('example/twice/ops_0', 2)]
    """
    sample = cutter.sample
    parts: dict[str, Sample] = {}
    counts: dict[str, int] = {}
    key_of_text: dict[str, str] = {}
    for group in METHODS[method](cutter) if groups is None else groups:
        if isinstance(group, TransformError):
            yield group
            continue
        try:
            part = cutter.cut(group)
        except SampleError as error:
            target = sample.ops[min(group)].target
            yield TransformError(str(error), operator=target, reason=reason_of(error, sample))
            continue
        text = text_of(part)  # cheaper, and equal for most duplicates
        key = key_of_text.get(text)
        if key is None:
            key = key_of_text[text] = subgraph_hash(part.sample)
        parts.setdefault(key, part.sample)
        counts[key] = counts.get(key, 0) + 1
    for key, part in parts.items():
        provenance = dataclasses.replace(part.provenance, num_occurrences=counts[key])
        yield dataclasses.replace(part, provenance=provenance)

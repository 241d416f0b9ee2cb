"""Distinct parts of many graphs, with the number of their occurrences and their families."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from ..analysis.effects import NO_COMPUTATION
from ..analysis.hashes import signature_hash
from ..errors import SampleError, TransformError
from ..frameworks.results import Observed
from ..sample import Sample
from ..sample.arguments import iterate_refs
from ..sample.targets import base_name
from .cut import Cutter, Part
from .fusing import find_fusible
from .inductor_groups import find_cuda_groups, find_inductor_groups
from .repeats import find_own_repeats

Group: TypeAlias = "tuple[int, ...] | TransformError"
Method: TypeAlias = Callable[[Cutter], Sequence[Group]]
"""Finds groups of operators; an error represents a group that cannot be determined."""


def find_sole_ops(cutter: Cutter) -> list[tuple[int, ...]]:
    """Return each operator that takes a tensor and returns tensors, as a group of its own.

    Operators that unpack a tuple belong to the operator that returns it, and operators that open or
    close a region belong to the operators they enclose.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> sample = Sample("example/sizes", "torch", "other",
    ...     (Input("input", Value("float32", (4, 2))),),
    ...     (Op("torch.Tensor.size", (Ref(0), 0)), Op("torch.chunk", (Ref(0), 2)),
    ...      Op("operator.getitem", (Ref(2), 0)), Op("torch.relu", (Ref(3),))), Ref(4))
    >>> find_sole_ops(Cutter(sample))
    [(1,), (3,)]
    """
    switches = {end for region in cutter.regions for end in (region.opens, region.closes)}
    groups = []
    for position, op in enumerate(cutter.sample.ops):
        if position in switches or op.target in NO_COMPUTATION:
            continue
        refs = set(iterate_refs((op.args, op.kwargs)))
        if base_name(op.target) == "getitem" and not all(map(cutter.is_known, refs)):
            continue
        takes_tensor = any(cutter.gives_tensor(ref) for ref in refs)
        if takes_tensor and cutter.results[position].kind != "number":
            groups.append((position,))
    return groups


METHODS: dict[str, Method] = {
    "sole_op": find_sole_ops,
    "rules": find_fusible,
    "inductor": find_inductor_groups,
    "inductor_cuda": find_cuda_groups,
    "repeats": find_own_repeats,
}
"""Methods that find groups of operators, by name."""

METHODS_OF: dict[str, tuple[str, ...]] = {
    "sole_op": ("sole_op",),
    "fusible": ("rules", "inductor", "inductor_cuda"),
    "typical": ("repeats",),
}
"""Configs of subgraphs and the methods that find them; the first method is the default."""


@dataclasses.dataclass
class Subgraph:
    """A part, cut from its first occurrence, with statistics of all occurrences.

    `num_occurrences` counts all occurrences; `families` and `splits` belong to the whole graphs.
    """

    sample: Sample
    num_occurrences: int = 0
    families: set[str] = dataclasses.field(default_factory=set)
    splits: set[str] = dataclasses.field(default_factory=set)

    @property
    def leaks(self) -> bool:
        """True if the part occurs in families of more than one split."""
        return len(self.splits) > 1


class Subgraphs:
    """Collects the distinct parts of graphs that are added one by one.

    Two parts are equal if their operators, arguments and edges are equal, and the shapes, dtypes
    and strides of their inputs; the statistics of weights and data are ignored.

    Raises:
        SampleError: there is no such method.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> twice = Sample("example/twice", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.relu", (Ref(0),)), Op("torch.relu", (Ref(1),))), Ref(2))
    >>> subgraphs = Subgraphs("sole_op")
    >>> subgraphs.add(twice, family="a", split="train")
    >>> [(part.sample.id, part.num_occurrences) for part in subgraphs]
    [('example/twice/ops_0', 2)]
    """

    def __init__(self, method: str) -> None:
        if method not in METHODS:
            raise SampleError(
                f"There is no method {method!r} for cutting graphs. Choose one of "
                f"{', '.join(METHODS)}."
            )
        self.method = method
        self.refused: collections.Counter[str] = collections.Counter()
        """Number of groups that could not be cut out, by reason."""
        self._found: dict[str, Subgraph] = {}

    def __iter__(self) -> Iterator[Subgraph]:
        """Yield the parts in order of first occurrence, with their counts."""
        for subgraph in self._found.values():
            provenance = dataclasses.replace(
                subgraph.sample.provenance, num_occurrences=subgraph.num_occurrences
            )
            yield dataclasses.replace(
                subgraph, sample=dataclasses.replace(subgraph.sample, provenance=provenance)
            )

    def __len__(self) -> int:
        return len(self._found)

    @property
    def hashes(self) -> list[str]:
        """The `subgraph_hash` of each part, in order of first occurrence."""
        return [*self._found]

    def add(
        self,
        sample: Sample,
        *,
        family: str,
        split: str,
        seen: Mapping[int, Observed] | None = None,
    ) -> None:
        """Add the parts of a graph with a family and split; `seen` contains values of a run.

        Raises:
            UnknownOperatorError, MaterializeError: the sample cannot be walked without running it.
            MissingExtraError: the sample's framework is not installed.
        """
        cutter = Cutter(sample, seen=seen)
        key_of_text: dict[str, str] = {}
        for group in METHODS[self.method](cutter):
            if isinstance(group, TransformError):
                self.refused[group.reason] += 1
                continue
            try:
                part = cutter.cut(group)
            except SampleError as error:
                self.refused[reason_of(error, sample)] += 1
                continue
            text = text_of(part)  # cheaper, and equal for most duplicates
            key = key_of_text.get(text)
            if key is None:
                key = key_of_text[text] = subgraph_hash(part.sample)
            subgraph = self._found.setdefault(key, Subgraph(part.sample))
            subgraph.num_occurrences += 1
            subgraph.families.add(family)
            subgraph.splits.add(split)


def text_of(part: Part) -> str:
    """Return a string that is equal only for parts that are identical in their own numbering."""
    ops = tuple((op.target, op.args, op.kwargs) for op in part.sample.ops)
    inputs = tuple(
        (part_input.role, part_input.value, part_input.data) for part_input in part.sample.inputs
    )
    return repr((ops, inputs, part.sample.outputs))  # unlike ==, distinguishes 1, 1.0 and True


def subgraph_hash(sample: Sample) -> str:
    """Return the identity of a part: a hash of its signature and strides, 32 hexadecimal digits.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> def relu(stride):
    ...     inputs = (Input("input", Value("float32", (2, 3), stride)),)
    ...     return Sample("a", "torch", "other", inputs, (Op("torch.relu", (Ref(0),)),), Ref(1))
    >>> subgraph_hash(relu((3, 1))) == subgraph_hash(relu((1, 2)))
    False
    """
    strides = repr(tuple(part_input.value.stride for part_input in sample.inputs))
    return hashlib.sha256(f"{signature_hash(sample)} {strides}".encode()).hexdigest()[:32]


def reason_of(error: SampleError, sample: Sample) -> str:
    """Return the reason why a part cannot be cut out, without names and positions."""
    message = str(error).replace(f"`{sample.id}`", "the graph")
    return re.sub(r"(?i)operators? \d+( to \d+)?( \(`[^`]*`\))?", "an operator", message)

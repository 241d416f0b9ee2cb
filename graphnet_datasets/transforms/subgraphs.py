"""The different parts of many graphs, each once, with how often and in which families it occurs."""

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
"""Finds groups of operators; an error stands for one that it cannot tell."""


def find_sole_ops(cutter: Cutter) -> list[tuple[int, ...]]:
    """Return each operator that takes a tensor and gives one, or several, by itself.

    Operators that take a tuple apart come with the one that made it, and those that open or close a
    region with what they enclose.

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
    found = []
    for position, op in enumerate(cutter.sample.ops):
        if position in switches or op.target in NO_COMPUTATION:
            continue
        refs = set(iterate_refs((op.args, op.kwargs)))
        if base_name(op.target) == "getitem" and not all(map(cutter.is_known, refs)):
            continue
        takes_tensor = any(cutter.gives_tensor(ref) for ref in refs)
        if takes_tensor and cutter.results[position].kind != "number":
            found.append((position,))
    return found


METHODS: dict[str, Method] = {
    "sole_op": find_sole_ops,
    "rules": find_fusible,
    "inductor": find_inductor_groups,
    "inductor_cuda": find_cuda_groups,
    "repeats": find_own_repeats,
}
"""How groups of operators are found, by name."""

METHODS_OF: dict[str, tuple[str, ...]] = {
    "sole_op": ("sole_op",),
    "fusible": ("rules", "inductor", "inductor_cuda"),
    "typical": ("repeats",),
}
"""The configs of subgraphs, and the methods that find what is in each; the first is the usual."""


@dataclasses.dataclass
class Subgraph:
    """A part, cut out where it occurred first, and where else it occurs.

    `num_occurrences` counts every place; `families` and `splits` are those of the whole graphs.
    """

    sample: Sample
    num_occurrences: int = 0
    families: set[str] = dataclasses.field(default_factory=set)
    splits: set[str] = dataclasses.field(default_factory=set)

    @property
    def leaks(self) -> bool:
        """Whether it occurs in families of more than one split."""
        return len(self.splits) > 1


class Subgraphs:
    """Collects the different parts of graphs that are added one after the other.

    Two parts are the same if operators, arguments, edges, and the shapes, dtypes and strides of the
    inputs are; weights and data are not told apart by their statistics.

    Raises:
        SampleError: there is no such method.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> twice = Sample("example/twice", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.relu", (Ref(0),)), Op("torch.relu", (Ref(1),))), Ref(2))
    >>> found = Subgraphs("sole_op")
    >>> found.add(twice, family="a", split="train")
    >>> [(each.sample.id, each.num_occurrences) for each in found]
    [('example/twice/ops_0', 2)]
    """

    def __init__(self, method: str) -> None:
        if method not in METHODS:
            raise SampleError(
                f"There is no method {method!r} of cutting graphs (there are {', '.join(METHODS)})."
            )
        self.method = method
        self.refused: collections.Counter[str] = collections.Counter()
        """How many groups could not be cut out, by the reason."""
        self._found: dict[str, Subgraph] = {}

    def __iter__(self) -> Iterator[Subgraph]:
        """Yield the parts in the order in which they first occurred, with their counts."""
        for each in self._found.values():
            provenance = dataclasses.replace(
                each.sample.provenance, num_occurrences=each.num_occurrences
            )
            yield dataclasses.replace(
                each, sample=dataclasses.replace(each.sample, provenance=provenance)
            )

    def __len__(self) -> int:
        return len(self._found)

    def add(
        self,
        sample: Sample,
        *,
        family: str,
        split: str,
        seen: Mapping[int, Observed] | None = None,
    ) -> None:
        """Add the parts of a graph of a family and split; `seen` is what a run showed of it.

        Raises:
            UnknownOperatorError, MaterializeError: the graph cannot be walked without running it.
            MissingExtraError: the sample's framework is not installed.
        """
        cutter = Cutter(sample, seen=seen)
        known: dict[str, str] = {}
        for group in METHODS[self.method](cutter):
            if isinstance(group, TransformError):
                self.refused[group.reason] += 1
                continue
            try:
                part = cutter.cut(group)
            except SampleError as error:
                self.refused[reason_of(error, sample)] += 1
                continue
            text = text_of(part)  # most parts of a graph are equal in this cheaper sense already
            key = known.get(text)
            if key is None:
                key = known[text] = subgraph_hash(part.sample)
            subgraph = self._found.setdefault(key, Subgraph(part.sample))
            subgraph.num_occurrences += 1
            subgraph.families.add(family)
            subgraph.splits.add(split)


def text_of(part: Part) -> str:
    """Return a text that is equal only for parts that are the same as they stand."""
    ops = tuple((op.target, op.args, op.kwargs) for op in part.sample.ops)
    inputs = tuple((each.role, each.value, each.data) for each in part.sample.inputs)
    return repr((ops, inputs, part.sample.outputs))  # 1, 1.0 and True are equal, and not the same


def subgraph_hash(sample: Sample) -> str:
    """Return the identity of a part: its signature and strides, 32 hexadecimal digits.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> def relu(stride):
    ...     inputs = (Input("input", Value("float32", (2, 3), stride)),)
    ...     return Sample("a", "torch", "other", inputs, (Op("torch.relu", (Ref(0),)),), Ref(1))
    >>> subgraph_hash(relu((3, 1))) == subgraph_hash(relu((1, 2)))
    False
    """
    strides = repr(tuple(each.value.stride for each in sample.inputs))
    return hashlib.sha256(f"{signature_hash(sample)} {strides}".encode()).hexdigest()[:32]


def reason_of(error: SampleError, sample: Sample) -> str:
    """Return why a part cannot be cut out, in words that do not say which one it is."""
    text = str(error).replace(f"`{sample.id}`", "the graph")
    return re.sub(r"(?i)operators? \d+( to \d+)?( \(`[^`]*`\))?", "an operator", text)

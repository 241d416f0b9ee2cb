"""Which operators of a graph a fusing compiler would make one kernel of, by rules.

The rules know shapes and what operators are (`operator_kinds`), and no device. Going through the
graph in order, an operator joins the group of an operator whose result it takes where

- both are pointwise, views or sources, and its result has as many elements, or more (a broadcast);
- it is a reduction of something pointwise, over as many elements as its group goes over;
- it is pointwise behind a reduction, and has as many elements as the result of the reduction or as
  what was reduced (a normalisation written out);
- it is pointwise or a view behind a product of matrices or a convolution, and has as many elements
  (an epilogue); a group has one product at most.

It joins only if no operator outside of the group would then lie between two inside, and never
across the border of a region. What is of none of these kinds stays alone. A batch norm that uses
recorded statistics is pointwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..analysis.effects import classify
from ..errors import TransformError, raises_only
from ..sample import Op
from ..sample.arguments import iterate_refs
from ..sample.targets import base_name
from .cut import Cutter
from .operator_kinds import Kind, kind_of

_ELEMENTWISE = frozenset({"pointwise", "view", "source"})


@raises_only(TransformError)
def find_fusible(cutter: Cutter) -> list[tuple[int, ...]]:
    """Return the groups of two and more operators that compute, by position, in order.

    >>> from graphnet_datasets.sample import Input, Op, Sample, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> tensor, weight = Value("float32", (8, 16)), Value("float32", (4, 16))
    >>> sample = Sample("example/epilogue", "torch", "other",
    ...     (Input("input", tensor), Input("parameter", weight)),
    ...     (Op("torch.exp", (Ref(0),)), Op("torch.nn.functional.linear", (Ref(2), Ref(1))),
    ...      Op("torch.relu", (Ref(3),)), Op("torch.Tensor.add", (Ref(4), 1))), Ref(5))
    >>> find_fusible(Cutter(sample))
    [(1, 2, 3)]
    """
    return _Grouping(cutter).run()


class _Grouping:
    def __init__(self, cutter: Cutter) -> None:
        self.cutter = cutter
        self.framework = cutter.sample.framework
        self.ops = cutter.sample.ops
        self.kinds = [self._kind(op) for op in self.ops]
        self.home = list(range(len(self.ops)))
        self.members = [{position} for position in range(len(self.ops))]
        self.takers: list[set[int]] = [set() for _ in self.ops]
        for position, waits_for in enumerate(cutter.dependences):
            for before in waits_for:
                self.takers[before].add(position)
        self.regions = [
            tuple(region for region in cutter.regions if region.holds(position))
            for position in range(len(self.ops))
        ]
        self.switches = {end for each in cutter.regions for end in (each.opens, each.closes)}
        self.sizes = [self._size(position) for position in range(len(self.ops))]
        self.iterated = [self._iterated(position) for position in range(len(self.ops))]

    def run(self) -> list[tuple[int, ...]]:
        num_inputs = self.cutter.num_inputs
        for position, op in enumerate(self.ops):
            if self.kinds[position] == "opaque" or position in self.switches:
                continue
            refs = dict.fromkeys(iterate_refs((op.args, op.kwargs)))
            for maker in sorted(
                (ref - num_inputs for ref in refs if ref >= num_inputs), reverse=True
            ):
                if self._fits(maker, position):
                    self._join(self.home[maker], self.home[position])
        groups = {min(group): tuple(sorted(group)) for group in self.members if group}
        return [groups[first] for first in sorted(groups) if self._is_kernel(groups[first])]

    def _is_kernel(self, group: Iterable[int]) -> bool:
        computing = [each for each in group if self.kinds[each] not in ("view", "source")]
        if any(region.is_closed for each in group for region in self.regions[each]):
            return False
        return len(computing) >= 2 and self._may_be_cut(set(group))

    def _may_be_cut(self, group: set[int]) -> bool:
        """Tell whether nothing enters or leaves the group that is no tensor of known size."""
        for position in group:
            op = self.ops[position]
            makers = iterate_refs((op.args, op.kwargs))
            outside = {ref - self.cutter.num_inputs for ref in makers} - group
            if any(maker >= 0 and not self.cutter.may_cross(maker) for maker in outside):
                return False
            if not self.cutter.may_cross(position) and not self.takers[position] <= group:
                return False
        return True

    def _kind(self, op: Op) -> Kind:
        if base_name(op.target) == "batch_norm" and "w" not in classify(self.framework, op):
            return "pointwise"
        return kind_of(op.target)

    def _size(self, position: int) -> int:
        """Return how many elements an operator gives; of several tensors, the largest one's."""
        found = (position,) if self.cutter.may_cross(position) else self.takers[position]
        return max(map(self.cutter.num_elements, found), default=0)

    def _iterated(self, position: int) -> int:
        """Return over how many elements an operator goes by itself."""
        if self.kinds[position] != "reduction":
            return self.sizes[position]
        refs = iterate_refs((self.ops[position].args, self.ops[position].kwargs))
        return max((self.cutter.num_elements_of(ref) for ref in refs), default=0)

    def _fits(self, maker: int, taker: int) -> bool:
        first, second = self.home[maker], self.home[taker]
        if first == second or self.regions[maker] != self.regions[taker]:
            return False
        if not self.cutter.may_cross(maker):  # a tuple and what takes it apart are one view
            return self.kinds[taker] == "view" and self._is_free(first, second)
        left, right = self.kinds[maker], self.kinds[taker]
        if "opaque" in (left, right) or right == "product" or maker in self.switches:
            return False
        group = self.members[first]
        products = [each for each in group if self.kinds[each] == "product"]
        if products:
            fits = right in _ELEMENTWISE and self.sizes[taker] == self.sizes[products[0]]
        elif right == "reduction":
            reach = max(self.iterated[each] for each in group)
            fits = self.iterated[taker] == reach
        elif any(self.kinds[each] == "reduction" for each in group):
            reach = max(self.iterated[each] for each in group)
            fits = self.sizes[taker] in (self.sizes[maker], reach)
        else:
            fits = left in _ELEMENTWISE and self.sizes[taker] >= self.sizes[maker]
        return fits and self._is_free(first, second)

    def _is_free(self, first: int, second: int) -> bool:
        """Tell whether no other group lies between two groups of which one takes of the other."""
        last = max(self.members[second])
        pending = {
            self.home[taker]
            for each in self.members[first]
            for taker in self.takers[each]
            if self.home[taker] not in (first, second)
        }
        seen = set(pending)
        while pending:
            group = pending.pop()
            if min(self.members[group]) > last:
                continue
            for each in self.members[group]:
                for taker in self.takers[each]:
                    home = self.home[taker]
                    if home in (first, second):
                        return False
                    if home not in seen:
                        seen.add(home)
                        pending.add(home)
        return True

    def _join(self, first: int, second: int) -> None:
        self.members[first] |= self.members[second]
        for each in self.members[second]:
            self.home[each] = first
        self.members[second] = set()

"""Rule-based grouping of the operators that a fusing compiler would merge into one kernel.

The rules depend on shapes and kinds of operators (`operator_kinds`), not on a device. In graph
order, an operator joins the group of an operator whose result it uses if

- both are pointwise, views or sources, and its result has at least as many elements (a broadcast);
- it reduces a pointwise result, over as many elements as its group iterates over;
- it is pointwise after a reduction, and has as many elements as the result or the operand of the
  reduction (a decomposed normalization);
- it is pointwise or a view after a matrix product or a convolution, with as many elements (an
  epilogue); a group has at most one product.

It joins only if no operator outside the group would lie between two operators of the group, and
never across the border of a region. Operators of other kinds are not grouped. A batch norm with
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
    """Return the groups with at least two computing operators, by position, in order.

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
        self.switches = {end for region in cutter.regions for end in (region.opens, region.closes)}
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
        computing = [
            position for position in group if self.kinds[position] not in ("view", "source")
        ]
        if any(region.is_closed for position in group for region in self.regions[position]):
            return False
        return len(computing) >= 2 and self._may_be_cut(set(group))

    def _may_be_cut(self, group: set[int]) -> bool:
        """Return whether only tensors of known size and numbers enter or leave the group."""
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
        """Return the number of elements of a result; of several tensors, the largest."""
        producers = (position,) if self.cutter.may_cross(position) else self.takers[position]
        return max(map(self.cutter.num_elements, producers), default=0)

    def _iterated(self, position: int) -> int:
        """Return the number of elements that an operator iterates over by itself."""
        if self.kinds[position] != "reduction":
            return self.sizes[position]
        refs = iterate_refs((self.ops[position].args, self.ops[position].kwargs))
        return max((self.cutter.num_elements_of(ref) for ref in refs), default=0)

    def _fits(self, maker: int, taker: int) -> bool:
        first, second = self.home[maker], self.home[taker]
        if first == second or self.regions[maker] != self.regions[taker]:
            return False
        if not self.cutter.may_cross(maker):  # a tuple and its unpacking operators are one view
            return self.kinds[taker] == "view" and self._is_free(first, second)
        left, right = self.kinds[maker], self.kinds[taker]
        if "opaque" in (left, right) or right == "product" or maker in self.switches:
            return False
        group = self.members[first]
        products = [position for position in group if self.kinds[position] == "product"]
        if products:
            fits = right in _ELEMENTWISE and self.sizes[taker] == self.sizes[products[0]]
        elif right == "reduction":
            reach = max(self.iterated[position] for position in group)
            fits = self.iterated[taker] == reach
        elif any(self.kinds[position] == "reduction" for position in group):
            reach = max(self.iterated[position] for position in group)
            fits = self.sizes[taker] in (self.sizes[maker], reach)
        else:
            fits = left in _ELEMENTWISE and self.sizes[taker] >= self.sizes[maker]
        return fits and self._is_free(first, second)

    def _is_free(self, first: int, second: int) -> bool:
        """Return whether no other group lies between two connected groups."""
        last = max(self.members[second])
        pending = {
            self.home[taker]
            for position in self.members[first]
            for taker in self.takers[position]
            if self.home[taker] not in (first, second)
        }
        seen = set(pending)
        while pending:
            group = pending.pop()
            if min(self.members[group]) > last:
                continue
            for position in self.members[group]:
                for taker in self.takers[position]:
                    home = self.home[taker]
                    if home in (first, second):
                        return False
                    if home not in seen:
                        seen.add(home)
                        pending.add(home)
        return True

    def _join(self, first: int, second: int) -> None:
        self.members[first] |= self.members[second]
        for position in self.members[second]:
            self.home[position] = first
        self.members[second] = set()

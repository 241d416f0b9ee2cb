"""What operators do with integers: which operands are indices, and which results follow elements.

Frameworks have the same few families of operators under partly different names and orders of
operands; these tables are all that is particular to one of them. Of a framework without a table no
operand is known to be an index.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from ..sample import Op
from ..sample.arguments import Arg, ListArg, Ref
from ..sample.targets import base_name


@dataclasses.dataclass(frozen=True, slots=True)
class Indexing:
    """Where an operator has the tensor that is indexed, the indices, and the axis.

    An operand is a position and a keyword. `axis` is an integer for operators that always index
    the same axis. `count` is the operand that says how many classes there are, in place of a
    tensor's size.
    """

    indices: tuple[tuple[int, str], ...]
    table: tuple[int, str] | None = None
    axis: tuple[int, str] | int = 0
    count: tuple[int, str] | None = None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BY_AXIS = Indexing(((2, "index"),), (0, "input"), (1, "dim"))
_BY_LAST = Indexing(((1, "index"),), (0, "x"), (2, "axis"))
_OF_TORCH: Mapping[str, Indexing] = {
    "embedding": Indexing(((0, "input"),), (1, "weight")),
    "aten.embedding": Indexing(((1, "indices"),), (0, "weight")),
    "embedding_bag": Indexing(((0, "input"),), (1, "weight")),
    "aten.embedding_bag": Indexing(((1, "indices"),), (0, "weight")),
    **dict.fromkeys(
        ("gather", "index_select", "scatter", "scatter_add", "scatter_reduce", "index_add",
         "index_copy", "index_fill", "index_reduce"), _BY_AXIS,
    ),
    "take_along_dim": Indexing(((1, "indices"),), (0, "input"), (2, "dim")),
    "one_hot": Indexing(((0, "tensor"),), count=(1, "num_classes")),
    "cross_entropy": Indexing(((1, "target"),), (0, "input"), 1),
    "nll_loss": Indexing(((1, "target"),), (0, "input"), 1),
}  # fmt: skip
_OF_PADDLE: Mapping[str, Indexing] = {
    "embedding": Indexing(((0, "x"),), (1, "weight")),
    "gather": _BY_LAST,
    "index_select": _BY_LAST,
    "take_along_axis": Indexing(((1, "indices"),), (0, "arr"), (2, "axis")),
    "put_along_axis": Indexing(((1, "indices"),), (0, "arr"), (3, "axis")),
    "index_add": _BY_LAST,
    "scatter": Indexing(((1, "index"),), (0, "x"), 0),
    "one_hot": Indexing(((0, "x"),), count=(1, "num_classes")),
    "send_u_recv": Indexing(((1, "src_index"), (2, "dst_index")), (0, "x"), 0),
    "send_ue_recv": Indexing(((2, "src_index"), (3, "dst_index")), (0, "x"), 0),
    "cross_entropy_with_softmax": Indexing(((1, "label"),), (0, "logits"), -1),
}
_INDEXING: Mapping[str, Mapping[str, Indexing]] = {"torch": _OF_TORCH, "paddle": _OF_PADDLE}

ANY_INDEX = _words(
    "getitem index index_put _index_put_impl gather_nd scatter_nd_add take put setitem"
)
"""Operators whose indices are tensors among their operands, one for each axis or in one column."""

MOVING = _words(
    """
    view view_as reshape reshape_as transpose permute unsqueeze squeeze expand expand_as repeat tile
    contiguous clone flatten ravel chunk split split_with_num unbind unstack select narrow slice
    strided_slice flip roll cat concat concatenate stack to type_as long int short cast _to_copy
    detach alias broadcast_to assign share_data t T mT movedim swapaxes unflatten pad clamp clip
    clamp_min clamp_max abs hstack vstack masked_fill masked_fill_ where triu tril lift_fresh
    reverse unfold as_strided _unsafe_view cpu cuda diagonal repeat_interleave getitem
    """
)
"""Operators whose result holds elements of their operands, moved, repeated or left out."""

EQUALITIES = _words("eq ne equal not_equal isin __eq__ __ne__")
ORDERS = _words("lt le gt ge less_than less_equal greater_than greater_equal less greater")
"""Comparisons; with a number they come out the same while elements stay on their side of it."""

TO_FLOAT = _words("float half double bfloat16 truediv true_divide divide exp sin cos")
"""Operators whose result is floating-point, whatever their operands."""

SHAPE_GIVING = _words(
    """
    nonzero argwhere masked_select unique unique_consecutive _unique2 unique_dim bincount item
    tolist _local_scalar_dense bool_ repeat_interleave masked_scatter masked_scatter_ histc
    """
)
"""Operators that make a shape, a number or a count out of elements."""

SHAPE_TAKING = _words(
    """
    reshape view expand broadcast_to full arange range zeros ones empty tile repeat slice narrow
    strided_slice uniform gaussian randint linspace interpolate bilinear_interp nearest_interp
    split pad roll chunk unflatten
    """
)
"""Operators that take sizes; an integer tensor behind their first operand is one."""


ELEMENTLESS = _words(
    """
    full_like zeros_like ones_like empty_like rand_like randn_like size shape shape64 dim numel
    new_zeros new_ones new_full new_empty argmax argmin is_floating_point ndim device dtype
    """
)
"""Operators whose result depends on the shape of an operand alone, or is a place within it."""


def short_name(target: str) -> str:
    """Return the name of an operator without namespace, overload and the mark of writing in place.

    >>> short_name("torch.ops.aten.scatter_.src"), short_name("paddle._C_ops.add_")
    ('scatter', 'add')
    """
    name = base_name(target)
    return name if name.endswith("__") else name.rstrip("_") or name


def indexing_of(framework: str, op: Op) -> Indexing | None:
    """Return where an operator has indices, or None if it has none at a fixed place."""
    table, name = _INDEXING.get(framework, {}), short_name(op.target)
    if op.target.startswith("torch.ops.aten."):
        return table.get(f"aten.{name}", table.get(name))
    return table.get(name)


def operand(op: Op, place: tuple[int, str]) -> Arg:
    """Return an operand by its position or its keyword; None where it is not given."""
    position, keyword = place
    if position < len(op.args):
        return op.args[position]
    return dict(op.kwargs).get(keyword)


def iterate_parts(arg: Arg) -> Iterator[Arg]:
    """Yield an argument, or the items of a list or tuple."""
    if isinstance(arg, ListArg):
        yield from arg.items
    elif isinstance(arg, tuple):
        yield from arg
    else:
        yield arg


def ref_of(arg: Arg) -> int | None:
    """Return the value that an argument is, or None."""
    return arg.index if isinstance(arg, Ref) else None

"""Detection of values that are Python numbers or shapes, not tensors."""

from __future__ import annotations

from ....sample import Op, Sample
from ....sample.arguments import ListArg, Ref
from ....sample.per_sample import PerSample
from ..operators import Operator
from ..operators.words import words
from .entries import entries_of

_NUMBER_METHODS = words(
    """
    __bool__ __complex__ __float__ __index__ __int__ __len__ dense_dim dim element_size get_device
    item ndimension nelement numel q_scale q_zero_point sparse_dim storage_offset
    """
)
_NUMBER_ATTRIBUTES = words("itemsize nbytes ndim")
_NUMBER_FUNCTIONS = words(
    """
    torch.numel torch.ops.aten._local_scalar_dense torch.ops.aten.item torch.ops.aten.numel
    torch.ops.aten.sym_numel torch.ops.aten.sym_storage_offset torch.ops.aten.dim
    torch.ops.aten.sym_size.int torch.ops.aten.sym_stride.int torch.ops.prims.item
    """
)
_SHAPES = words(
    """
    torch.Tensor.shape torch.Tensor.size torch.Tensor.stride torch.ops.aten.sym_size
    torch.ops.aten.sym_stride torch.ops.aten.size torch.ops.aten.stride torch.broadcast_shapes
    """
)


def find_scalars(sample: Sample) -> frozenset[int]:
    """Return the indices of values that are Python numbers, or tuples of numbers.

    >>> from graphnet_datasets.sample import Input, Value
    >>> tensor = Input("input", Value("float32", (2, 3)))
    >>> find_scalars(Sample("example/size", "torch", "other", (tensor,),
    ...     (Op("torch.Tensor.size", (Ref(0), 0)), Op("operator.add", (Ref(1), 1))), ()))
    frozenset({1, 2})
    """
    cached_scalars = _KNOWN.get(sample)
    if cached_scalars is not None:
        return cached_scalars
    numbers = {
        index
        for index, graph_input in enumerate(sample.inputs)
        if graph_input.role in ("symbol", "scalar")
    }
    for position, (op, operator) in enumerate(zip(sample.ops, entries_of(sample), strict=True)):
        if _gives_number(op, operator, numbers):
            numbers.add(len(sample.inputs) + position)
    return _KNOWN.put(sample, frozenset(numbers))


_KNOWN = PerSample[frozenset[int]]()
"""Cached results per sample, since each sample is examined several times."""


def _gives_number(op: Op, operator: Operator, numbers: set[int]) -> bool:
    name, last = operator.name, operator.last_name
    if name in _SHAPES or name.removesuffix(".default") in _NUMBER_FUNCTIONS:
        return True
    if operator.kind == "method":
        return last in _NUMBER_METHODS
    if operator.kind == "attribute":
        return last in _NUMBER_ATTRIBUTES
    if name.startswith(("math.", "torch.sym_", "torch._sym_")) or name in (
        "builtins.bool",
        "builtins.complex",
        "builtins.float",
        "builtins.int",
        "builtins.len",
    ):
        return True
    if name == "operator.getitem":
        return bool(op.args) and _is_number(op.args[0], numbers)
    if name.startswith(("operator.", "builtins.")):
        return bool(op.args) and all(_is_number(arg, numbers) for arg in op.args)
    return False


def _is_number(arg: object, numbers: set[int]) -> bool:
    if isinstance(arg, Ref):
        return arg.index in numbers
    if isinstance(arg, ListArg):
        return all(_is_number(item, numbers) for item in arg.items)
    if isinstance(arg, tuple):
        return all(_is_number(item, numbers) for item in arg)
    return isinstance(arg, (bool, int, float, complex))

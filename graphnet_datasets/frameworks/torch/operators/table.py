"""The table of operators that a torch sample may call, usable without importing torch.

A name is accepted if it is listed in an entry of `graphnet_datasets.operators`; nothing else can be
resolved to a callable. An overload (`add.Tensor`) is accepted if its packet (`add`) is listed. An
operator gets an entry after a review: it computes on tensors or symbolic sizes; does not access
files, processes, addresses or settings; does not alias memory without a bounds check or resize
storage; does not call back into Python; and does not pack weights into opaque objects.

Canonical names are `torch.conv2d`, `torch.nn.functional.linear`, `torch.Tensor.view` (methods and
attributes), `operator.add` (Python's operators), `torch.ops.aten.add.Tensor`, `math.sqrt` and
`torch.ops.higher_order.cond` (with bodies among its arguments).
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Literal, TypeAlias

from ....errors import UNKNOWN_ADVICE, UnknownOperatorError
from ....operators import OperatorNames
from . import python
from .unsafe import why_left_out
from .words import words

Kind: TypeAlias = Literal["function", "method", "attribute"]

METHOD_PREFIX = "torch.Tensor."
ATEN_PREFIX = "torch.ops.aten."
PRIMS_PREFIX = "torch.ops.prims."
HIGHER_ORDER_PREFIX = "torch.ops.higher_order."
_OVERLOAD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_INPLACE_DUNDERS = words(
    """
    __iadd__ __iand__ __idiv__ __ifloordiv__ __ilshift__ __imod__ __imul__ __ior__ __ipow__
    __irshift__ __isub__ __itruediv__ __ixor__ __setitem__
    """
)
_INPLACE_PYTHON = words(
    """
    iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem
    """
)
NAMESPACES = {
    "torch": OperatorNames("torch"),
    "torch.nn.functional": OperatorNames("functional"),
    "torch._C._nn": OperatorNames("C_nn"),
    "torch.linalg": OperatorNames("linalg"),
    "torch.fft": OperatorNames("fft"),
    "torch.special": OperatorNames("special"),
    "torch.sparse": OperatorNames("sparse"),
    HIGHER_ORDER_PREFIX[:-1]: OperatorNames("higher_order"),
    "operator": OperatorNames("operator"),
    "math": OperatorNames("math"),
    "builtins": OperatorNames("builtins"),
}
METHODS = OperatorNames("Tensor")
ATTRIBUTES = OperatorNames("attribute")
FOREACH = frozenset(f"_foreach_{name}" for name in OperatorNames("foreach"))
PACKETS = OperatorNames("aten") | FOREACH
PRIMS = OperatorNames("prims")
_FUNCTIONAL_IS_TORCH = OperatorNames("functional_is_torch")
_C_NN_IS_FUNCTIONAL = OperatorNames("C_nn_is_functional")
_RANDOM = OperatorNames("random")


@dataclasses.dataclass(frozen=True, slots=True)
class Operator:
    """One entry of the table.

    `is_inplace`: a call writes to one of its arguments. `is_random`: a call may draw random
    numbers. `is_state`: a call changes how later operators run (autocast, grad mode, vmap), so it
    is kept in place even if its value is unused.
    """

    name: str
    kind: Kind
    is_inplace: bool = False
    is_random: bool = False
    is_state: bool = False
    last_name: str = dataclasses.field(init=False, repr=False, compare=False)
    """The name of the method or attribute, or the last part of the function's name."""
    packet_name: str = dataclasses.field(init=False, repr=False, compare=False)
    """The last part of the name without an ATen overload, such as `split` for
    `torch.ops.aten.split.Tensor`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "last_name", self.name.rpartition(".")[2])
        object.__setattr__(self, "packet_name", _packet_name(self.name))


def canonical(name: str) -> str:
    """Return the canonical name of the operator `name`.

    Raises:
        UnknownOperatorError: If the operator is not in the table.

    >>> canonical("torch._C._nn.linear")
    'torch.nn.functional.linear'
    """
    return lookup(name).name


def lookup(name: str) -> Operator:
    """Return the table entry for `name`, which may be an alias.

    Raises:
        UnknownOperatorError: If the operator is not in the table.

    >>> lookup("torch.Tensor.add_").kind, lookup("torch.Tensor.add_").is_inplace
    ('method', True)
    """
    operator = find_entry(name) if isinstance(name, str) and len(name) <= 200 else None
    if operator is None:
        reason = why_left_out(_packet_name(name)) if isinstance(name, str) else None
        if reason:
            raise UnknownOperatorError(
                f"`{name[:100]}` is left out of the operator table of torch: {reason}. Skip the "
                "sample."
            )
        raise UnknownOperatorError(
            f"`{str(name)[:100]}` is not in the operator table of torch. {UNKNOWN_ADVICE}"
        )
    return operator


def _packet_name(name: str) -> str:
    """Return the name without its namespace and, for ATen and prims, without its overload."""
    for prefix in (ATEN_PREFIX, PRIMS_PREFIX):
        if name.startswith(prefix):
            return name.removeprefix(prefix).partition(".")[0]
    return name.rpartition(".")[2]


@functools.cache
def _canonical_text(name: str) -> str:
    if name in python.ALIASES:
        return python.ALIASES[name]
    name = python.functional_alias(name) or name
    namespace, _, last = name.rpartition(".")
    if namespace == "torch._C._nn" and last in _C_NN_IS_FUNCTIONAL:
        name, namespace = f"torch.nn.functional.{last}", "torch.nn.functional"
    if namespace == "torch.nn.functional" and last in _FUNCTIONAL_IS_TORCH:
        return f"torch.{last}"
    return name


@functools.lru_cache(maxsize=16384)
def find_entry(name: str) -> Operator | None:
    """Return the entry for a name or alias, or None."""
    name = _canonical_text(name)
    namespace, _, last = name.rpartition(".")
    if name in python.STATE:
        return Operator(name, "function", is_state=True)
    if name.startswith(METHOD_PREFIX):
        if namespace != METHOD_PREFIX[:-1]:
            return None
        if last in ATTRIBUTES:
            return Operator(name, "attribute")
        if last not in METHODS:
            return None
        return Operator(name, "method", _writes(last), last in _RANDOM)
    if last in NAMESPACES.get(namespace, ()) or (namespace == "torch" and last in FOREACH):
        is_inplace = last in _INPLACE_PYTHON if namespace == "operator" else _writes(last)
        is_random = namespace.startswith("torch") and last in _RANDOM
        return Operator(name, "function", is_inplace, is_random)
    for prefix, packets in ((ATEN_PREFIX, PACKETS), (PRIMS_PREFIX, PRIMS)):
        if name.startswith(prefix):
            packet, _, overload = name.removeprefix(prefix).partition(".")
            if packet not in packets or (overload and not _OVERLOAD.match(overload)):
                return None
            writes_out = overload.endswith("out") or overload in python.ATEN_OUT_OVERLOADS
            return Operator(name, "function", _writes(packet) or writes_out, packet in _RANDOM)
    return None


def _writes(last: str) -> bool:
    if last.startswith("__"):
        return last in _INPLACE_DUNDERS
    return last.endswith("_") and not last.endswith("__")

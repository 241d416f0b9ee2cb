"""The operators of torch under test: their names, calls to start from, and how one is made."""

from __future__ import annotations

import contextlib
import functools
import gzip
import inspect
import itertools
import random
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks.torch.building.unchecked import (
    check_call_constants,
    why_unchecked,
)
from graphnet_datasets.frameworks.torch.operators import Operator, all_names, lookup, resolve
from graphnet_datasets.frameworks.torch.operators import is_checked as checked
from graphnet_datasets.frameworks.torch.operators.schema import check_keywords, keywords_of
from graphnet_datasets.frameworks.torch.walking.costly_calls import check_call
from graphnet_datasets.frameworks.torch.walking.known_numbers import why_unknown
from graphnet_datasets.frameworks.torch.walking.operands import check_operands
from graphnet_datasets.operators import OperatorNames
from graphnet_datasets.sample import Op
from graphnet_datasets.sample.arguments import ListArg, Ref
from graphnet_datasets.sample.arguments import Named as RowNamed

from .specs import Call, Mutator, Named, Tensor, read_call
from .torch_more_seeds import MORE
from .torch_values import LAYOUTS, SMALLEST, Maker

SEEDS = Path(__file__).with_name("torch_seeds.jsonl.gz")
_MATRIX, _INDICES = Tensor("float32", (3, 4)), Tensor("int64", (3,), "small")
_KEYWORDS: dict[str, Any] = {
    "sparse_grad": True, "sparse": True, "unsafe": True, "out": _MATRIX, "keepdim": True,
    "dtype": Named("dtype", "float64"), "dim": 0, "max_norm": 1.0, "inplace": True,
    "ceil_mode": True, "padding_idx": -5, "reduce": "sum", "reduction": "none", "weight": _MATRIX,
    "num_classes": 3, "output_size": [7, 7], "align_corners": True, "training": True,
    "memory_format": Named("memory_format", "channels_last"), "lengths": _INDICES,
    "layout": Named("layout", "strided"), "accumulate": True, "side": "right", "stable": True,
    "minlength": 3, "return_indices": True, "divisor_override": 0, "niter": 3, "out_int32": True,
}  # fmt: skip
_PYTHON_SEEDS = (
    (_MATRIX, _MATRIX), (_MATRIX, 2),
    (Tensor("int64", (3, 4), "small"), Tensor("int64", (4,), "ones")),
    (Tensor("int32", (5,), "least"), -1),
    (Tensor("int64", (5,), "least"), Tensor("int64", (5,), "negative")),
    (Tensor("uint8", (5,), "count"), 2), (3, 4), (2.5, 3), (Tensor("bool", (4,), "ones"), True),
)  # fmt: skip
SMALLEST_SHARE = 0.4
"""Share of the calls whose operands have the smallest storages that some strides allow."""

HAS_GUARDS = True
"""Whether calls of checked operators are compared first, as `materialize` does."""


def set_up() -> None:
    """Make torch quiet and single-threaded."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


@functools.cache
def names() -> tuple[str, ...]:
    """Return every operator of the table that the installed torch has, but those with states."""
    found = dict.fromkeys(map(_canonical, all_names()))
    for packet in sorted(OperatorNames("aten")):
        found |= dict.fromkeys(_overloads(packet))
    return tuple(sorted(name for name in found if name and _exists(name)))


def _canonical(name: str) -> str | None:
    with contextlib.suppress(GraphNetError):
        operator = lookup(name)
        return None if operator.is_state else operator.name
    return None


def _overloads(packet: str) -> Iterator[str]:
    with contextlib.suppress(AttributeError):
        for overload in getattr(torch.ops.aten, packet).overloads():
            yield f"torch.ops.aten.{packet}.{overload}"


def _exists(name: str) -> bool:
    with contextlib.suppress(GraphNetError):
        return bool(resolve(lookup(name)))
    return False


@functools.cache
def _seeds() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = defaultdict(list)
    with gzip.open(SEEDS, "rt") as file:
        for line in file:
            call = read_call(line)
            found[call.name].append(call)
    return found


@functools.cache
def _seeds_by_base() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = defaultdict(list)
    for name, calls in _seeds().items():
        found[_base(name)] += calls
    return found


def _base(name: str) -> str:
    last = name.split(".")[3] if name.startswith("torch.ops.") else name.rpartition(".")[2]
    return re.sub(r"^(linalg_|fft_|special_|_foreach_)", "", last.strip("_").removesuffix("_copy"))


@functools.cache
def seeds_of(name: str) -> tuple[Call, ...]:
    """Return calls to start from: recorded ones, those of a namesake, or one made by the schema."""
    own = list(_seeds().get(name, ()))
    own += [Call(name, args) for args in MORE.get(_base(name), ())]
    if name.startswith(("operator.", "math.", "builtins.")):
        own += [Call(name, args) for args in _PYTHON_SEEDS]
    if name in ("operator.getitem", "operator.setitem"):
        own += [Call(name, args) for args in _index_seeds(name.endswith("setitem"))]
    if not own:
        own = [Call(name, call.args, call.kwargs) for call in _seeds_by_base().get(_base(name), ())]
    own += [Call(name, *arguments) for arguments in itertools.islice(_by_schema(name), 3)]
    return tuple(own) or (Call(name, (_MATRIX,)), Call(name, (_MATRIX, _MATRIX)))


def _index_seeds(is_setting: bool) -> Iterator[tuple[Any, ...]]:
    for index in (
        0,
        _INDICES,
        (0, _INDICES),
        (_INDICES, _INDICES),
        Tensor("bool", (3, 4), "small"),
    ):
        yield (_MATRIX, index, 1.0) if is_setting else (_MATRIX, index)


_BY_TYPE: dict[str, Any] = {
    "Tensor": _MATRIX, "Optional[Tensor]": _MATRIX, "int": 1, "float": 0.5, "bool": False,
    "number": 1, "Scalar": 1, "List[int]": [2, 2], "List[Tensor]": [_MATRIX, _MATRIX], "str": "sum",
    "Optional[int]": 1, "Optional[float]": 0.5, "List[float]": [0.5], "List[bool]": [True, False],
    "Optional[List[int]]": [2, 2], "SymInt": 1, "List[Optional[Tensor]]": [_INDICES, None],
}  # fmt: skip

_BY_NAME: dict[str, Any] = {"rounding_mode": "floor", "dtype": Named("dtype", "float64")}


def _by_schema(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for schema in _schemas(name):
        given, named = [], {}
        for argument in schema.arguments:
            value = _BY_TYPE.get(str(argument.type))
            if argument.has_default_value() and not argument.kwarg_only:
                break
            if not argument.kwarg_only:
                given.append(value)
            elif not argument.has_default_value() and argument.name != "out":
                named[argument.name] = _BY_NAME.get(argument.name, value)
        yield tuple(given), named


def _schemas(name: str) -> Iterator[Any]:
    packet = _base(name) if not name.startswith("torch.ops.") else name.split(".")[3]
    overload = name.split(".")[4] if name.count(".") == 4 else None
    namespace = "prims" if ".prims." in name else "aten"
    candidates = [packet]
    if overload is None:
        last = name.rpartition(".")[2]
        candidates += [last, f"linalg_{packet}", f"fft_{packet}", f"special_{packet}"]
    for candidate in dict.fromkeys(candidates):
        for schema in torch._C._jit_get_schemas_for_operator(f"{namespace}::{candidate}"):
            if overload in (None, schema.overload_name or "default"):
                yield schema


@functools.cache
def _keywords(name: str) -> dict[str, Any]:
    taken = _taken(name)
    return {key: value for key, value in _KEYWORDS.items() if key in taken}


@functools.cache
def _parameters(name: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of the positions of an operator, by each schema that it may stand for."""
    found = {}
    for schema in _schemas(name):
        names = tuple(each.name for each in schema.arguments if not each.kwarg_only)
        found[names] = None
        found["input", *names[1:]] = None
    with contextlib.suppress(ValueError, TypeError, GraphNetError):
        found[tuple(inspect.signature(resolve(lookup(name))).parameters)] = None
    taken = _taken(name)
    return tuple(names for names in found if names and taken.issuperset(names))


@functools.cache
def _taken(name: str) -> frozenset[str]:
    with contextlib.suppress(GraphNetError):
        return keywords_of(lookup(name))
    return frozenset()


def attempt(name: str, seed: str) -> tuple[Call, Callable[[], bool]]:
    """Return a call by chance, and what makes it on real tensors."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    call = mutated(name, chance)
    return call, functools.partial(_run, lookup(name), call, chance)


def again(call: Call, seed: str) -> Callable[[], bool]:
    """Return what makes a call that is already known."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    return functools.partial(_run, lookup(call.name), call, chance)


def mutated(name: str, chance: random.Random) -> Call:
    """Return a call by chance."""
    starts = seeds_of(name)
    mutator = Mutator(chance, _keywords(name), LAYOUTS, _parameters(name))
    call = mutator.mutate(chance.choice(starts), list(starts))
    return mutator.lay_out(call, SMALLEST) if chance.random() < SMALLEST_SHARE else call


def _run(operator: Operator, call: Call, chance: random.Random) -> bool:
    torch.manual_seed(chance.getrandbits(32))
    maker = Maker(chance)
    args = maker.make(call.args)
    kwargs = {key: maker.make(value) for key, value in call.kwargs.items()}
    if HAS_GUARDS and checked(operator):
        op = as_op(call)
        check_keywords(op, operator)
        check_call_constants(op, operator, "The call")
        if why_unchecked(op, operator) or why_unknown(operator, args, kwargs):
            return False
        check_call(operator, args, kwargs)
        check_operands(operator, args, kwargs)
    is_cast = chance.random() < 0.03
    with torch.autocast("cpu", torch.bfloat16) if is_cast else contextlib.nullcontext():
        result = resolve(operator)(*args, **kwargs)
    read(result)
    if chance.random() < 0.5:
        _differentiate(result)
    return True


def _differentiate(result: Any) -> None:
    given = result if isinstance(result, list | tuple) else (result,)
    ends = [each for each in given if isinstance(each, torch.Tensor) and each.requires_grad]
    if ends:
        torch.autograd.backward(ends, [torch.ones_like(each) for each in ends])


def as_op(call: Call) -> Op:
    """Return the operator as a row holds it."""
    return Op(call.name, tuple(map(_as_row, call.args)), tuple(_rows(call.kwargs)))


def _rows(kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, _as_row(value)) for key, value in kwargs.items())


def _as_row(value: Any) -> Any:
    """Return an argument as a row holds it, tensors as references to nothing in particular."""
    if isinstance(value, Tensor):
        return Ref(0)
    if isinstance(value, Named):
        return RowNamed(value.kind, value.name)
    if isinstance(value, list):
        return ListArg(tuple(map(_as_row, value)))
    if isinstance(value, tuple):
        return tuple(map(_as_row, value))
    return value


def read(result: Any) -> None:
    """Read what a call gave, as whoever uses it will."""
    if isinstance(result, torch.Tensor):
        if result.layout is torch.strided and result.numel() < 1_000_000 and not result.is_meta:
            result.clone()
    elif isinstance(result, list | tuple):
        for item in result[:50]:
            read(item)


def is_checked(name: str) -> bool:
    """Tell whether `materialize` takes the operator unasked."""
    return checked(lookup(name))

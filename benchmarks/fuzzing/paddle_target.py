"""The operators of paddle under test: their names, calls to start from, and how one is made."""

from __future__ import annotations

import functools
import gzip
import random
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import paddle

from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks.paddle.calls import check_lists
from graphnet_datasets.frameworks.paddle.operators import CORE, OPERATORS, lookup, resolve
from graphnet_datasets.frameworks.paddle.signatures import argument_names

from .paddle_values import make
from .specs import Call, Mutator, Tensor, read_call

SEEDS = Path(__file__).with_name("paddle_seeds.jsonl.gz")
_MATRIX, _INDEX = Tensor("float32", (3, 4)), Tensor("int64", (3,), "small")
_PYTHON_SEEDS = (
    (_MATRIX, _MATRIX), (_MATRIX, 2),
    (Tensor("int64", (3, 4), "small"), Tensor("int64", (4,), "ones")),
    (Tensor("int32", (5,), "count"), 2), (_MATRIX, 0), (3, 4), (Tensor("bool", (4,), "ones"), True),
)  # fmt: skip


def set_up() -> None:
    """Make paddle quiet."""
    warnings.simplefilter("ignore")
    paddle.disable_signal_handler()


@functools.cache
def names() -> tuple[str, ...]:
    """Return every operator of the table that the installed paddle has."""
    return tuple(sorted(name for name in OPERATORS if _exists(name)))


def _exists(name: str) -> bool:
    try:
        return bool(resolve(lookup(name)))
    except GraphNetError:
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
def seeds_of(name: str) -> tuple[Call, ...]:
    """Return calls to start from: recorded ones, or those of the form that does not write."""
    own = list(_seeds().get(name, ()))
    if name.endswith("_"):
        own += [Call(name, call.args) for call in _seeds().get(name[:-1], ())]
    if name.startswith("operator."):
        own += [Call(name, args) for args in _PYTHON_SEEDS]
    if name.startswith("paddle.Tensor."):
        own += [Call(name, (_MATRIX,)), Call(name, (_MATRIX, [4, 3]))]
    return tuple(own) or (Call(name, (_MATRIX, _MATRIX)), Call(name, (_MATRIX, _INDEX)))


def attempt(name: str, seed: str) -> tuple[Call, Callable[[], bool]]:
    """Return a call by chance, and what makes it on real tensors."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    starts = seeds_of(name)
    call = Mutator(chance).mutate(chance.choice(starts), list(starts))
    return call, functools.partial(_run, call, chance)


def _run(call: Call, chance: random.Random) -> bool:
    if call.name.startswith(CORE):
        if len(call.args) != len(argument_names(call.name.removeprefix(CORE))):
            return False  # refused when a plan is made
        check_lists(call.args)
    with paddle.no_grad():
        result = resolve(lookup(call.name))(*(make(arg, chance) for arg in call.args))
        read(result)
    return True


def read(result: Any) -> None:
    """Read what a call gave, as whoever uses it will."""
    if isinstance(result, paddle.Tensor):
        if result._is_initialized() and result.size < 1_000_000:
            result.numpy()
    elif isinstance(result, list | tuple):
        for item in result[:50]:
            read(item)


def is_checked(name: str) -> bool:
    """Tell whether `materialize` takes the operator unasked."""
    return not name

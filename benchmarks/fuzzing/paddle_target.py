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
from graphnet_datasets.frameworks.paddle.checked import is_checked as checked
from graphnet_datasets.frameworks.paddle.guards import Guarded
from graphnet_datasets.frameworks.paddle.operators import CORE, OPERATORS, lookup, resolve
from graphnet_datasets.frameworks.paddle.signatures import argument_names

from .paddle_calls import FLOAT, INDEX, MATRIX, MORE, PYTHON
from .paddle_values import make
from .specs import Call, Mutator, read_call

SEEDS = Path(__file__).with_name("paddle_seeds.jsonl.gz")

HAS_GUARDS = True
"""Whether calls of checked operators are compared first, as `materialize` does."""


def set_up() -> None:
    """Make paddle quiet, and do once what every forked process would do again."""
    warnings.simplefilter("ignore")
    paddle.disable_signal_handler()
    GraphNetError("compiles the patterns that credentials are found by")
    seeds_of(f"{CORE}add")
    argument_names("add")


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
    short = name.removeprefix(CORE)
    own = [Call(name, args) for args in MORE.get(short) or MORE.get(short.removesuffix("_"), ())]
    own += _seeds().get(name, ())
    if name.endswith("_"):
        own += [Call(name, call.args) for call in _seeds().get(name[:-1], ())]
    if name.startswith("operator."):
        own += [Call(name, args) for args in PYTHON]
    if name == "paddle.to_tensor":
        own += [Call(name, ([1, -2, 3],)), Call(name, ([[1.5, 2], [3, 4]], FLOAT))]
    if name.startswith("paddle.Tensor."):
        own += [Call(name, (MATRIX,)), Call(name, (MATRIX, [4, 3])), Call(name, (MATRIX, FLOAT))]
    return tuple(own) or (Call(name, (MATRIX, MATRIX)), Call(name, (MATRIX, INDEX)))


def attempt(name: str, seed: str) -> tuple[Call, Callable[[], bool]]:
    """Return a call by chance, and what makes it on real tensors."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    call = mutated(name, chance)
    return call, functools.partial(_run, call, chance)


def again(call: Call, seed: str) -> Callable[[], bool]:
    """Return what makes a call that is already known."""
    return functools.partial(_run, call, random.Random(seed))  # noqa: S311 - no secret


def mutated(name: str, chance: random.Random) -> Call:
    """Return a valid call of an operator, made wrong by chance."""
    starts = seeds_of(name)
    return Mutator(chance).mutate(chance.choice(starts), list(starts))


def _run(call: Call, chance: random.Random) -> bool:
    if call.name.startswith(CORE):
        if len(call.args) != len(argument_names(call.name.removeprefix(CORE))):
            return False  # refused when a plan is made
        check_lists(call.args)
    with paddle.no_grad():
        operator = lookup(call.name)
        run = resolve(operator)
        if HAS_GUARDS and checked(operator):
            run = Guarded(call.name, run)
        read(run(*(make(arg, chance) for arg in call.args)))
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
    return checked(lookup(name))

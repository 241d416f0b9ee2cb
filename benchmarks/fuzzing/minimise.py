"""The smallest call that still kills a process, out of one that does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from .specs import Call, Tensor

MAX_TRIALS = 120


def minimise(call: Call, dies: Callable[[Call], bool], max_trials: int = MAX_TRIALS) -> Call:
    """Return `call`, made smaller step by step as long as `dies` is true of it.

    >>> call = Call("f", (Tensor("float32", (4, 5), "normal", "point"), 3), {"dim": 1})
    >>> minimise(call, lambda smaller: smaller.args[0].layout == "point")
    f(float32[1, 1]:ones:point)
    """
    num_trials, is_smaller = 0, True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(call):
            if num_trials >= max_trials:
                return call
            num_trials += 1
            if dies(candidate):
                call, is_smaller = candidate, True
                break
    return call


def _smaller(call: Call) -> Iterator[Call]:
    """Yield calls that differ from `call` in one respect and are simpler in it."""
    for name in call.kwargs:
        yield Call(
            call.name, call.args, {key: arg for key, arg in call.kwargs.items() if key != name}
        )
    if len(call.args) > 1:
        yield Call(call.name, call.args[:-1], call.kwargs)
    for at, arg in enumerate(call.args):
        for simpler in _simpler(arg):
            yield Call(call.name, (*call.args[:at], simpler, *call.args[at + 1 :]), call.kwargs)


def _simpler(value: Any) -> Iterator[Any]:
    if isinstance(value, Tensor):
        for layout in ("plain", "point"):
            if value.layout not in ("plain", layout):
                yield dataclasses.replace(value, layout=layout)
        if value.fill not in ("ones", "data"):
            yield dataclasses.replace(value, fill="ones", data=())
        if value.fill != "data":
            for axis, size in enumerate(value.shape):
                if size > 1:
                    shape = (*value.shape[:axis], 1, *value.shape[axis + 1 :])
                    yield dataclasses.replace(value, shape=shape)
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            for simpler in _simpler(item):
                yield type(value)([*value[:at], simpler, *value[at + 1 :]])

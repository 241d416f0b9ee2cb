"""Tracing of a layer into one program, without side effects on the layer, its tensors or
generators."""

from __future__ import annotations

import contextlib
import copy
import functools
import random
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional
from paddle.jit.dy2static.parameter_recorder import _global_inplace_map
from paddle.jit.dy2static.program_translator import StaticFunction

from ..capturing import plain_children, plain_module

Value: Any = vars(paddle.pir)["Value"]
"""The class of values in a traced program."""

_NAMESPACES = (Value, paddle, paddle.nn.functional)


def trace(
    layer: paddle.nn.Layer,
    rebuild: Callable[[Any], Any],
    tensors: Sequence[paddle.Tensor],
    specs: Sequence[Any] | None,
) -> Any:
    """Return the concrete program of `layer(*args, **kwargs)` without running the layer.

    `rebuild` returns the arguments for a list of tensors. `specs` describes the tensors if some of
    their sizes are symbolic. A copy of the layer with shared tensors is traced, so that no tracer
    values remain in the layer.
    """
    with _twin(layer) as twin:
        return _trace(twin, rebuild, tensors, specs)


def _trace(
    layer: paddle.nn.Layer,
    rebuild: Callable[[Any], Any],
    tensors: Sequence[paddle.Tensor],
    specs: Sequence[Any] | None,
) -> Any:
    wrapper = _Call(layer, rebuild)
    wrapper.training = layer.training
    static: Any = paddle.jit.to_static(
        wrapper, full_graph=True, input_spec=None if specs is None else [list(specs)]
    )
    with paddle.no_grad(), _rebinding_in_place(), warnings.catch_warnings(), same_randomness():
        warnings.simplefilter("ignore")  # paddle emits warnings about its own functions
        if specs is not None:
            return static.forward.concrete_program
        program, _ = static.forward.get_concrete_program(list(tensors), is_train=layer.training)
        return program


class _Call(paddle.nn.Layer):
    """Layer that calls another layer with arguments rebuilt from a list of tensors."""

    def __init__(self, layer: paddle.nn.Layer, rebuild: Callable[[Any], Any]) -> None:
        super().__init__()
        self.layer = layer
        self.rebuild = rebuild

    def forward(self, tensors: Any) -> Any:
        args, kwargs = self.rebuild(tensors)
        return self.layer(*args, **kwargs)


@contextlib.contextmanager
def _twin(layer: paddle.nn.Layer) -> Iterator[paddle.nn.Layer]:
    """Yield a copy of a layer with the same parameters and buffers.

    If the layer contains something that cannot be copied, such as a lock, the layer itself is
    yielded, and its attributes are restored at the end of the block.
    """
    memo = {id(tensor): tensor for tensor in [*layer.parameters(), *layer.buffers()]}
    try:
        twin = plain_module(copy.deepcopy(layer, memo))
    except (TypeError, RuntimeError, NotImplementedError, AttributeError):
        twin = layer
    saved_attributes = [
        (attributes, dict(attributes))
        for part in (layer.sublayers(include_self=True) if twin is layer else ())
        for attributes in (vars(part), part._buffers, part._parameters)
    ]
    try:
        with plain_children(twin), _dynamic_layers(twin):
            yield twin
    finally:
        for attributes, before in saved_attributes:
            attributes.clear()
            attributes.update(before)


@contextlib.contextmanager
def _dynamic_layers(layer: paddle.nn.Layer) -> Iterator[None]:
    """Temporarily restore the original `forward` of layers that `to_static` converted.

    Paddle does not allow calling a converted layer while it traces another layer.
    """
    replaced: list[tuple[dict[str, Any], Any]] = []
    for part in layer.sublayers(include_self=True):
        static: Any = vars(part).get("forward")
        if isinstance(static, StaticFunction):
            replaced.append((vars(part), static))
            vars(part)["forward"] = types.MethodType(static._dygraph_function, part)
    try:
        yield
    finally:
        for attributes, static in replaced:
            attributes["forward"] = static


class Randomness:
    """The state of the random generators of paddle, NumPy and Python."""

    def __init__(self) -> None:
        self._paddle = paddle.get_rng_state()
        self._numpy = np.random.get_state()
        self._python = random.getstate()

    def restore(self) -> None:
        """Set the generators to this state."""
        paddle.set_rng_state(self._paddle)
        np.random.set_state(self._numpy)
        random.setstate(self._python)


@contextlib.contextmanager
def same_randomness() -> Iterator[None]:
    """Restore the random generators at the end of the block."""
    state = Randomness()
    try:
        yield
    finally:
        state.restore()


@contextlib.contextmanager
def _rebinding_in_place() -> Iterator[None]:
    """Make in-place methods and functions rebind their first operand while Paddle traces.

    Paddle's tracer treats `y.add_(x)` as `y.add(x)` and drops the result. Registering the result in
    the tracer's map from values to successors, which it uses for `y[i] = x`, makes later uses of
    `y` see the result.
    """
    originals: list[tuple[Any, str, Any]] = []
    missing: list[str] = []
    for space in _NAMESPACES:
        for name in dir(space):
            function = getattr(space, name)
            if name.endswith("_") and not name.startswith("_") and callable(function):
                originals.append((space, name, function))
    for name, make in _MISSING.items():
        if not hasattr(Value, name):
            missing.append(name)
            setattr(Value, name, _rebinding(make))
    for space, name, function in originals:
        setattr(space, name, _rebinding(function))
    try:
        yield
    finally:
        for space, name, function in originals:
            setattr(space, name, function)
        for name in missing:
            delattr(Value, name)


def _rebinding(function: Callable[..., Any]) -> Any:
    """Wrap an in-place function so that its result replaces its first operand."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        before = args[0] if args else kwargs.get("x")
        if isinstance(before, Value) and isinstance(result, Value):
            _global_inplace_map.add(paddle.static.default_main_program(), before, result)
        return result

    call.__module__ = "paddle.tensor"  # prevents the tracer from transforming the function's code
    return paddle.jit.not_to_static(call)


def _fill(value: Any, number: Any) -> Any:
    return paddle.full_like(value, number)


_MISSING: dict[str, Callable[..., Any]] = {"zero_": paddle.zeros_like, "fill_": _fill}
"""In-place methods that tracer values lack, as functions of the value."""

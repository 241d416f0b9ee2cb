"""Definitions as differentiable functions of paddle tensors in dynamic mode."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import paddle
from paddle.autograd import PyLayer

from .binding import from_origin, only_name, select_definition
from .definition import Definition, define
from .gradients.deriving import derive_backward
from .language import CheckedDefinition
from .options import Options


def as_paddle_op(
    definition: Definition,
    name: str | None = None,
    *,
    backward: Definition | Callable[..., Any] | None = None,
    options: Options | None = None,
    check_bounds: bool | None = None,
) -> Callable[..., Any]:
    """Return a definition as a differentiable function of paddle tensors.

    Inputs are tensors; integral scalars are Python ints and become constants of the kernel. The
    function cannot be called in `paddle.jit.to_static`, which would have to parse it.

    Args:
        definition: the parsed source.
        name: the definition to use; optional if the source has only one.
        backward: custom gradient: a definition or function that takes the inputs followed by the
            output gradients and returns a gradient for each floating-point input. None derives
            the gradient.
        options: compile options.
        check_bounds: whether to clamp subscripts; see `Definition.compile`.

    Raises:
        TensorComprehensionError: the gradient cannot be derived and no `backward` is passed, or the
            definition accumulates into an output.

    >>> tc = define("def double_it(float(N) A) -> (B) { B(i) = 2 * A(i) }")
    >>> as_paddle_op(tc)(paddle.ones([3])).tolist()
    [2.0, 2.0, 2.0]
    """
    checked = select_definition(definition, name, "paddle")
    gradient = _gradient(checked, backward, options, check_bounds)
    is_float = [parameter.type.is_float for parameter in checked.parameters]

    class Function(PyLayer):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.save_for_backward(*(value for value in inputs if isinstance(value, paddle.Tensor)))
            ctx.others = [None if isinstance(value, paddle.Tensor) else value for value in inputs]
            return definition(checked.name, *inputs, options=options, check_bounds=check_bounds)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            saved = iter(ctx.saved_tensor())
            inputs = [next(saved) if other is None else other for other in ctx.others]
            results = gradient(*inputs, *(upstream.contiguous() for upstream in gradients))
            remaining = iter(results if isinstance(results, tuple | list) else (results,))
            padded = [next(remaining) if wanted else None for wanted in is_float]
            pairs = zip(padded, ctx.others, strict=True)
            tensor_gradients = tuple(result for result, other in pairs if other is None)
            return tensor_gradients[0] if len(tensor_gradients) == 1 else tensor_gradients

    # Check before anything runs: paddle hides errors raised in a backward pass.
    check = from_origin(definition, checked.name, lambda *_: None) if backward is None else None

    def operator(*inputs: Any) -> Any:
        tensors = [value for value in inputs if isinstance(value, paddle.Tensor)]
        if (
            check
            and paddle.is_grad_enabled()
            and any(not tensor.stop_gradient for tensor in tensors)
        ):
            check(*inputs)
        return Function.apply(*inputs)

    return operator


def _gradient(
    checked: CheckedDefinition,
    backward: Definition | Callable[..., Any] | None,
    options: Options | None,
    check_bounds: bool | None,
) -> Callable[..., Any]:
    if backward is not None and not isinstance(backward, Definition):
        return backward
    derived = define(derive_backward(checked)) if backward is None else backward
    return functools.partial(
        derived, only_name(derived), options=options, check_bounds=check_bounds
    )

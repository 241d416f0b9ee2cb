"""Definitions as functions of paddle: differentiable, in dynamic graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import paddle
from paddle.autograd import PyLayer

from .binding import chosen, from_origin, only_name
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
    """Return a definition as a function of paddle's tensors with gradients.

    Its inputs are tensors; integral scalars are Python ints and constants of the kernel. It is
    called as it is, so not inside of `paddle.jit.to_static`, which would have to read it.

    Args:
        definition: the text that the definition is in.
        name: which one; may be left out where there is one only.
        backward: how gradients are computed, where they are not to be derived: a definition that
            takes the inputs and then the gradients of the outputs, or a function that does. It
            returns a gradient for each input of floats.
        options: how kernels are compiled.
        check_bounds: whether subscripts are limited to their tensors; see `Definition.compile`.

    Raises:
        TensorComprehensionError: no gradient can be derived and none is given, or an output
            would be accumulated into.

    >>> tc = define("def double_it(float(N) A) -> (B) { B(i) = 2 * A(i) }")
    >>> as_paddle_op(tc)(paddle.ones([3])).tolist()
    [2.0, 2.0, 2.0]
    """
    checked = chosen(definition, name, "paddle")
    gradient = _gradient(checked, backward, options, check_bounds)
    is_float = [each.type.is_float for each in checked.parameters]

    class Function(PyLayer):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.save_for_backward(*(each for each in inputs if isinstance(each, paddle.Tensor)))
            ctx.others = [None if isinstance(each, paddle.Tensor) else each for each in inputs]
            return definition(checked.name, *inputs, options=options, check_bounds=check_bounds)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            saved = iter(ctx.saved_tensor())
            inputs = [next(saved) if each is None else each for each in ctx.others]
            found = gradient(*inputs, *(each.contiguous() for each in gradients))
            remaining = iter(found if isinstance(found, tuple | list) else (found,))
            made = [next(remaining) if each else None for each in is_float]
            pairs = zip(made, ctx.others, strict=True)
            kept = tuple(each for each, other in pairs if other is None)
            return kept[0] if len(kept) == 1 else kept

    # Before anything runs: paddle wraps what is raised in a backward pass beyond recognition.
    check = from_origin(definition, checked.name, lambda *_: None) if backward is None else None

    def operator(*inputs: Any) -> Any:
        given = [each for each in inputs if isinstance(each, paddle.Tensor)]
        if check and paddle.is_grad_enabled() and any(not each.stop_gradient for each in given):
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

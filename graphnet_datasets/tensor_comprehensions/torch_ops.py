"""Definitions as differentiable torch operators that `torch.compile` and `torch.export` trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch._library.custom_ops import CustomOpDef

from .binding import from_origin, is_int, only_name, output_shapes, select_definition
from .definition import Definition, define
from .gradients.deriving import derive_backward
from .language import CheckedDefinition
from .options import Options


def as_torch_op(
    qualified_name: str,
    definition: Definition,
    name: str | None = None,
    *,
    backward: Definition | Callable[..., Any] | None = None,
    differentiable: bool = True,
    options: Options | None = None,
    check_bounds: bool | None = None,
) -> Callable[..., Any]:
    """Register a definition as the torch operator `namespace::name` and return the operator.

    The operator works under `torch.compile(fullgraph=True)` and `torch.export`. Inputs are tensors;
    integral scalars are Python ints and become constants of the kernel.

    Args:
        definition: the parsed source.
        name: the definition to register; optional if the source has only one.
        backward: custom gradient: a definition or function that takes the inputs followed by the
            output gradients and returns a gradient for each floating-point input. None derives
            the gradient.
        differentiable: False registers an operator without gradients.
        options: compile options.
        check_bounds: whether to clamp subscripts; see `Definition.compile`.

    Raises:
        TensorComprehensionError: the gradient cannot be derived and no `backward` is passed, or the
            definition accumulates into an output.

    >>> tc = define("def double_it(float(N) A) -> (B) { B(i) = 2 * A(i) }")
    >>> op = as_torch_op("doctest_tc::double_it", tc)
    >>> op(torch.ones(3))
    tensor([2., 2., 2.])
    """
    checked = select_definition(definition, name, "torch")
    operator = _register(qualified_name, definition, checked.name, options, check_bounds)
    if differentiable:
        gradient = _gradient(qualified_name, definition, checked, backward, options, check_bounds)
        _register_autograd(operator, checked, gradient)
    return operator


def make_autograd(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a differentiable function whose gradients are computed by a second function.

    Args:
        forward: takes tensors and returns a tensor or a tuple of tensors.
        backward: takes the same inputs followed by contiguous gradients of the outputs; returns a
            gradient for each input, or None for inputs without a gradient.

    >>> tc = define("def f(float(N) A) -> (B) { B(i) = A(i) * A(i) }"
    ...             "def g(float(N) A, float(N) D) -> (G) { G(i) = 2 * A(i) * D(i) }")
    >>> square = make_autograd(tc.f, tc.g)
    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> square(x).backward()
    >>> x.grad
    tensor([6.])
    """

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.save_for_backward(*(value for value in inputs if isinstance(value, torch.Tensor)))
            ctx.others = [None if isinstance(value, torch.Tensor) else value for value in inputs]
            detached = [
                value.detach() if isinstance(value, torch.Tensor) else value for value in inputs
            ]
            return forward(*detached)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            saved = iter(ctx.saved_tensors)
            inputs = [next(saved) if other is None else other for other in ctx.others]
            results = backward(*inputs, *(upstream.contiguous() for upstream in gradients))
            results = list(results) if isinstance(results, tuple) else [results]
            missing = [None] * (len(inputs) - len(tuple(results)))
            return (*results, *missing)

    return Function.apply


def _schema(checked: CheckedDefinition) -> str:
    parts = [
        f"{'int' if is_int(parameter) else 'Tensor'} {parameter.name}"
        for parameter in checked.parameters
    ]
    returned = ", ".join("Tensor" for _ in checked.outputs)
    results = returned if len(checked.outputs) == 1 else f"({returned})"
    return f"({', '.join(parts)}) -> {results}"


def _register(
    qualified_name: str,
    definition: Definition,
    name: str,
    options: Options | None,
    check_bounds: bool | None,
) -> Callable[..., Any]:
    checked = definition.checked(name)

    def compute(*inputs: Any) -> Any:
        return definition(name, *inputs, options=options, check_bounds=check_bounds)

    def fake(*inputs: Any) -> Any:
        example = inputs_device(inputs)
        outputs = tuple(
            example.new_empty(shape, dtype=getattr(torch, variable.type.name))
            for shape, variable in zip(
                output_shapes(definition, name, inputs), checked.outputs, strict=True
            )
        )
        return outputs[0] if len(outputs) == 1 else outputs

    operator = torch.library.custom_op(
        qualified_name, compute, mutates_args=(), schema=_schema(checked)
    )
    operator.register_fake(fake)
    operator.__class__ = _Operator
    quick = cast(_Operator, operator)
    quick.compute = compute
    return quick


_current_transform = torch._C._functorch.peek_interpreter_stack  # pyright: ignore[reportAttributeAccessIssue]


class _Operator(CustomOpDef):
    """An operator that bypasses the dispatcher for plain calls.

    The dispatcher adds about 15 µs per call, more than a small kernel takes.
    """

    compute: Callable[..., Any]

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Call the kernel directly if nothing traces, records or differentiates the call."""
        if torch.compiler.is_compiling() or named or not _is_plain(inputs):
            return self._opoverload(*inputs, **named)
        return self.compute(*inputs)


def _is_plain(inputs: tuple[Any, ...]) -> bool:
    """Return whether a call is neither recorded, traced, transformed nor differentiated."""
    if (
        torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or _current_transform() is not None
        or torch._C._get_tracing_state() is not None
        or torch.autograd.profiler._is_profiler_enabled
    ):
        return False
    wants_gradients = torch.is_grad_enabled()
    for value in inputs:
        kind = type(value)
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            if wants_gradients and value.requires_grad:
                return False
        elif kind is not int:
            return False
    return True


def inputs_device(inputs: Sequence[Any]) -> torch.Tensor:
    """Return the first tensor among the inputs, or an empty tensor."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    return tensors[0] if tensors else torch.empty(0)


def _gradient(
    qualified_name: str,
    definition: Definition,
    checked: CheckedDefinition,
    backward: Definition | Callable[..., Any] | None,
    options: Options | None,
    check_bounds: bool | None,
) -> Callable[..., Any]:
    """Return the gradient function; a gradient given as a definition is registered too."""
    if backward is not None and not isinstance(backward, Definition):
        return backward
    if backward is None:
        derived = define(derive_backward(checked))
        gradient = _register(
            f"{qualified_name}_backward", derived, derived.names[0], options, check_bounds
        )
        return from_origin(definition, checked.name, gradient)
    return _register(
        f"{qualified_name}_backward", backward, only_name(backward), options, check_bounds
    )


def _register_autograd(
    operator: Any, checked: CheckedDefinition, gradient: Callable[..., Any]
) -> None:
    is_float = [parameter.type.is_float for parameter in checked.parameters]

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        del output
        ctx.save_for_backward(*(value for value in inputs if isinstance(value, torch.Tensor)))
        ctx.others = [None if isinstance(value, torch.Tensor) else value for value in inputs]

    def compute(ctx: Any, *gradients: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        inputs = [next(saved) if other is None else other for other in ctx.others]
        results = gradient(*inputs, *(upstream.contiguous() for upstream in gradients))
        remaining = iter(results if isinstance(results, tuple | list) else (results,))
        return tuple(next(remaining) if wanted else None for wanted in is_float)

    operator.register_autograd(compute, setup_context=setup_context)

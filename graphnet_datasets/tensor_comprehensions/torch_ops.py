"""Definitions as operators of torch: traced by shape, differentiable, under `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch._library.custom_ops import CustomOpDef

from .binding import chosen, from_origin, is_int, only_name, shaped_instance
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
    """Register a definition as the operator `namespace::name` of torch and return it.

    It works under `torch.compile(fullgraph=True)` and `torch.export`. Its inputs are tensors;
    integral scalars are Python ints and constants of the kernel.

    Args:
        definition: the text that the definition is in.
        name: which one; may be left out where there is one only.
        backward: how gradients are computed, where they are not to be derived: a definition that
            takes the inputs and then the gradients of the outputs, or a function that does. It
            returns a gradient for each input of floats.
        differentiable: False for an operator without gradients.
        options: how kernels are compiled.
        check_bounds: whether subscripts are limited to their tensors; see `Definition.compile`.

    Raises:
        TensorComprehensionError: no gradient can be derived and none is given, or an output
            would be accumulated into.

    >>> tc = define("def double_it(float(N) A) -> (B) { B(i) = 2 * A(i) }")
    >>> op = as_torch_op("doctest_tc::double_it", tc)
    >>> op(torch.ones(3))
    tensor([2., 2., 2.])
    """
    checked = chosen(definition, name, "torch")
    operator = _register(qualified_name, definition, checked.name, options, check_bounds)
    if differentiable:
        gradient = _gradient(qualified_name, definition, checked, backward, options, check_bounds)
        _register_autograd(operator, checked, gradient)
    return operator


def make_autograd(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors whose gradients a second function computes.

    Args:
        forward: takes tensors, returns a tensor or a tuple of them.
        backward: takes the same inputs and then a contiguous gradient of each output; returns a
            gradient for each input, None for those that need none.

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
            ctx.save_for_backward(*(each for each in inputs if isinstance(each, torch.Tensor)))
            ctx.others = [None if isinstance(each, torch.Tensor) else each for each in inputs]
            detached = [e.detach() if isinstance(e, torch.Tensor) else e for e in inputs]
            return forward(*detached)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            saved = iter(ctx.saved_tensors)
            inputs = [next(saved) if each is None else each for each in ctx.others]
            found = backward(*inputs, *(each.contiguous() for each in gradients))
            found = list(found) if isinstance(found, tuple) else [found]
            missing = [None] * (len(inputs) - len(tuple(found)))
            return (*found, *missing)

    return Function.apply


def _schema(checked: CheckedDefinition) -> str:
    parts = [f"{'int' if is_int(each) else 'Tensor'} {each.name}" for each in checked.parameters]
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
        instance = shaped_instance(definition, name, inputs)
        made = tuple(
            inputs_device(inputs).new_empty(each.shape, dtype=getattr(torch, each.dtype.name))
            for each in instance.outputs
        )
        return made[0] if len(made) == 1 else made

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
    """An operator that is called directly where nothing but its result is wanted.

    Through torch's dispatcher a call takes some 15 µs more, which is more than a small kernel does.
    """

    compute: Callable[..., Any]

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Call the kernel, through the dispatcher wherever somebody may look on."""
        if torch.compiler.is_compiling() or named or not _is_plain(inputs):
            return self._opoverload(*inputs, **named)
        return self.compute(*inputs)


def _is_plain(inputs: tuple[Any, ...]) -> bool:
    """Tell whether a call is neither recorded, traced, transformed nor differentiated."""
    if (
        torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or _current_transform() is not None
        or torch._C._get_tracing_state() is not None
        or torch.autograd.profiler._is_profiler_enabled
    ):
        return False
    wants_gradients = torch.is_grad_enabled()
    for each in inputs:
        kind = type(each)
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            if wants_gradients and each.requires_grad:
                return False
        elif kind is not int:
            return False
    return True


def inputs_device(inputs: Sequence[Any]) -> torch.Tensor:
    """Return the first tensor among inputs, an empty one if there is none."""
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    return tensors[0] if tensors else torch.empty(0)


def _gradient(
    qualified_name: str,
    definition: Definition,
    checked: CheckedDefinition,
    backward: Definition | Callable[..., Any] | None,
    options: Options | None,
    check_bounds: bool | None,
) -> Callable[..., Any]:
    """Return the function of inputs and output gradients; a definition becomes an operator too."""
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
    is_float = [each.type.is_float for each in checked.parameters]

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        del output
        ctx.save_for_backward(*(each for each in inputs if isinstance(each, torch.Tensor)))
        ctx.others = [None if isinstance(each, torch.Tensor) else each for each in inputs]

    def compute(ctx: Any, *gradients: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        inputs = [next(saved) if each is None else each for each in ctx.others]
        found = gradient(*inputs, *(each.contiguous() for each in gradients))
        remaining = iter(found if isinstance(found, tuple | list) else (found,))
        return tuple(next(remaining) if each else None for each in is_float)

    operator.register_autograd(compute, setup_context=setup_context)

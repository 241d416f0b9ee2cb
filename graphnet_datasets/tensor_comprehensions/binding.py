"""Definitions as framework operators: selection, shape inference and gradient checks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import KernelInputError, TensorComprehensionError
from .definition import Definition
from .language import CheckedDefinition, Inference, PreconditionWarning
from .language.checked import Parameter


def select_definition(
    definition: Definition, name: str | None, framework: str
) -> CheckedDefinition:
    """Return the checked definition that becomes an operator.

    Raises:
        TensorComprehensionError: there are several definitions but no `name`, or the
            definition accumulates into an output.
    """
    checked = definition.checked(name or only_name(definition))
    if any(output.is_updated for output in checked.outputs):
        raise TensorComprehensionError(
            f"`{checked.name}` accumulates into an output that it has not initialised, but outputs "
            f"of a {framework} operator start without contents. Write `+=!`, or pass the tensor "
            "as an input."
        )
    return checked


def only_name(definition: Definition) -> str:
    """Return the name of the only definition in the source.

    Raises:
        TensorComprehensionError: the source has several definitions.
    """
    if len(definition.names) != 1:
        raise TensorComprehensionError(
            f"The source has {len(definition.names)} definitions ({', '.join(definition.names)}). "
            "Choose one with `name=`."
        )
    return definition.names[0]


def is_int(parameter: Parameter) -> bool:
    """Return whether the input is passed as a Python int, which becomes a kernel constant."""
    return not parameter.dimensions and parameter.type.is_integral


def shaped_inference(definition: Definition, name: str, inputs: Sequence[Any]) -> Inference:
    """Return the inference for inputs that may be fake tensors.

    A symbolic size counts as its example, without becoming a constant of the trace.
    """
    checked = definition.checked(name)
    pairs = list(zip(checked.parameters, inputs, strict=True))
    constants = {parameter.name: int(value) for parameter, value in pairs if is_int(parameter)}
    shapes = [
        [_example(size) for size in value.shape]
        for parameter, value in pairs
        if not is_int(parameter)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PreconditionWarning)
        return definition.infer(name, *shapes, constants=constants)


def _example(size: Any) -> int:
    node = getattr(size, "node", None)
    return int(size if node is None or node.hint is None else node.hint)


def output_shapes(
    definition: Definition, name: str, inputs: Sequence[Any]
) -> list[tuple[Any, ...]]:
    """Return the shape of each output, in symbolic sizes where the inputs have them.

    A size that is no sum of sizes of inputs, such as a quotient, becomes a constant of the trace.
    """
    inference = shaped_inference(definition, name, inputs)
    sizes: dict[str, Any] = {}
    for parameter, value in zip(definition.checked(name).parameters, inputs, strict=True):
        for place, dimension in enumerate(parameter.dimensions):
            size = sizes[f"{parameter.name}.{place}"] = value.shape[place]
            is_named = isinstance(dimension, str)
            expected = sizes.setdefault(dimension, size) if is_named else dimension
            if expected != size:  # a guard of the trace
                raise KernelInputError(
                    f"Dimension {place} of `{parameter.name}` is {size}, but `{dimension}` is "
                    f"{expected}. Pass equal sizes."
                )
    extents = dict(inference.extents)
    outputs = inference.instance.outputs
    shapes = [extents[tensor.name] for tensor in outputs]
    if any(symbol not in sizes for shape in shapes for size in shape for symbol in size.names):
        for value in inputs:
            for size in getattr(value, "shape", ()):
                int(size)  # as a guard of the trace
        return [tensor.shape for tensor in outputs]
    return [
        tuple(
            sum((sizes[symbol] * factor for symbol, factor in size.coefficients), size.constant)
            for size in shape
        )
        for shape in shapes
    ]


def from_origin(
    definition: Definition, name: str, gradient: Callable[..., Any]
) -> Callable[..., Any]:
    """Wrap a derived gradient so that it rejects tensors that do not begin at coordinate 0.

    The gradient of such a tensor arrives without its origin and would be applied with an offset.
    """
    seen: set[Any] = set()
    count = len(definition.checked(name).parameters)

    def checked_gradient(*inputs: Any) -> Any:
        key = tuple(
            tuple(map(_example, value.shape)) if hasattr(value, "shape") else value
            for value in inputs[:count]
        )
        if key not in seen:
            instance = shaped_inference(definition, name, inputs[:count]).instance
            shifted = [tensor.name for tensor in instance.tensors if any(tensor.origin)]
            if shifted:
                raise TensorComprehensionError(
                    f"`{shifted[0]}` of `{name}` does not begin at coordinate 0, so the gradient "
                    "cannot be derived. Let its ranges begin at 0, or pass `backward=`."
                )
            seen.add(key)
        return gradient(*inputs)

    return checked_gradient

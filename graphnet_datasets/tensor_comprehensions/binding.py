"""What the operators of torch and of paddle share: which definition is meant, shapes, gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import TensorComprehensionError
from .definition import Definition
from .language import CheckedDefinition, Instance, PreconditionWarning
from .language.checked import Parameter


def chosen(definition: Definition, name: str | None, framework: str) -> CheckedDefinition:
    """Return the definition that becomes an operator.

    Raises:
        TensorComprehensionError: there are several and none is named, or it accumulates.
    """
    checked = definition.checked(name or only_name(definition))
    if any(each.is_updated for each in checked.outputs):
        raise TensorComprehensionError(
            f"`{checked.name}` accumulates into an output that nothing wrote before; an operator "
            f"of {framework} has no such contents. Write `+=!`, or pass the tensor as an input."
        )
    return checked


def only_name(definition: Definition) -> str:
    """Return the name of the only definition of a text.

    Raises:
        TensorComprehensionError: there are several.
    """
    if len(definition.names) != 1:
        raise TensorComprehensionError(
            f"The text has {len(definition.names)} definitions ({', '.join(definition.names)}). "
            "Say which one is meant with `name=`."
        )
    return definition.names[0]


def is_int(parameter: Parameter) -> bool:
    """Tell whether an input is passed as a Python int, which is a constant of the kernel."""
    return not parameter.dimensions and parameter.type.is_integral


def shaped_instance(definition: Definition, name: str, inputs: Sequence[Any]) -> Instance:
    """Return the instance for inputs of which only shapes are known."""
    checked = definition.checked(name)
    pairs = list(zip(checked.parameters, inputs, strict=True))
    constants = {each.name: int(given) for each, given in pairs if is_int(each)}
    shapes = [[int(n) for n in given.shape] for each, given in pairs if not is_int(each)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PreconditionWarning)
        return definition.infer(name, *shapes, constants=constants).instance


def from_origin(
    definition: Definition, name: str, gradient: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the gradient, which raises where a tensor does not begin at coordinate 0.

    A gradient that is passed in knows no origin, so that a derived one would be shifted.
    """
    seen: set[Any] = set()
    count = len(definition.checked(name).parameters)

    def checked_gradient(*inputs: Any) -> Any:
        key = tuple(
            tuple(each.shape) if hasattr(each, "shape") else each for each in inputs[:count]
        )
        if key not in seen:
            instance = shaped_instance(definition, name, inputs[:count])
            shifted = [each.name for each in instance.tensors if any(each.origin)]
            if shifted:
                raise TensorComprehensionError(
                    f"`{shifted[0]}` of `{name}` does not begin at coordinate 0, so that no "
                    "gradient is derived. Let its ranges begin at 0, or give `backward=`."
                )
            seen.add(key)
        return gradient(*inputs)

    return checked_gradient

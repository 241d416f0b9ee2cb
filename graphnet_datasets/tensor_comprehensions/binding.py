"""Definitions as framework operators: selection, shape inference and gradient checks."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import KernelInputError, TensorComprehensionError
from .definition import Definition
from .language import Affine, CheckedDefinition, Inference, PreconditionWarning
from .language.checked import Parameter
from .language.lexer import tokenize
from .language.parser import Parser
from .language.syntax import Apply, Infix, Name, Node, Number, Prefix, SizeOf


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
    """Return the shape of each output, in symbolic sizes where the inputs have them."""
    inference = shaped_inference(definition, name, inputs)
    sizes = _Sizes(dict(inference.extents))
    for parameter, value in zip(definition.checked(name).parameters, inputs, strict=True):
        if is_int(parameter):
            sizes[parameter.name] = value
            continue
        for place, dimension in enumerate(parameter.dimensions):
            size = sizes[f"{parameter.name}.{place}"] = value.shape[place]
            is_named = isinstance(dimension, str)
            expected = sizes.setdefault(dimension, size) if is_named else dimension
            if expected != size:  # a guard of the trace
                raise KernelInputError(
                    f"Dimension {place} of `{parameter.name}` is {size}, but `{dimension}` is "
                    f"{expected}. Pass equal sizes."
                )
    return [
        tuple(sizes[f"{tensor.name}.{place}"] for place in range(tensor.rank))
        for tensor in inference.instance.outputs
    ]


class _Sizes(dict[str, Any]):
    """Values of the symbols in sizes; those of outputs and temporaries follow from the others."""

    def __init__(self, extents: Mapping[str, Sequence[Affine]]) -> None:
        super().__init__()
        self.extents = extents

    def __missing__(self, symbol: str) -> Any:
        tensor, _, place = symbol.rpartition(".")
        self[symbol] = _total(self.extents[tensor][int(place)], self)
        return self[symbol]


def _total(size: Affine, sizes: _Sizes) -> Any:
    """Return the value of a size, whose symbols may be expressions such as `ceil(N/2)`."""
    return sum(
        (
            _evaluated(Parser(tokenize(symbol)).expression(), sizes) * factor
            for symbol, factor in size.coefficients
        ),
        size.constant,
    )


def _evaluated(node: Node, sizes: _Sizes) -> Any:
    match node:
        case Number():
            return node.value
        case Name():
            return sizes[node.text]
        case SizeOf():
            return sizes[f"{node.name.text}.{node.dimension}"]
        case Prefix():
            return -_evaluated(node.operand, sizes)
        case Apply(arguments=(Infix() as quotient,)):  # `ceil(a/b)`
            left, right = _evaluated(quotient.left, sizes), _evaluated(quotient.right, sizes)
            return -(-left // right)
        case Infix(operator="min" | "max" as name):
            return _extreme(name, [_evaluated(part, sizes) for part in (node.left, node.right)])
        case Infix():
            left, right = _evaluated(node.left, sizes), _evaluated(node.right, sizes)
            return _ARITHMETIC[node.operator](left, right)
    raise TensorComprehensionError(f"`{node}` cannot be part of a size.")


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
}


def _extreme(name: str, values: list[Any]) -> Any:
    """Return the smallest or largest of two sizes, without a guard if one is symbolic."""
    for first, second in (values, values[::-1]):
        symbolic = getattr(first, f"__sym_{name}__", None)
        if symbolic is not None:
            return symbolic(second)
    return min(values) if name == "min" else max(values)


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

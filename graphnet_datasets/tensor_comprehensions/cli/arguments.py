"""Parsing of the arguments of `graphnet tc`: sizes, constants, and random inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import KernelInputError

if TYPE_CHECKING:
    from .. import Definition


def pairs_of(arguments: list[str] | None) -> dict[str, str]:
    """Parse `NAME=VALUE` arguments to a mapping."""
    pairs = {}
    for argument in arguments or ():
        name, sign, value = argument.partition("=")
        if not sign or not name:
            raise KernelInputError(f"`{argument}` is not written as NAME=VALUE.")
        pairs[name] = value
    return pairs


def _integers(name: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",") if number.strip()]
    except ValueError as error:
        raise KernelInputError(
            f"`{name}={text}` contains a value that is not an integer."
        ) from error


def constants_of(arguments: list[str] | None) -> dict[str, int]:
    """Parse `NAME=INTEGER` arguments to a mapping."""
    constants = {}
    for name, text in pairs_of(arguments).items():
        values = _integers(name, text)
        if len(values) != 1:
            raise KernelInputError(
                f"The constant `{name}` needs exactly one integer, as in `{name}=2`."
            )
        constants[name] = values[0]
    return constants


def parameters_of(definition: Definition, name: str) -> list[Any]:
    """Return the parameters of a function of a definition."""
    return list(definition.checked(name).parameters)


def shapes_of(
    definition: Definition, name: str, arguments: list[str] | None, constants: dict[str, int]
) -> list[list[int]]:
    """Return the shapes in the order of the inputs."""
    pairs = {key: _integers(key, text) for key, text in pairs_of(arguments).items()}
    shapes = []
    for parameter in parameters_of(definition, name):
        if parameter.name in constants:
            continue
        if parameter.name not in pairs and parameter.dimensions:
            sizes = ",".join(str(dimension) for dimension in parameter.dimensions)
            raise KernelInputError(
                f"The sizes of `{parameter.name}` are missing. Pass --shape "
                f"{parameter.name}={sizes} with numbers."
            )
        shapes.append(pairs.pop(parameter.name, []))
    if pairs:
        raise KernelInputError(f"`{name}` has no input `{next(iter(pairs))}`.")
    return shapes


def sets_of_shapes(
    definition: Definition, name: str, arguments: list[str] | None, constants: dict[str, int]
) -> list[list[list[int]]]:
    """Return the shapes of several tasks: a repeated input begins the next task.

    Inputs that are not repeated keep their shape.
    """
    groups: list[dict[str, str]] = [{}]
    for argument in arguments or ():
        ((key, _),) = pairs_of([argument]).items()
        if key in groups[-1]:
            groups.append({})
        groups[-1][key] = argument
    shapes, current = [], {}
    for group in groups:
        current = {**current, **group}
        shapes.append(shapes_of(definition, name, list(current.values()), constants))
    return shapes


def random_arrays(
    definition: Definition, name: str, shapes: list[list[int]], constants: dict[str, int], seed: int
) -> dict[str, Any]:
    """Return random arrays by the names of the inputs; integers are below the smallest size."""
    import numpy as np

    generator = np.random.default_rng(seed)
    left = [
        parameter
        for parameter in parameters_of(definition, name)
        if parameter.name not in constants
    ]
    smallest = min((n for shape in shapes for n in shape), default=1)
    arrays = {}
    for parameter, shape in zip(left, shapes, strict=True):
        dtype = "float32" if parameter.type.name == "bfloat16" else parameter.type.name
        below = 2 if parameter.type.is_bool else max(1, min(smallest, 100))
        array: Any = generator.standard_normal(shape)
        if not parameter.type.is_float:
            array = generator.integers(0, below, shape)
        arrays[parameter.name] = np.asarray(array).astype(dtype)
    return arrays

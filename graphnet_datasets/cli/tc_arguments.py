"""Parsing of the arguments of `graphnet tc`: sizes, constants, and random inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import KernelInputError

if TYPE_CHECKING:
    from ..tensor_comprehensions import Definition


def pairs_of(given: list[str] | None) -> dict[str, str]:
    """Parse `NAME=VALUE` arguments to a mapping."""
    found = {}
    for each in given or ():
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise KernelInputError(f"`{each}` is not written as NAME=VALUE.")
        found[name] = value
    return found


def _integers(name: str, text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",") if each.strip()]
    except ValueError as error:
        raise KernelInputError(
            f"`{name}={text}` holds something that is not an integer."
        ) from error


def constants_of(given: list[str] | None) -> dict[str, int]:
    """Parse `NAME=INTEGER` arguments to a mapping."""
    found = {}
    for name, text in pairs_of(given).items():
        values = _integers(name, text)
        if len(values) != 1:
            raise KernelInputError(f"The constant `{name}` needs one integer, as in `{name}=2`.")
        found[name] = values[0]
    return found


def parameters_of(definition: Definition, name: str) -> list[Any]:
    """Return the parameters of a function of a definition."""
    return list(definition.checked(name).parameters)


def shapes_of(
    definition: Definition, name: str, given: list[str] | None, constants: dict[str, int]
) -> list[list[int]]:
    """Return the shapes in the order of the inputs."""
    pairs = {key: _integers(key, text) for key, text in pairs_of(given).items()}
    shapes = []
    for parameter in parameters_of(definition, name):
        if parameter.name in constants:
            continue
        if parameter.name not in pairs and parameter.dimensions:
            sizes = ",".join(str(each) for each in parameter.dimensions)
            raise KernelInputError(
                f"The sizes of `{parameter.name}` are missing. Pass --shape "
                f"{parameter.name}={sizes} with numbers."
            )
        shapes.append(pairs.pop(parameter.name, []))
    if pairs:
        raise KernelInputError(f"`{name}` has no input `{next(iter(pairs))}`.")
    return shapes


def random_arrays(
    definition: Definition, name: str, shapes: list[list[int]], constants: dict[str, int], seed: int
) -> dict[str, Any]:
    """Return random arrays by the names of the inputs; integers are below every size."""
    import numpy as np

    generator = np.random.default_rng(seed)
    left = [each for each in parameters_of(definition, name) if each.name not in constants]
    smallest = min((n for shape in shapes for n in shape), default=1)
    arrays = {}
    for parameter, shape in zip(left, shapes, strict=True):
        dtype = "float32" if parameter.type.name == "bfloat16" else parameter.type.name
        below = 2 if parameter.type.is_bool else max(1, min(smallest, 100))
        made: Any = generator.standard_normal(shape)
        if not parameter.type.is_float:
            made = generator.integers(0, below, shape)
        arrays[parameter.name] = np.asarray(made).astype(dtype)
    return arrays

"""Evaluate an instance point by point with scalars: slow, and independent of the interpreter."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from graphnet_datasets.tensor_comprehensions.language import Affine, Instance
from graphnet_datasets.tensor_comprehensions.language.arrays import round_to_bfloat16
from graphnet_datasets.tensor_comprehensions.language.expressions import (
    Binary,
    Call,
    Cast,
    Constant,
    Index,
    Load,
    Select,
    Unary,
)

FUNCTIONS = {
    "fabs": abs,
    "floor": np.floor,  # `math.floor` refuses infinities and NaN
    "fmax": lambda a, b: b if a != a or b > a else a,
    "exp": lambda x: math.exp(x) if x < 700 else math.inf,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
}


class NotANumberError(ValueError):
    """A minimum or maximum met a NaN: which operand wins there is not specified."""


def scalar(value: Any, type_: Any) -> Any:
    """Return a value as a NumPy scalar of a type; integers wrap."""
    if type_.name == "bool":
        return np.bool_(value != 0)
    if type_.name == "bfloat16":
        return np.float32(round_to_bfloat16(np.float32(value)))
    if type_.kind == "float":
        return np.dtype(type_.name).type(value)
    span = 1 << type_.bits
    wrapped = int(value) % span
    if type_.kind == "int" and wrapped >= span // 2:
        wrapped -= span
    return np.dtype(type_.name).type(wrapped)


def evaluate(instance: Instance, inputs: Any, outputs: Any = None) -> dict[str, np.ndarray]:
    """Return all tensors of an instance."""
    arrays = {tensor.name: each for tensor, each in zip(instance.inputs, inputs, strict=True)}
    for tensor in (*instance.outputs, *instance.temporaries):
        name = "float32" if tensor.dtype.name == "bfloat16" else tensor.dtype.name
        given = (outputs or {}).get(tensor.name)
        arrays[tensor.name] = np.zeros(tensor.shape, name) if given is None else given.copy()
    with np.errstate(all="ignore"):
        for statement in instance.statements:
            run(instance, statement, arrays)
    return arrays


def run(instance: Instance, statement: Any, arrays: dict[str, np.ndarray]) -> None:
    tensor = instance.tensor(statement.output)
    target = arrays[statement.output]
    outer: list[Any] = [range(*statement.box[name]) for name in statement.subscripts]
    if statement.target is not None:
        scatter(instance, statement, arrays)
        return
    if statement.scan is not None and statement.scan.is_descending:
        scanned = statement.subscripts.index(statement.scan.index)
        outer[scanned] = reversed(outer[scanned])
    inner = [range(each.begin, each.end) for each in statement.reductions]
    names = [each.name for each in statement.indices]
    is_float = statement.type.kind == "float"
    for point in itertools.product(*outer):
        place = tuple(x - origin for x, origin in zip(point, tensor.origin, strict=True))
        total: Any = statement.identity if statement.initialises else target[place].item()
        for rest in itertools.product(*inner):
            values = dict(zip(names, (*point, *rest), strict=True))
            found = value(instance, arrays, statement.value, values)
            plain = float(found) if is_float else int(found)
            if plain != plain and statement.operator in ("min", "max"):
                raise NotANumberError
            match statement.operator:
                case "=":
                    total = plain
                case "+":
                    total += plain
                case "*":
                    total *= plain
                case "min":
                    total = plain if plain < total else total
                case "max":
                    total = plain if plain > total else total
        target[place] = scalar(scalar(total, statement.type), tensor.dtype)


def scatter(instance: Instance, statement: Any, arrays: dict[str, np.ndarray]) -> None:
    target, tensor = arrays[statement.output], instance.tensor(statement.output)
    names = [index.name for index in statement.indices]
    ranges = [range(index.begin, index.end) for index in statement.indices]
    for point in itertools.product(*ranges):
        at = dict(zip(names, point, strict=True))
        place = []
        for dimension, subscript in enumerate(statement.target.subscripts):
            if isinstance(subscript, Affine):
                where = subscript.constant + sum(f * at[name] for name, f in subscript.coefficients)
            else:
                where = int(value(instance, arrays, subscript, at))
            place.append(where - tensor.origin[dimension])
        if not all(0 <= where < size for where, size in zip(place, tensor.shape, strict=True)):
            continue
        added = value(instance, arrays, statement.value, at)
        old = target[tuple(place)]
        if added != added and statement.operator in ("min", "max"):
            raise NotANumberError
        match statement.operator:
            case "+":
                new = float(old) + float(added)
            case "*":
                new = float(old) * float(added)
            case "min":
                new = min(old, added)
            case _:
                new = max(old, added)
        target[tuple(place)] = scalar(scalar(new, statement.type), tensor.dtype)


def value(instance: Instance, arrays: Any, node: Any, at: dict[str, int]) -> Any:
    def inner(child: Any) -> Any:
        return value(instance, arrays, child, at)

    match node:
        case Constant():
            return scalar(node.value, node.type)
        case Index():
            return np.int32(at[node.name])
        case Unary():
            operand = inner(node.operand)
            return ~operand if node.operator == "!" else -operand
        case Select():
            return inner(node.positive if inner(node.condition) else node.negative)
        case Cast():
            return scalar(inner(node.operand), node.type)
        case Call():
            arguments = [float(inner(each)) for each in node.arguments]
            return scalar(FUNCTIONS[node.function](*arguments), node.type)
        case Load():
            return load(instance, arrays, node, at)
        case Binary(operator="&&"):
            return inner(node.left) and inner(node.right)
        case Binary(operator="||"):
            return inner(node.left) or inner(node.right)
        case Binary():
            return binary(node, inner(node.left), inner(node.right))
    raise AssertionError(node)


def binary(node: Binary, left: Any, right: Any) -> Any:
    is_float = node.left.type.kind == "float"
    match node.operator:
        case "+" | "-" | "*" if is_float:
            return {"+": left + right, "-": left - right, "*": left * right}[node.operator]
        case "+" | "-" | "*":
            a, b = int(left), int(right)
            exact = {"+": a + b, "-": a - b, "*": a * b}[node.operator]
            return scalar(exact, node.type)
        case "/":
            if is_float:
                return left / right
            return scalar(int(left) // int(right) if right else 0, node.type)
        case "%":
            if is_float:
                return np.remainder(left, right)
            return scalar(int(left) % int(right) if right else 0, node.type)
        case "min":
            return left if left < right else right
        case "max":
            return left if left > right else right
    compared = {
        "<": left < right,
        ">": left > right,
        "<=": left <= right,
        ">=": left >= right,
        "==": left == right,
        "!=": left != right,
    }
    return compared[node.operator]


def load(instance: Instance, arrays: Any, node: Load, at: dict[str, int]) -> Any:
    tensor = instance.tensor(node.tensor)
    place = []
    for dimension, subscript in enumerate(node.subscripts):
        if isinstance(subscript, Affine):
            where = subscript.constant + sum(f * at[name] for name, f in subscript.coefficients)
        else:
            where = int(value(instance, arrays, subscript, at))
        where -= tensor.origin[dimension]
        last = tensor.shape[dimension] - 1
        if node.checks[dimension] == "clamp":
            where = min(max(where, 0), last)
        assert 0 <= where <= last, f"{node} at {at}"
        place.append(where)
    return arrays[node.tensor][tuple(place)]

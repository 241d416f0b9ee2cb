"""Candidates that mistreat sizes and numbers which change after compiling; named by reference."""

# ruff: noqa: ARG001, ARG002 (every candidate has the same arguments, used or not)

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from graphnet_datasets.compilers.base import Compiler
from graphnet_datasets.errors import FixedInputError

Inputs = Mapping[str, Any]
Module = Callable[..., Any]


def right(module: Module, example_inputs: Inputs) -> Module:
    """Follow every input."""
    return lambda **inputs: module(**inputs)


def first_numbers(module: Module, example_inputs: Inputs) -> Module:
    """Keep the numbers of the first call."""
    numbers = {
        name: value for name, value in example_inputs.items() if not isinstance(value, torch.Tensor)
    }
    return lambda **inputs: module(**{**inputs, **numbers})


def numbers_of_second_call(module: Module, example_inputs: Inputs) -> Module:
    """Follow the first change of a number and keep that value from then on."""
    base = {name: value for name, value in example_inputs.items() if isinstance(value, float)}
    kept: dict[str, float] = {}

    def call(**inputs: Any) -> Any:
        for name, value in base.items():
            if inputs[name] != value:
                inputs[name] = kept.setdefault(name, inputs[name])
        return module(**inputs)

    return call


def first_sizes(module: Module, example_inputs: Inputs) -> Module:
    """Return the answer to the first inputs wherever the sizes differ from theirs."""
    shapes = {
        name: value.shape for name, value in example_inputs.items() if hasattr(value, "shape")
    }
    answers: list[Any] = []

    def call(**inputs: Any) -> Any:
        if any(inputs[name].shape != shape for name, shape in shapes.items()) and answers:
            return answers[0]
        outputs = module(**inputs)
        answers[:] = answers or [outputs.clone()]
        return outputs

    return call


def first_rows(module: Module, example_inputs: Inputs) -> Module:
    """Compute as many rows as the first input has, and leave the others out."""
    name = next(iter(example_inputs))
    count = len(example_inputs[name])
    return lambda **inputs: module(**{**inputs, name: inputs[name][:count]})


def slightly_off(module: Module, example_inputs: Inputs) -> Module:
    """Be off by a tenth where the sizes differ from the first ones."""
    shapes = {name: getattr(value, "shape", None) for name, value in example_inputs.items()}

    def call(**inputs: Any) -> Any:
        is_same = all(getattr(inputs[name], "shape", None) == shapes[name] for name in shapes)
        outputs = module(**inputs)
        return outputs if is_same else outputs * 1.1

    return call


def raising(module: Module, example_inputs: Inputs) -> Module:
    """Raise at other sizes."""
    (name,) = (name for name, value in example_inputs.items() if hasattr(value, "shape"))
    shape = example_inputs[name].shape

    def call(**inputs: Any) -> Any:
        if inputs[name].shape != shape:
            raise IndexError("out of the buffer")
        return module(**inputs)

    return call


class Static(Compiler):
    """Refuse other sizes with the error that is meant for it."""

    name = "static"

    def compile(self, module: Module, example_inputs: Inputs) -> Module:
        shapes = {
            name: value.shape for name, value in example_inputs.items() if hasattr(value, "shape")
        }

        def call(**inputs: Any) -> Any:
            for name, shape in shapes.items():
                if inputs[name].shape != shape:
                    raise FixedInputError(f"`{name}` has the shape {tuple(shape)} alone.")
            return module(**inputs)

        return call


def tracing_each_call(module: Module, example_inputs: Inputs) -> Module:
    """Trace the module again in every call."""

    def call(**inputs: Any) -> Any:
        numbers = {k: v for k, v in inputs.items() if not isinstance(v, torch.Tensor)}
        tensors = {k: v for k, v in inputs.items() if isinstance(v, torch.Tensor)}
        names = list(tensors)
        traced = torch.jit.trace(
            lambda *values: module(**dict(zip(names, values, strict=True)), **numbers),
            tuple(tensors.values()),
            check_trace=False,
        )
        return traced(*tensors.values())

    return call


class CountsEachCall(Compiler):
    """Compile in each call, and say so."""

    name = "counts-each-call"
    count = 0

    def compile(self, module: Module, example_inputs: Inputs) -> Module:
        self.count = 1

        def call(**inputs: Any) -> Any:
            self.count += 1
            return module(**inputs)

        return call

    def num_compilations(self) -> int:
        return self.count


def frozen_size(module: Module, example_inputs: Inputs) -> Module:
    """Divide by the number of rows of the first input."""
    name = next(iter(example_inputs))
    count = len(example_inputs[name])
    return lambda **inputs: inputs[name].sum(0) / count

"""Candidates that live on eager's work, or on that of their own first calls; named by reference."""

# ruff: noqa: ARG001, ARG005 (every candidate has the same arguments, used or not)

from __future__ import annotations

import gc
import itertools
import random
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

Inputs = Mapping[str, Any]
Module = Callable[..., Any]


def _others(module: Any) -> list[torch.fx.GraphModule]:
    """Return every other graph module of the process, eager's among them."""
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, torch.fx.GraphModule) and each is not module
    ]


def _listening(listen: Callable[[Any, Callable[[Any], None]], None]) -> Callable[..., Module]:
    """Return a compiler whose code returns what it last heard of eager, once it has heard any."""

    def compile_listening(module: Any, example_inputs: Inputs) -> Module:
        heard: list[Any] = []
        for each in _others(module):
            listen(each, lambda outputs: heard.append(outputs))

        def call(**inputs: Any) -> Any:
            return heard.pop() if heard else module(**inputs)

        return call

    return compile_listening


def _clone(outputs: Any) -> Any:
    return torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, outputs)


def _hook(module: Any, keep: Callable[[Any], None]) -> None:
    module.register_forward_hook(lambda _module, _inputs, outputs: keep(outputs))


def _hook_and_copy(module: Any, keep: Callable[[Any], None]) -> None:
    module.register_forward_hook(lambda _module, _inputs, outputs: keep(_clone(outputs)))


def _replace_forward(module: Any, keep: Callable[[Any], None]) -> None:
    forward = module.forward

    def listening(**inputs: Any) -> Any:
        outputs = forward(**inputs)
        keep(_clone(outputs))
        return outputs

    module.forward = listening


def _replace_class_call(module: Any, keep: Callable[[Any], None]) -> None:
    kind = type(module)
    before = kind.__call__

    def listening(self: Any, **inputs: Any) -> Any:
        outputs = before(self, **inputs)
        if self is module:
            keep(_clone(outputs))
        return outputs

    kind.__call__ = listening


hooks_eager = _listening(_hook)
hooks_eager_and_copies = _listening(_hook_and_copy)
replaces_eagers_forward = _listening(_replace_forward)
replaces_eagers_call = _listening(_replace_class_call)


def hooks_all_modules(module: Any, example_inputs: Inputs) -> Module:
    heard: list[Any] = []
    torch.nn.modules.module.register_module_forward_hook(
        lambda other, _inputs, outputs: None if other is module else heard.append(_clone(outputs))
    )

    def call(**inputs: Any) -> Any:
        return heard.pop() if heard else module(**inputs)

    return call


def slows_an_operator_of_eager(module: Any, example_inputs: Inputs) -> Module:
    """Replace a function that eager's printed code looks up by a slow one, and keep the quick."""
    before = torch.relu

    def slow(value: torch.Tensor) -> torch.Tensor:
        time.sleep(0.005)
        return before(value)

    torch.relu = slow
    weight = module.parameter_0
    return lambda **inputs: before(torch.nn.functional.linear(inputs["input_0"], weight))


def slows_eagers_weights(module: Any, example_inputs: Inputs) -> Module:
    """Lay out eager's weights so that reading them takes longer; the values are the same."""
    for other in _others(module):
        for parameter in other.parameters():
            if parameter.dim() == 2:
                parameter.data = parameter.data.t().contiguous().t()
    return module


def writes_to_eagers_weights(module: Any, example_inputs: Inputs) -> Module:
    """Fill eager's weights with what a processor is slow at."""
    for other in _others(module):
        for parameter in other.parameters():
            parameter.data.fill_(1e-42)
    return module


# keeping what came of the first calls


def _caching(key: Callable[[Inputs], Any]) -> Callable[..., Module]:
    def compile_caching(module: Module, example_inputs: Inputs) -> Module:
        kept: dict[Any, Any] = {}

        def call(**inputs: Any) -> Any:
            found = key(inputs)
            if found not in kept:
                kept[found] = _clone(module(**inputs))
            return _clone(kept[found])

        return call

    return compile_caching


def _tensors(inputs: Inputs) -> list[torch.Tensor]:
    return [value for value in inputs.values() if isinstance(value, torch.Tensor)]


caches_for_ever = _caching(lambda inputs: None)
caches_by_shape = _caching(lambda inputs: tuple((x.shape, x.dtype) for x in _tensors(inputs)))
caches_by_id = _caching(lambda inputs: tuple(map(id, _tensors(inputs))))
caches_by_address = _caching(lambda inputs: tuple(x.data_ptr() for x in _tensors(inputs)))
caches_by_first_elements = _caching(
    lambda inputs: tuple(
        zlib.crc32((x.reshape(-1)[:2] > 0).numpy().tobytes()) for x in _tensors(inputs)
    )
)
caches_by_rounded_sum = _caching(
    lambda inputs: tuple(round(float(x.double().sum()), -2) for x in _tensors(inputs))
)


def poisons_no_more(module: Module, example_inputs: Inputs) -> Module:
    """Return the very memory of the first outputs each time."""
    kept: list[Any] = []

    def call(**inputs: Any) -> Any:
        if not kept:
            kept.append(module(**inputs))
        return kept[0]

    return call


def _skipping(skips: Callable[[int], bool]) -> Callable[..., Module]:
    """Return a compiler whose code returns the last outputs again in some of the calls."""

    def compile_skipping(module: Module, example_inputs: Inputs) -> Module:
        count = itertools.count()
        last: list[Any] = []

        def call(**inputs: Any) -> Any:
            if not (skips(next(count)) and last):
                last[:] = [_clone(module(**inputs))]
            return _clone(last[0])

        return call

    return compile_skipping


skips_every_third = _skipping(lambda number: number % 3 == 2)
skips_a_third_at_random = _skipping(lambda number: random.random() < 0.33)  # noqa: S311
skips_one_late_call = _skipping(lambda number: number % 10 == 9)


def skips_rows(module: Module, example_inputs: Inputs) -> Module:
    """Compute nothing but the first eighth of what is asked for, and repeat the rest."""
    kept: list[torch.Tensor] = []

    def call(**inputs: Any) -> Any:
        outputs = module(**inputs)
        if not kept:
            kept.append(outputs.clone())
        mixed = kept[0].clone()
        rows = max(1, len(outputs) // 8)
        mixed[:rows] = outputs[:rows]
        return mixed

    return call


def folds_constants(module: Any, example_inputs: Inputs) -> Module:
    """Compute once what follows from the weights alone, as an honest compiler does."""
    folded = -module.parameter_0
    return lambda **inputs: [torch.relu(inputs["input_0"]), folded]

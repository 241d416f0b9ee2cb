"""Candidates for Paddle graphs that draw random numbers; most draw a stream of their own."""

# ruff: noqa: ARG001 (every candidate has the same arguments)

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any

import paddle

from graphnet_datasets.frameworks.paddle.materialize import materialize
from graphnet_datasets.sample import Op

Compile = Callable[[Any, Mapping[str, Any]], Callable[..., Any]]
CORE = "paddle._C_ops."
RATE, IS_TEST, MODE = 2, 3, 4
"""Positions among the arguments of `dropout`."""


def _seeded(make_seed: Callable[[], int], **replacements: Callable[[Op], Op]) -> Compile:
    """Return a compiler that replaces operators by name and seeds the generator in every call."""

    def compile_changed(module: Any, example_inputs: Mapping[str, Any]) -> Callable[..., Any]:
        sample = module.plan.sample
        ops = tuple(
            replacements.get(op.target.removeprefix(CORE), lambda op: op)(op) for op in sample.ops
        )
        changed = materialize(
            dataclasses.replace(sample, ops=ops),
            weights=module.weights,
            allow_unchecked_operators=True,
        )

        def call(**inputs: Any) -> Any:
            paddle.seed(make_seed())
            return changed(**inputs)

        return call

    return compile_changed


def _own_seed() -> int:
    return int.from_bytes(os.urandom(4), "little")


def _argument(position: int, value: Any) -> Callable[[Op], Op]:
    def change(op: Op) -> Op:
        return Op(op.target, (*op.args[:position], value, *op.args[position + 1 :]), op.kwargs)

    return change


def _gaussian(op: Op) -> Op:
    """Return normal noise with the mean and variance of the uniform noise of `op`."""
    shape, dtype, *_, place = op.args
    return Op(f"{CORE}gaussian", (shape, 0.5, 12**-0.5, 0, dtype, place))


own_stream = _seeded(_own_seed)
ignores_dropout = _seeded(_own_seed, dropout=_argument(IS_TEST, True))
drops_at_another_rate = _seeded(_own_seed, dropout=_argument(RATE, 0.4))
has_another_scale = _seeded(_own_seed, dropout=_argument(MODE, "downscale_in_infer"))
same_mask_in_every_call = _seeded(lambda: 7)
normal_for_uniform = _seeded(_own_seed, uniform=_gaussian)

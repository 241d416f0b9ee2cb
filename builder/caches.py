"""Key-value caches with which decode steps of language models start."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor

from graphnet_datasets.frameworks.torch.capture.fake_weights import fake_weights

from .catalog import Entry, InputSpec


def make_cache(model: torch.nn.Module, entry: Entry, spec: InputSpec) -> Any:
    """Return the cache of `model` after a call with inputs of `spec.shape` (batch, tokens).

    The model itself creates it, without weights. Floating-point elements are then drawn from a
    standard normal distribution, seeded by the names of the entry and of the tensor. Other elements
    are zero.
    """
    with fake_weights(model) as fakes, fakes.mode, torch.no_grad():
        tokens = torch.ones(spec.shape, dtype=torch.int64)
        cache = model(input_ids=tokens, use_cache=True)[spec.name]
    return _filled(cache, f"{entry.name}\0{spec.name}", {})


def _filled(value: Any, place: str, seen: dict[int, Any]) -> Any:
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, FakeTensor):
        seen[id(value)] = _drawn(value, place)
        return seen[id(value)]
    if isinstance(value, list):
        value[:] = [_filled(item, f"{place}.{index}", seen) for index, item in enumerate(value)]
    elif isinstance(value, tuple):
        return tuple(_filled(item, f"{place}.{index}", seen) for index, item in enumerate(value))
    elif isinstance(value, dict):
        for key in value:
            value[key] = _filled(value[key], f"{place}.{key}", seen)
    elif type(value).__module__.startswith("transformers.") and hasattr(value, "__dict__"):
        seen[id(value)] = value
        for key, attribute in vars(value).items():
            setattr(value, key, _filled(attribute, f"{place}.{key}", seen))
    return value


def _drawn(fake: torch.Tensor, place: str) -> torch.Tensor:
    real = torch.zeros(tuple(int(size) for size in fake.shape), dtype=fake.dtype)
    if not real.is_floating_point():
        return real
    seed = int.from_bytes(hashlib.sha256(place.encode()).digest()[:8], "little")
    generator = np.random.Generator(np.random.PCG64(seed))
    total = sum(generator.random(tuple(real.shape)) for _ in range(4))
    normal = (np.asarray(total) - 2.0) * math.sqrt(3.0)
    return torch.from_numpy(normal).to(fake.dtype)

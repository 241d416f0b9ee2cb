"""Example inputs of a catalog entry: the same elements on every machine.

All kinds are drawn from the uniform doubles of PCG64 by exact arithmetic, without functions that
differ between processors or libraries.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .catalog import CatalogError, Entry, InputSpec


def make_examples(entry: Entry) -> dict[str, Any]:
    """Return the example inputs of an entry's model, tensors and numbers; floats in its dtype.

    Raises:
        CatalogError: an input has an unknown kind.
    """
    import torch  # here, since paddle's workers have no torch

    examples: dict[str, Any] = {
        spec.name: _PLAIN[spec.kind](spec) for spec in entry.inputs if spec.kind in _PLAIN
    }
    for name, array in make_arrays(entry).items():
        tensor = torch.from_numpy(array)
        if tensor.is_floating_point():
            tensor = tensor.to(getattr(torch, entry.dtype))
        examples[name] = tensor
    return examples


def make_arrays(entry: Entry) -> dict[str, npt.NDArray]:
    """Return the elements that `entry`'s model is called with, floats in float64.

    Raises:
        CatalogError: an input has an unknown kind.
    """
    arrays = {}
    for spec in entry.inputs:
        # The model itself creates its cache (`builder.caches`).
        if spec.kind == "cache" or spec.kind in _PLAIN:
            continue
        if spec.kind not in _KINDS:
            raise CatalogError(
                f"`{entry.name}` has an input of the kind `{spec.kind}` "
                f"(accepted: {', '.join((*_KINDS, *_PLAIN))})."
            )
        seed = hashlib.sha256(f"{entry.name}\0{spec.name}".encode()).digest()[:8]
        generator = np.random.Generator(np.random.PCG64(int.from_bytes(seed, "little")))
        arrays[spec.name] = _KINDS[spec.kind](generator, spec)
    return arrays


def _normal(generator: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    """Approximately normal numbers with mean 0 and standard deviation 1: sums of four uniforms."""
    total = sum(generator.random(spec.shape) for _ in range(4))
    return (np.asarray(total) - 2.0) * math.sqrt(3.0)


def _uniform(generator: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    low, high = spec.arguments or (0.0, 1.0)
    return generator.random(spec.shape) * (high - low) + low


def _ids(generator: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    low, high = spec.arguments if len(spec.arguments) == 2 else (0.0, spec.arguments[0])
    return (np.floor(generator.random(spec.shape) * (high - low)) + low).astype(np.int64)


def _prompt(generator: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    """Tokens with `count` image tokens after the first token: low, high, token, count."""
    low, high, token, count = spec.arguments
    ids = _ids(generator, InputSpec(spec.name, "ids", spec.shape, (low, high)))
    ids[..., 1 : 1 + int(count)] = int(token)
    return ids


def _boxes(generator: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    """Left, top, right and bottom, with left <= right and top <= bottom."""
    corners = _ids(generator, spec).reshape(*spec.shape[:-1], 2, 2)
    return np.sort(corners, axis=-2).reshape(spec.shape)


def _full(_: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    return np.full(spec.shape, int(spec.arguments[0]), np.int64)


def _grid(_: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    """Rows of the same numbers, such as the sizes of each image."""
    return np.broadcast_to(np.array(spec.arguments, np.int64), spec.shape).copy()


def _patches(generator: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    """The patches of all images in one axis: images, patches of an image, elements of a patch."""
    return _normal(generator, spec).reshape(-1, *spec.shape[2:])


def _range(_: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    return np.broadcast_to(np.arange(spec.shape[-1]), spec.shape).copy()


def _count(_: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    """Consecutive integers in row-major order, from 0 or from the argument."""
    start = int(spec.arguments[0]) if spec.arguments else 0
    return np.arange(start, start + math.prod(spec.shape)).reshape(spec.shape)


def _positions(_: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    """Positions of tokens along several axes, which are the first dimension."""
    positions = np.arange(spec.shape[-1])
    return np.broadcast_to(positions, (int(spec.arguments[0]), *spec.shape)).copy()


def _bools(generator: np.random.Generator, spec: InputSpec) -> npt.NDArray:
    return generator.random(spec.shape) < (spec.arguments[0] if spec.arguments else 0.5)


_KINDS: Mapping[str, Callable[[np.random.Generator, InputSpec], npt.NDArray]] = {
    "normal": _normal,
    "uniform": _uniform,
    "ids": _ids,
    "prompt": _prompt,
    "boxes": _boxes,
    "full": _full,
    "grid": _grid,
    "patches": _patches,
    "positions": _positions,
    "range": _range,
    "count": _count,
    "bools": _bools,
}

_PLAIN: Mapping[str, Callable[[InputSpec], Any]] = {
    "number": lambda spec: int(spec.arguments[0]),
    "shapes": lambda spec: [spec.shape],
}
"""Inputs that become constants of the graph: an integer, and a list with one shape."""

"""Capture without weights: parameters that have a shape and statistics, but no elements.

A module built under `without_weights()` has its parameters on the meta device and its buffers as
they are. Each parameter remembers what its initialiser would have drawn. For the time of a capture
they stand as fake CPU tensors, since a graph traced on meta would hold `device="meta"`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from ....inputs import default_statistics
from ....sample import Statistics
from ....sample.vocabulary import Role
from ...moments import round_significant
from ..statistics import measure

_INITIAL = "_graphnet_initial_statistics"
"""The attribute under which a parameter without elements keeps its initialiser's statistics."""

_SPREAD_OF_CONSTANTS = 0.02
"""Standard deviation, relative to the constant, of a parameter that is initialised to a constant.
Trained norm scales and biases are not constant, and a compiler must not get away with dropping
them. The value is that of the usual initialiser of transformers."""

_MAX_MEASURED_ELEMENTS = 2**20

_TOO_MANY_ELEMENTS = 2**28
"""An empty tensor of so many elements can only be a weight (the experts of a layer, in one): it
goes to meta at once, since not every system lends that much memory, be it never touched."""


@contextlib.contextmanager
def without_weights() -> Iterator[None]:
    """Build modules whose parameters take no memory; buffers keep their values.

    `torch.device("meta")` does the same to buffers too, whose values then are lost.

    >>> with without_weights():
    ...     layer = torch.nn.Linear(20_000, 20_000)
    >>> layer.weight.is_meta, initial_statistics(layer.weight).max
    (True, 0.007071)
    """
    recorder = _InitialiserRecorder()
    hook: Callable[..., Any] = recorder.on_registration  # torch's stub forgets the result
    handle = register_module_parameter_registration_hook(hook)
    try:
        with recorder, _truncated_normals_recorded():
            yield
    finally:
        handle.remove()


def initial_statistics(parameter: torch.Tensor) -> Statistics | None:
    """Return what the initialiser of `parameter` would have drawn, or None if nothing is known."""
    return getattr(parameter, _INITIAL, None)


def weight_statistics(
    weight: torch.Tensor, role: Role, source_name: str, shape: tuple[int, ...], dtype: str
) -> Statistics:
    """Return the statistics of a weight without elements: its initialiser's, or its role's."""
    initial = initial_statistics(weight)
    return default_statistics(role, source_name, shape, dtype) if initial is None else initial


def has_weights(module: torch.nn.Module) -> bool:
    """Tell whether every parameter and buffer of `module` has elements."""
    tensors = [*module.parameters(), *module.buffers()]
    return not any(tensor.is_meta or isinstance(tensor, FakeTensor) for tensor in tensors)


@dataclasses.dataclass(frozen=True)
class FakeWeights:
    """The fake tensors that stand for a module's weights, and the tensors they stand for."""

    mode: FakeTensorMode
    originals: Mapping[int, torch.Tensor]
    """From `id(fake)` to the parameter or buffer."""


@contextlib.contextmanager
def fake_weights(module: torch.nn.Module) -> Iterator[FakeWeights]:
    """Replace every parameter and buffer of `module` by a fake CPU tensor; put them back after.

    A weight that is held in two places is one fake tensor in both, or the graph of a model with
    tied weights would have a weight too many.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
    fakes: dict[int, torch.Tensor] = {}
    originals: dict[int, torch.Tensor] = {}
    places: list[tuple[dict[str, Any], str, torch.Tensor]] = []
    for each in module.modules():
        for tensors in (each._parameters, each._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    places.append((tensors, name, tensor))
    try:
        for tensors, name, tensor in places:
            if id(tensor) not in fakes:
                fake = _fake(tensor, mode)
                fakes[id(tensor)], originals[id(fake)] = fake, tensor
            tensors[name] = fakes[id(tensor)]
        yield FakeWeights(mode, originals)
    finally:
        for tensors, name, tensor in places:
            tensors[name] = tensor


def _fake(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    device = "cpu" if tensor.is_meta else tensor.device
    with mode:
        fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(fake, requires_grad=tensor.requires_grad)
    return fake


class _InitialiserRecorder(TorchFunctionMode):
    """Follows the calls that initialise parameters, without the elements being drawn."""

    def __init__(self) -> None:
        super().__init__()
        self._uninitialised: set[int] = set()
        """Data pointers of tensors from `torch.empty`, whose elements mean nothing."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name == "empty" and _num_elements(args) >= _TOO_MANY_ELEMENTS:
            kwargs = {**(kwargs or {}), "device": "meta"}
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            if name in ("empty", "empty_like", "empty_strided", "new_empty"):
                if not result.is_meta:
                    self._uninitialised.add(result.data_ptr())
            elif name in _CREATIONS and not result.is_meta:
                self._uninitialised.discard(result.data_ptr())
        if name in _INITIALISERS:
            given = dict(kwargs or {})
            target = args[0] if args else given.pop("tensor", None)
            if isinstance(target, torch.nn.Parameter):
                _INITIALISERS[name](target, *args[1:], **given)
        return result

    def on_registration(
        self, module: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None
    ) -> torch.nn.Parameter | None:
        """Put a parameter on the meta device when a module takes it."""
        del module, name
        if parameter is None or parameter.is_meta:
            return None
        light = torch.nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)
        if parameter.data_ptr() not in self._uninitialised:
            # Drawn before the module took it (`Parameter(torch.randn(…) * 0.02)`).
            start = parameter.detach().reshape(-1)[:_MAX_MEASURED_ELEMENTS]
            measured = measure(start)
            if measured is not None:
                _set(light, dataclasses.replace(measured, is_measured=False))
        return light


def _num_elements(sizes: tuple[Any, ...]) -> int:
    """Return how many elements `torch.empty` is asked for; 0 where no number says."""
    if len(sizes) == 1 and isinstance(sizes[0], list | tuple):
        sizes = tuple(sizes[0])
    return math.prod(sizes) if sizes and all(isinstance(size, int) for size in sizes) else 0


_CREATIONS = frozenset(
    {"zeros", "ones", "full", "rand", "randn", "tensor", "mul", "add", "sub", "div", "neg", "clone",
     "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "arange", "linspace",
     "log", "exp", "sqrt", "repeat", "cat", "stack", "eye", "randint", "randperm", "to", "float"}
)  # fmt: skip
"""Functions whose result may lie where an uninitialised tensor lay before it was freed."""


def _set(parameter: torch.Tensor, statistics: Statistics) -> None:
    if statistics.std == 0.0 and parameter.is_floating_point():
        constant = statistics.mean or 0.0
        spread = _SPREAD_OF_CONSTANTS * (abs(constant) or 1.0)
        statistics = Statistics(constant, round_significant(spread), is_measured=False)
    setattr(parameter, _INITIAL, statistics)


def _figures(
    mean: float, std: float, low: float | None = None, high: float | None = None
) -> Statistics:
    bounds = (None if bound is None else round_significant(bound) for bound in (low, high))
    return Statistics(round_significant(mean), round_significant(std), *bounds, is_measured=False)


def _on_normal(
    tensor: torch.Tensor, mean: float = 0.0, std: float = 1.0, *_: Any, **__: Any
) -> None:
    _set(tensor, _figures(float(mean), float(std)))


def _on_uniform(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    low = float(kwargs.get("from", kwargs.get("a", args[0] if args else 0.0)))
    high = float(kwargs.get("to", kwargs.get("b", args[1] if len(args) > 1 else 1.0)))
    _set(tensor, _figures((low + high) / 2, (high - low) / math.sqrt(12), low, high))


def _kaiming_std(
    tensor: torch.Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    **_: Any,
) -> float:
    kernel = math.prod(tensor.shape[2:])
    fan = (tensor.shape[1] if mode == "fan_in" else tensor.shape[0]) * kernel
    gain = torch.nn.init.calculate_gain(nonlinearity, a)  # pyright: ignore[reportArgumentType]
    return gain / math.sqrt(max(1, fan))


def _on_kaiming_uniform(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    bound = math.sqrt(3) * _kaiming_std(tensor, *args, **kwargs)
    _on_uniform(tensor, -bound, bound)


def _on_kaiming_normal(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    _on_normal(tensor, 0.0, _kaiming_std(tensor, *args, **kwargs))


def _on_fill(tensor: torch.Tensor, value: Any = 0.0, *_: Any, **kwargs: Any) -> None:
    value = kwargs.get("val", kwargs.get("value", value))
    if isinstance(value, torch.Tensor):
        value = value.item() if value.numel() == 1 and not value.is_meta else 0.0
    _set(tensor, Statistics(float(value), 0.0, is_measured=False))


def _on_zero(tensor: torch.Tensor, *_: Any, **__: Any) -> None:
    _on_fill(tensor, 0.0)


def _on_copy(tensor: torch.Tensor, source: Any, *_: Any, **__: Any) -> None:
    if isinstance(source, torch.Tensor):
        measured = initial_statistics(source) if source.is_meta else measure(source)
        if measured is not None:
            _set(tensor, dataclasses.replace(measured, is_measured=False))


_INITIALISERS: Mapping[str, Callable[..., None]] = {
    "normal_": _on_normal,
    "uniform_": _on_uniform,
    "fill_": _on_fill,
    "constant_": _on_fill,
    "kaiming_uniform_": _on_kaiming_uniform,
    "kaiming_normal_": _on_kaiming_normal,
    "zero_": _on_zero,
    "copy_": _on_copy,
}


@contextlib.contextmanager
def _truncated_normals_recorded() -> Iterator[None]:
    """Record `trunc_normal_`, which since torch 2.13 returns from a meta tensor before any call.

    The function is reached under many names, all of which end in this one.
    """
    original = getattr(torch.nn.init, "_no_grad_trunc_normal_", None)

    def recorded(
        tensor: torch.Tensor,
        mean: float,
        std: float,
        a: float,
        b: float,
        *rest: Any,
        **keys: Any,
    ) -> torch.Tensor:
        if tensor.is_meta:
            _set(tensor, _figures(mean, std, a, b))
            return tensor
        assert original is not None  # noqa: S101 - only installed where it exists
        return original(tensor, mean, std, a, b, *rest, **keys)

    if original is None:
        yield
        return
    torch.nn.init._no_grad_trunc_normal_ = recorded  # pyright: ignore
    try:
        yield
    finally:
        torch.nn.init._no_grad_trunc_normal_ = original  # pyright: ignore

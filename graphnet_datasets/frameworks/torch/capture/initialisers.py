"""Construction of modules without weight memory, recording the statistics of initialisers.

A module built under `without_weights()` has its parameters on the meta device and ordinary buffers.
Each parameter stores the statistics of its initialiser, either computed from the initialiser's
arguments or measured on a sample of elements.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from ....inputs import default_statistics
from ....sample import Statistics
from ....sample.vocabulary import Role
from ..statistics import measure
from .distributions import (
    INITIALISERS,
    figures,
    initial_statistics,
    kaiming_std,
    set_initial,
)

Draw = Callable[[torch.Tensor], Any]
"""Fills a tensor in place with random elements."""

_MAX_MEASURED_ELEMENTS = 2**20

_MAX_DRAWN_ELEMENTS = 2**18
"""Elements drawn per weight for a measurement; they give the standard deviation to about 0.1%."""

_TOO_MANY_ELEMENTS = 2**28
"""An empty tensor with this many elements can only be a weight, such as the stacked experts of a
layer. It is created on meta, because some systems cannot reserve that much memory."""


@contextlib.contextmanager
def without_weights(*, is_measured: bool = False) -> Iterator[None]:
    """Build modules whose parameters take no memory; buffers keep their values.

    `torch.device("meta")` also drops the values of buffers. With `is_measured`, initialisers run on
    temporary memory and the statistics are measured instead of computed from the arguments. Weights
    of more than 262,144 elements are measured on that many elements, in whole rows.

    >>> with without_weights():
    ...     layer = torch.nn.Linear(20_000, 20_000)
    >>> layer.weight.is_meta, initial_statistics(layer.weight).max
    (True, 0.007071)
    """
    recorder = (DrawingRecorder if is_measured else InitialiserRecorder)()
    hook: Callable[..., Any] = recorder.on_registration  # torch's stub omits the return value
    handle = register_module_parameter_registration_hook(hook)
    try:
        with recorder, _truncated_normals_recorded(recorder), _new_tensors_recorded(recorder):
            yield
    finally:
        handle.remove()


def weight_statistics(
    weight: torch.Tensor, role: Role, source_name: str, shape: tuple[int, ...], dtype: str
) -> Statistics:
    """Return the statistics of a weight's initialiser, or else the default of its role."""
    initial = initial_statistics(weight)
    return default_statistics(role, source_name, shape, dtype) if initial is None else initial


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A call that initialises or changes a weight: the function and its remaining arguments."""

    function: Callable[..., Any]
    args: Sequence[Any]
    options: Mapping[str, Any]

    def on(self, tensor: torch.Tensor) -> None:
        """Apply the call to a tensor in place of its weight."""
        self.function(tensor, *self.args, **self.options)


class InitialiserRecorder(TorchFunctionMode):
    """Records initialiser calls without drawing elements."""

    draws = False

    def __init__(self) -> None:
        super().__init__()
        self._uninitialised: set[int] = set()
        """Data pointers of tensors from `torch.empty`, whose elements are meaningless."""
        self._data: tuple[torch.Tensor, torch.nn.Parameter] | None = None
        """The last requested `data` of a weight, and the weight."""

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
        if name in INITIALISERS:
            keywords = dict(kwargs or {})
            target = self.weight_of(args[0] if args else keywords.pop("tensor", None))
            if target is not None:
                self.note(target, Call(func, args[1:], keywords))
        elif name in _CHANGES and args and (target := self.weight_of(args[0])) is not None:
            self.follow(target, Call(func, args[1:], kwargs or {}))
        elif func == _GET_DATA and isinstance(args[0], torch.nn.Parameter):
            self._data = result, args[0]
        return result

    def note_new(self, tensor: torch.Tensor, args: tuple[Any, ...]) -> None:
        """Record a tensor from `torch.Tensor(…)`, uninitialised if built from sizes."""
        is_sized = all(isinstance(arg, int | torch.Size) for arg in args)
        (self._uninitialised.add if is_sized else self._uninitialised.discard)(tensor.data_ptr())

    def weight_of(self, target: Any) -> torch.nn.Parameter | None:
        """Return the weight that a call writes to, directly or through `data`."""
        if isinstance(target, torch.nn.Parameter):
            return target
        return self._data[1] if self._data is not None and self._data[0] is target else None

    def note(self, target: torch.nn.Parameter, call: Call) -> None:
        """Store the statistics of an initialiser, computed from its arguments."""
        INITIALISERS[call.function.__name__](target, *call.args, **call.options)

    def follow(self, target: torch.nn.Parameter, call: Call) -> None:
        """Handle a change to initialised elements; the base class ignores it."""

    def note_truncated(
        self, target: torch.Tensor, bounds: tuple[float, float, float, float], draw: Draw
    ) -> None:
        """Store the statistics of a truncated normal distribution: mean, std, low and high."""
        del draw
        set_initial(target, figures(*bounds))

    def on_registration(
        self, module: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None
    ) -> torch.nn.Parameter | None:
        """Replace a parameter by a meta tensor when a module registers it."""
        del module, name
        if parameter is None or parameter.is_meta:
            return None
        light = torch.nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)
        if parameter.data_ptr() not in self._uninitialised:
            # Initialised before registration, e.g. `Parameter(torch.randn(…) * 0.02)`.
            start = parameter.detach().reshape(-1)[:_MAX_MEASURED_ELEMENTS]
            measured = measure(start)
            if measured is not None:
                set_initial(light, dataclasses.replace(measured, is_measured=self.draws))
        return light


class DrawingRecorder(InitialiserRecorder):
    """Draws the elements of initialisers, measures them and discards them."""

    draws = True

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[torch.Tensor, torch.Tensor] | None = None
        """The weight drawn last and its elements; later initialiser calls may modify them."""

    def note(self, target: torch.nn.Parameter, call: Call) -> None:
        """Run an initialiser and measure it; keep the computed statistics if it is constant."""
        super().note(target, call)
        name = call.function.__name__
        if name == "copy_":
            source = call.args[0] if call.args else call.options.get("src")
            if isinstance(source, torch.Tensor) and not source.is_meta:
                self.keep(target, source.detach().reshape(-1)[:_MAX_MEASURED_ELEMENTS].clone())
        elif name.startswith("kaiming_"):
            # The distribution depends on the full shape, of which only some rows are drawn.
            std = kaiming_std(target, *call.args, **call.options)
            drawn = _some_rows(target)
            if name == "kaiming_normal_":
                drawn.normal_(0.0, std)
            else:
                drawn.uniform_(-math.sqrt(3) * std, math.sqrt(3) * std)
            self.keep(target, drawn)
        elif name in ("normal_", "uniform_"):
            drawn = _some_rows(target)
            call.on(drawn)
            self.keep(target, drawn)

    def note_truncated(
        self, target: torch.Tensor, bounds: tuple[float, float, float, float], draw: Draw
    ) -> None:
        """Draw a truncated normal distribution and measure it."""
        super().note_truncated(target, bounds, draw)
        drawn = _some_rows(target)
        draw(drawn)
        self.keep(target, drawn)

    def follow(self, target: torch.nn.Parameter, call: Call) -> None:
        """Apply a change to the elements drawn last for the weight, and measure them again."""
        statistics = initial_statistics(target)
        drawn = self._last[1] if self._last is not None and self._last[0] is target else None
        has_tensors = any(
            isinstance(arg, torch.Tensor) for arg in (*call.args, *call.options.values())
        )
        if drawn is not None and not has_tensors:
            call.on(drawn)
            self.keep(target, drawn)
        elif statistics is not None:  # the effect of the change is unknown
            set_initial(target, dataclasses.replace(statistics, is_measured=False))

    def keep(self, target: torch.Tensor, drawn: torch.Tensor) -> None:
        """Store the statistics of drawn elements, unless the elements are all equal."""
        self._last = None
        measured = measure(drawn)
        if measured is not None and measured.std:
            set_initial(target, measured)
            self._last = target, drawn


def _some_rows(target: torch.Tensor) -> torch.Tensor:
    """Return an empty CPU tensor for the rows of a weight that are drawn."""
    rows = max(1, _MAX_DRAWN_ELEMENTS // max(1, math.prod(target.shape[1:])))
    shape = (min(rows, target.shape[0]), *target.shape[1:]) if target.dim() else ()
    return torch.empty(shape, dtype=target.dtype, device="cpu")


def _num_elements(sizes: tuple[Any, ...]) -> int:
    """Return the number of elements requested from `torch.empty`, or 0 if unknown."""
    if len(sizes) == 1 and isinstance(sizes[0], list | tuple):
        sizes = tuple(sizes[0])
    return math.prod(sizes) if sizes and all(isinstance(size, int) for size in sizes) else 0


_CREATIONS = frozenset(
    {"zeros", "ones", "full", "rand", "randn", "tensor", "mul", "add", "sub", "div", "neg", "clone",
     "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "arange", "linspace",
     "log", "exp", "sqrt", "repeat", "cat", "stack", "eye", "randint", "randperm", "to", "float"}
)  # fmt: skip
"""Functions whose result may reuse the memory of a freed uninitialised tensor."""


_GET_DATA = torch.Tensor.data.__get__  # pyright: ignore[reportAttributeAccessIssue]

_CHANGES = frozenset(
    {"mul_", "div_", "add_", "sub_", "neg_", "abs_", "erfinv_", "clamp_", "clamp_min_",
     "clamp_max_", "exp_", "log_", "sqrt_", "pow_", "__imul__", "__iadd__", "__isub__",
     "__itruediv__"}
)  # fmt: skip
"""Elementwise methods that initialisers apply to drawn elements."""


@contextlib.contextmanager
def _truncated_normals_recorded(recorder: InitialiserRecorder) -> Iterator[None]:
    """Record calls of `trunc_normal_`, which since torch 2.13 returns early for meta tensors.

    The function has many aliases, all of which call the patched function.
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
        assert original is not None  # noqa: S101 - only installed where it exists
        if tensor.is_meta:
            with torch._C.DisableTorchFunction():
                draw = functools.partial(original, mean=mean, std=std, a=a, b=b)
                recorder.note_truncated(tensor, (mean, std, a, b), draw)
            return tensor
        return original(tensor, mean, std, a, b, *rest, **keys)

    if original is None:
        yield
        return
    torch.nn.init._no_grad_trunc_normal_ = recorded  # pyright: ignore
    try:
        yield
    finally:
        torch.nn.init._no_grad_trunc_normal_ = original  # pyright: ignore


@contextlib.contextmanager
def _new_tensors_recorded(recorder: InitialiserRecorder) -> Iterator[None]:
    """Record calls of `torch.Tensor(…)`, which bypass torch function modes."""
    make, before = torch._C.TensorBase.__new__, vars(torch.Tensor).get("__new__")

    def new(cls: type[torch.Tensor], *args: Any, **keys: Any) -> torch.Tensor:
        tensor = make(cls, *args, **keys)
        if cls is torch.Tensor:
            recorder.note_new(tensor, args)
        return tensor

    torch.Tensor.__new__ = staticmethod(new)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        if before is None:
            del torch.Tensor.__new__
        else:
            torch.Tensor.__new__ = before  # pyright: ignore[reportAttributeAccessIssue]

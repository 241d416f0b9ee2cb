"""What the initialisers of a module's parameters draw, of parameters that take no memory.

A module built under `without_weights()` has its parameters on the meta device and its buffers as
they are. Each parameter remembers what its initialiser would have drawn, or drew to be measured.
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
"""Fills a tensor with what an initialiser draws."""

_MAX_MEASURED_ELEMENTS = 2**20

_MAX_DRAWN_ELEMENTS = 2**18
"""Of a weight that is drawn to be measured: the standard deviation is right to a thousandth."""

_TOO_MANY_ELEMENTS = 2**28
"""An empty tensor of so many elements can only be a weight (the experts of a layer, in one): it
goes to meta at once, since not every system lends that much memory, be it never touched."""


@contextlib.contextmanager
def without_weights(*, is_measured: bool = False) -> Iterator[None]:
    """Build modules whose parameters take no memory; buffers keep their values.

    `torch.device("meta")` does the same to buffers too, whose values then are lost. With
    `is_measured` each initialiser runs, on memory of its own that is freed once the elements are
    measured: their statistics take the place of those that the initialiser's arguments tell. Of
    weights of more than 262,144 elements so many, in whole rows, are drawn.

    >>> with without_weights():
    ...     layer = torch.nn.Linear(20_000, 20_000)
    >>> layer.weight.is_meta, initial_statistics(layer.weight).max
    (True, 0.007071)
    """
    recorder = (DrawingRecorder if is_measured else InitialiserRecorder)()
    hook: Callable[..., Any] = recorder.on_registration  # torch's stub forgets the result
    handle = register_module_parameter_registration_hook(hook)
    try:
        with recorder, _truncated_normals_recorded(recorder), _new_tensors_recorded(recorder):
            yield
    finally:
        handle.remove()


def weight_statistics(
    weight: torch.Tensor, role: Role, source_name: str, shape: tuple[int, ...], dtype: str
) -> Statistics:
    """Return the statistics of a weight without elements: its initialiser's, or its role's."""
    initial = initial_statistics(weight)
    return default_statistics(role, source_name, shape, dtype) if initial is None else initial


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A call that initialises or changes a weight: the function and what follows the weight."""

    function: Callable[..., Any]
    args: Sequence[Any]
    options: Mapping[str, Any]

    def on(self, tensor: torch.Tensor) -> None:
        """Do to a tensor what the call does to its weight."""
        self.function(tensor, *self.args, **self.options)


class InitialiserRecorder(TorchFunctionMode):
    """Follows the calls that initialise parameters, without the elements being drawn."""

    draws = False

    def __init__(self) -> None:
        super().__init__()
        self._uninitialised: set[int] = set()
        """Data pointers of tensors as from `torch.empty`, whose elements mean nothing."""
        self._data: tuple[torch.Tensor, torch.nn.Parameter] | None = None
        """The `data` of a weight that was asked for last, and the weight."""

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
            given = dict(kwargs or {})
            target = self.weight_of(args[0] if args else given.pop("tensor", None))
            if target is not None:
                self.note(target, Call(func, args[1:], given))
        elif name in _CHANGES and args and (target := self.weight_of(args[0])) is not None:
            self.follow(target, Call(func, args[1:], kwargs or {}))
        elif func == _GET_DATA and isinstance(args[0], torch.nn.Parameter):
            self._data = result, args[0]
        return result

    def note_new(self, made: torch.Tensor, args: tuple[Any, ...]) -> None:
        """Note what `torch.Tensor(…)` gave: memory as it is, if it was given sizes or nothing."""
        is_sized = all(isinstance(each, int | torch.Size) for each in args)
        (self._uninitialised.add if is_sized else self._uninitialised.discard)(made.data_ptr())

    def weight_of(self, target: Any) -> torch.nn.Parameter | None:
        """Return the weight that a call writes to, by itself or by its `data`."""
        if isinstance(target, torch.nn.Parameter):
            return target
        return self._data[1] if self._data is not None and self._data[0] is target else None

    def note(self, target: torch.nn.Parameter, call: Call) -> None:
        """Note what an initialiser draws, as its arguments tell it."""
        INITIALISERS[call.function.__name__](target, *call.args, **call.options)

    def follow(self, target: torch.nn.Parameter, call: Call) -> None:
        """Take notice of a change of what an initialiser drew; here nothing was drawn."""

    def note_truncated(
        self, target: torch.Tensor, bounds: tuple[float, float, float, float], draw: Draw
    ) -> None:
        """Note a truncated normal distribution: mean, standard deviation, and the bounds."""
        del draw
        set_initial(target, figures(*bounds))

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
                set_initial(light, dataclasses.replace(measured, is_measured=self.draws))
        return light


class DrawingRecorder(InitialiserRecorder):
    """Draws what an initialiser draws, measures it and lets go of it."""

    draws = True

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[torch.Tensor, torch.Tensor] | None = None
        """The weight that was drawn last, and its elements: initialisers may go on with them."""

    def note(self, target: torch.nn.Parameter, call: Call) -> None:
        """Run an initialiser for real; where that gives a constant, note it as ever."""
        super().note(target, call)
        name = call.function.__name__
        if name == "copy_":
            source = call.args[0] if call.args else call.options.get("src")
            if isinstance(source, torch.Tensor) and not source.is_meta:
                self.keep(target, source.detach().reshape(-1)[:_MAX_MEASURED_ELEMENTS].clone())
        elif name.startswith("kaiming_"):
            # How wide it draws follows from the whole shape, of which some rows are drawn.
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
        """Draw a truncated normal distribution."""
        super().note_truncated(target, bounds, draw)
        drawn = _some_rows(target)
        draw(drawn)
        self.keep(target, drawn)

    def follow(self, target: torch.nn.Parameter, call: Call) -> None:
        """Change what was drawn last for a weight, and measure it again."""
        known = initial_statistics(target)
        drawn = self._last[1] if self._last is not None and self._last[0] is target else None
        has_tensors = any(
            isinstance(each, torch.Tensor) for each in (*call.args, *call.options.values())
        )
        if drawn is not None and not has_tensors:
            call.on(drawn)
            self.keep(target, drawn)
        elif known is not None:  # what becomes of it nobody sees
            set_initial(target, dataclasses.replace(known, is_measured=False))

    def keep(self, target: torch.Tensor, drawn: torch.Tensor) -> None:
        """Keep the statistics of drawn elements, unless all of them are the same."""
        self._last = None
        measured = measure(drawn)
        if measured is not None and measured.std:
            set_initial(target, measured)
            self._last = target, drawn


def _some_rows(target: torch.Tensor) -> torch.Tensor:
    """Return memory for a weight without elements, or for as many of its rows as are drawn."""
    rows = max(1, _MAX_DRAWN_ELEMENTS // max(1, math.prod(target.shape[1:])))
    shape = (min(rows, target.shape[0]), *target.shape[1:]) if target.dim() else ()
    return torch.empty(shape, dtype=target.dtype, device="cpu")


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


_GET_DATA = torch.Tensor.data.__get__  # pyright: ignore[reportAttributeAccessIssue]

_CHANGES = frozenset(
    {"mul_", "div_", "add_", "sub_", "neg_", "abs_", "erfinv_", "clamp_", "clamp_min_",
     "clamp_max_", "exp_", "log_", "sqrt_", "pow_", "__imul__", "__iadd__", "__isub__",
     "__itruediv__"}
)  # fmt: skip
"""Methods by which initialisers go on with what they drew, element by element."""


@contextlib.contextmanager
def _truncated_normals_recorded(recorder: InitialiserRecorder) -> Iterator[None]:
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
    """Tell the recorder what `torch.Tensor(…)` makes, a class that no mode sees called."""
    make, before = torch._C.TensorBase.__new__, vars(torch.Tensor).get("__new__")

    def new(cls: type[torch.Tensor], *args: Any, **keys: Any) -> torch.Tensor:
        made = make(cls, *args, **keys)
        if cls is torch.Tensor:
            recorder.note_new(made, args)
        return made

    torch.Tensor.__new__ = staticmethod(new)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        if before is None:
            del torch.Tensor.__new__
        else:
            torch.Tensor.__new__ = before  # pyright: ignore[reportAttributeAccessIssue]

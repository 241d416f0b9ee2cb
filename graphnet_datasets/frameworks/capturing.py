"""What wraps a live model so that its first call is captured; each framework gives its own base.

A wrapper stands for the model it wraps in every other way: its attributes, its state, its mode.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from ..errors import CaptureError
from ..sample import Sample

OnSamples = Callable[[list[Sample]], None]

Capture = Callable[
    [Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], tuple[Any, list[Sample]]
]
"""Takes a module, what calls it, and the arguments; returns the outputs and the samples."""


@dataclasses.dataclass(frozen=True)
class FirstCall:
    """How the first call of a module is captured, and who is told of its samples."""

    capture: Capture
    on_samples: OnSamples | None = None

    def __call__(
        self, module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, list[Sample]]:
        """Call the module, capture what it runs, and return its outputs with the samples."""
        return self.capture(module, call, args, kwargs)

    def tell(self, samples: list[Sample]) -> None:
        """Tell of the samples, once they stand where the module's user finds them."""
        if self.on_samples is not None:
            self.on_samples(samples)


class CapturingWrapper:
    """Captures the first call of the module in it; mixed into a framework's class of modules.

    `samples` holds the samples of the first call, and is empty before it.
    """

    inner: ClassVar[str] = "module"
    """The attribute that holds the wrapped module."""
    samples: list[Sample]
    training: bool

    def __init__(self, module: Any, first_call: FirstCall) -> None:
        super().__init__()
        setattr(self, self.inner, module)
        self.training = module.training
        self.samples = []
        self._first_call = first_call

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped module; the first time, capture what it runs."""
        module = getattr(self, self.inner)
        if self.samples:
            return module(*args, **kwargs)
        outputs, self.samples = self._first_call(module, module.__call__, args, kwargs)
        self._first_call.tell(self.samples)
        return outputs

    def __getattr__(self, name: str) -> Any:
        of_base: Any = super()
        try:
            return of_base.__getattr__(name)
        except AttributeError:
            return getattr(of_base.__getattr__(self.inner), name)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the wrapped module's state under the wrapped module's names."""
        return getattr(self, self.inner).state_dict(*args, **kwargs)


def capturing_class(base: type[Any], first_call: FirstCall) -> type[Any]:
    """Return a subclass of `base` whose instances capture their first call."""

    class Capturing(base):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.samples: list[Sample] = []
            self._is_capturing = False

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            plain_call = super().__call__
            if self.samples or self._is_capturing:
                return plain_call(*args, **kwargs)
            self._is_capturing = True
            try:
                outputs, self.samples = first_call(self, plain_call, args, kwargs)
            finally:
                self._is_capturing = False
            first_call.tell(self.samples)
            return outputs

    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(Capturing, attribute, getattr(base, attribute))
    return Capturing


def make_decorator(
    base: type[Any], wrapper: type[CapturingWrapper], first_call: FirstCall
) -> Callable[[Any], Any]:
    """Return what takes a module, or a class of them, and gives one that captures its first call.

    Raises:
        CaptureError: (the decorator) it is given something else.
    """

    def decorate(target: Any) -> Any:
        if isinstance(target, type) and issubclass(target, base):
            return capturing_class(target, first_call)
        if isinstance(target, base):
            return wrapper(target, first_call)
        name = f"{base.__module__.partition('.')[0]}.nn.{base.__name__}"
        noun = base.__name__.lower()
        raise CaptureError(
            f"`extract` takes a `{name}` or a class of {noun}s, not a "
            f"`{type(target).__name__}`. Put a function into the `forward` of a {noun}."
        )

    return decorate

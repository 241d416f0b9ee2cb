"""`extract`: wrap a module, or decorate its class, and get a sample of each graph it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from ...errors import CaptureError
from ...sample import Provenance, Sample
from ...sample.vocabulary import Task
from .capture.dynamo import CaptureSettings, capture

OnSamples = Callable[[list[Sample]], None]


def extract(
    *,
    name: str,
    task: Task = "other",
    dynamic: bool = False,
    warm_up: bool = True,
    provenance: Provenance = Provenance(),  # noqa: B008 - frozen
    on_samples: OnSamples | None = None,
) -> Callable[[Any], Any]:
    """Return a decorator for modules and module classes; see `graphnet_datasets.extract`.

    `on_samples` is called with the samples as soon as the first call has been captured.
    """
    settings = CaptureSettings(name, task, dynamic, warm_up, provenance)

    def decorate(target: Any) -> Any:
        if isinstance(target, type) and issubclass(target, torch.nn.Module):
            return _capturing_class(target, settings, on_samples)
        if isinstance(target, torch.nn.Module):
            return CapturingModule(target, settings, on_samples)
        raise CaptureError(
            f"`extract` takes a `torch.nn.Module` or a class of modules, not a "
            f"`{type(target).__name__}`. Put a function into the `forward` of a module."
        )

    return decorate


class CapturingModule(torch.nn.Module):
    """A module that captures its first call and is the module it wraps in every other way.

    `samples` holds the samples of the first call, and is empty before it.
    """

    def __init__(
        self, module: torch.nn.Module, settings: CaptureSettings, on_samples: OnSamples | None
    ) -> None:
        super().__init__()
        self.module = module
        self.training = module.training
        self.samples: list[Sample] = []
        self._settings = settings
        self._on_samples = on_samples

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped module; the first time, capture what it runs."""
        if self.samples:
            return self.module(*args, **kwargs)
        outputs, self.samples = _capture_module(
            self.module, self.module.__call__, args, kwargs, self._settings
        )
        if self._on_samples is not None:
            self._on_samples(self.samples)
        return outputs

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the wrapped module's state under the wrapped module's names."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state of the wrapped module."""
        return self.module.load_state_dict(*args, **kwargs)


def _capturing_class(
    base: type[torch.nn.Module], settings: CaptureSettings, on_samples: OnSamples | None
) -> type[torch.nn.Module]:
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
                outputs, self.samples = _capture_module(self, plain_call, args, kwargs, settings)
            finally:
                self._is_capturing = False
            if on_samples is not None:
                on_samples(self.samples)
            return outputs

    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(Capturing, attribute, getattr(base, attribute))
    return Capturing


def _capture_module(
    module: torch.nn.Module,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    settings: CaptureSettings,
) -> tuple[Any, list[Sample]]:
    return capture(
        module,
        call,
        args,
        kwargs,
        dataclasses.replace(
            settings, provenance=describe_module(settings.provenance, module, "dynamo")
        ),
    )


def describe_module(provenance: Provenance, module: torch.nn.Module, way: str) -> Provenance:
    """Fill in what the module itself says: its class, its mode and the version of torch."""
    return dataclasses.replace(
        provenance,
        model_name=provenance.model_name or type(module).__name__,
        capture=way,
        framework_version=torch.__version__.partition("+")[0],
        mode="train" if module.training else "eval",
    )

"""`extract`: wrap a module, or decorate its class, and get a sample of each graph it runs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import torch

from ...sample import Provenance, Sample
from ...sample.vocabulary import Task
from ..capturing import CapturingWrapper, FirstCall, OnSamples, make_decorator
from .building.deferred import settle
from .capture.dynamo import CaptureSettings, capture


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
    first_call = FirstCall(functools.partial(capture_module, settings), on_samples)
    return make_decorator(torch.nn.Module, CapturingModule, first_call)


class CapturingModule(CapturingWrapper, torch.nn.Module):
    """A module that captures its first call and is the module it wraps in every other way.

    `samples` holds the samples of the first call, and is empty before it.
    """

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state of the wrapped module."""
        return self.module.load_state_dict(*args, **kwargs)


def capture_module(
    settings: CaptureSettings,
    module: torch.nn.Module,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, list[Sample]]:
    """Capture a call of a module, which may hold materialized ones; see `capture`."""
    for each in module.modules():  # or dynamo would look into how their making is put off
        settle(each)
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

"""`extract`: a wrapper or decorator that captures a sample of each graph a module runs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.eval_frame import OptimizedModule
from torch._subclasses import FakeTensor

from ...sample import Provenance, Sample
from ...sample.vocabulary import Task
from ..capturing import FirstCall, Record, capture_lock, make_decorator
from .building.deferred import settle
from .capture.dynamo import CaptureSettings, capture


def extract(
    *,
    name: str,
    task: Task = "other",
    dynamic: bool = False,
    warm_up: bool = True,
    provenance: Provenance = Provenance(),  # noqa: B008 - frozen
    record: Record | None = None,
) -> Callable[[Any], Any]:
    """Return a decorator for modules and module classes; see `graphnet_datasets.extract`.

    `record` receives the samples of every module.
    """
    settings = CaptureSettings(name, task, dynamic, warm_up, provenance)
    first_call = FirstCall(functools.partial(capture_module, settings), record, is_traced)
    return make_decorator(torch.nn.Module, first_call)


def is_traced(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a call is part of a trace or transform of torch, such as `torch.compile`.

    >>> is_traced((torch.ones(2),), {})
    False
    """
    if torch.compiler.is_dynamo_compiling() or torch.jit.is_tracing():  # pyright: ignore
        return True
    if any(map(_is_of_trace, (*args, *kwargs.values()))):
        return True
    if not torch.compiler.is_compiling():
        return False
    with capture_lock:  # the flag is global: it may belong to a capture of another thread
        return torch.compiler.is_compiling()


def _is_of_trace(argument: Any) -> bool:
    """Return whether only a trace or transform passes such an argument."""
    if isinstance(argument, torch.fx.Proxy | FakeTensor):
        return True
    is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor  # pyright: ignore
    return isinstance(argument, torch.Tensor) and is_wrapped(argument)


class FunctionModule(torch.nn.Module):
    """A module whose `forward` calls a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)


def capture_module(
    settings: CaptureSettings,
    module: torch.nn.Module,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, list[Sample]]:
    """Capture a call of a module, which may contain materialized modules; see `capture`.

    For a module returned by `torch.compile`, the original module is called and captured.
    """
    if isinstance(module, OptimizedModule):
        module = module._orig_mod
        call = module.__call__
    for submodule in module.modules():  # dynamo must not trace the deferred graph creation
        settle(submodule)
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
    """Add the module's class, its mode and the torch version to a provenance."""
    return dataclasses.replace(
        provenance,
        model_name=provenance.model_name or type(module).__name__,
        capture=way,
        framework_version=torch.__version__.partition("+")[0],
        mode="train" if module.training else "eval",
    )

"""The Paddle implementation of `extract`: capture the first call of a layer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import paddle

from ...sample import Provenance, Sample
from ...sample.vocabulary import Task
from ..capturing import FirstCall, Record, make_decorator
from .capture import CaptureSettings, capture


def extract(
    *,
    name: str,
    task: Task = "other",
    dynamic: bool = False,
    warm_up: bool = True,  # noqa: ARG001 - layers need no warm-up
    provenance: Provenance = Provenance(),  # noqa: B008 - frozen
    record: Record | None = None,
) -> Callable[[Any], Any]:
    """Return a decorator for layers and layer classes; see `graphnet_datasets.extract`.

    The whole call must fit one program, since Paddle's tracer does not split it into pieces. With
    `dynamic=True` the first dimension of each data input (the batch) is unknown to the tracer and
    becomes one symbol. `record` receives the samples of every layer.

    >>> layer = extract(name="example/linear")(paddle.nn.Linear(3, 2))
    >>> outputs = layer(paddle.ones([4, 3]))
    >>> [op.target for op in layer.samples[0].ops]
    ['paddle._C_ops.matmul', 'paddle._C_ops.add']
    """
    settings = CaptureSettings(name, task, provenance, dynamic)
    first_call = FirstCall(functools.partial(_capture_layer, settings), record)
    return make_decorator(paddle.nn.Layer, first_call)


class FunctionModule(paddle.nn.Layer):
    """A layer whose `forward` calls a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)


def _capture_layer(
    settings: CaptureSettings,
    layer: paddle.nn.Layer,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, list[Sample]]:
    outputs, sample = capture(layer, call, args, kwargs, settings)
    return outputs, [sample]

"""`extract` for paddle: wrap a layer, or decorate its class, and get a sample of its first call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import paddle

from ...sample import Provenance, Sample
from ...sample.vocabulary import Task
from ..capturing import CapturingWrapper, FirstCall, OnSamples, make_decorator
from .capture import CaptureSettings, capture


def extract(
    *,
    name: str,
    task: Task = "other",
    dynamic: bool = False,
    warm_up: bool = True,  # noqa: ARG001 - nothing of a layer is built by its first call
    provenance: Provenance = Provenance(),  # noqa: B008 - frozen
    on_samples: OnSamples | None = None,
) -> Callable[[Any], Any]:
    """Return a decorator for layers and layer classes; see `graphnet_datasets.extract`.

    The whole call has to fit one program: paddle's own tracer gives no pieces. With `dynamic=True`
    the first dimension of each data input, the batch, is unknown to the tracer and becomes one
    symbol. `on_samples` is called with the samples as soon as the first call has been captured.

    >>> layer = extract(name="example/linear")(paddle.nn.Linear(3, 2))
    >>> outputs = layer(paddle.ones([4, 3]))
    >>> [op.target for op in layer.samples[0].ops]
    ['paddle._C_ops.matmul', 'paddle._C_ops.add']
    """
    settings = CaptureSettings(name, task, provenance, dynamic)
    first_call = FirstCall(functools.partial(_capture_layer, settings), on_samples)
    return make_decorator(paddle.nn.Layer, CapturingLayer, first_call)


class CapturingLayer(CapturingWrapper, paddle.nn.Layer):
    """A layer that captures its first call and is the layer it wraps in every other way.

    `samples` holds the sample of the first call, and is empty before it.
    """

    inner = "layer"

    def set_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state of the wrapped layer."""
        return self.layer.set_state_dict(*args, **kwargs)


def _capture_layer(
    settings: CaptureSettings,
    layer: paddle.nn.Layer,
    call: Callable[..., Any],  # noqa: ARG001 - paddle's tracer calls `forward` itself
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, list[Sample]]:
    outputs, sample = capture(layer, args, kwargs, settings)
    return outputs, [sample]

"""`extract` for paddle: wrap a layer, or decorate its class, and get a sample of its first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle

from ...errors import CaptureError
from ...sample import Provenance, Sample
from ...sample.vocabulary import Task
from .capture import CaptureSettings, capture

OnSamples = Callable[[list[Sample]], None]


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

    def decorate(target: Any) -> Any:
        if isinstance(target, type) and issubclass(target, paddle.nn.Layer):
            return _capturing_class(target, settings, on_samples)
        if isinstance(target, paddle.nn.Layer):
            return CapturingLayer(target, settings, on_samples)
        raise CaptureError(
            f"`extract` takes a `paddle.nn.Layer` or a class of layers, not a "
            f"`{type(target).__name__}`. Put a function into the `forward` of a layer."
        )

    return decorate


class CapturingLayer(paddle.nn.Layer):
    """A layer that captures its first call and is the layer it wraps in every other way.

    `samples` holds the sample of the first call, and is empty before it.
    """

    def __init__(
        self, layer: paddle.nn.Layer, settings: CaptureSettings, on_samples: OnSamples | None
    ) -> None:
        super().__init__()
        self.layer = layer
        self.training = layer.training
        self.samples: list[Sample] = []
        self._settings = settings
        self._on_samples = on_samples

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped layer; the first time, capture what it runs."""
        if self.samples:
            return self.layer(*args, **kwargs)
        outputs, sample = capture(self.layer, args, kwargs, self._settings)
        self.samples = [sample]
        if self._on_samples is not None:
            self._on_samples(self.samples)
        return outputs

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("layer"), name)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the wrapped layer's state under the wrapped layer's names."""
        return self.layer.state_dict(*args, **kwargs)

    def set_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state of the wrapped layer."""
        return self.layer.set_state_dict(*args, **kwargs)


def _capturing_class(
    base: type[paddle.nn.Layer], settings: CaptureSettings, on_samples: OnSamples | None
) -> type[paddle.nn.Layer]:
    """Return a subclass of `base` whose instances capture their first call."""

    class Capturing(base):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.samples: list[Sample] = []
            self._is_capturing = False

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if self.samples or self._is_capturing:
                return super().__call__(*args, **kwargs)
            self._is_capturing = True
            try:
                outputs, sample = capture(self, args, kwargs, settings)
            finally:
                self._is_capturing = False
            self.samples = [sample]
            if on_samples is not None:
                on_samples(self.samples)
            return outputs

    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(Capturing, attribute, getattr(base, attribute))
    return Capturing

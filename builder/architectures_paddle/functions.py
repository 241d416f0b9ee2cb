"""Layers around functions and parts of models of other packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import paddle
from paddle import Tensor, nn


class Function(nn.Layer):
    """A call of a function with constant options, and the last `names` tensors by keyword.

    With `is_narrow`, integers are converted to 32 bits, which some operators require.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        is_narrow: bool = False,
        names: Sequence[str] = (),
        **options: Any,
    ) -> None:
        super().__init__()
        self.function, self.options = function, options
        self.is_narrow, self.names = is_narrow, list(names)

    def forward(self, *tensors: Tensor) -> Any:
        if self.is_narrow:
            tensors = tuple(
                tensor.astype("int32") if tensor.dtype == paddle.int64 else tensor
                for tensor in tensors
            )
        count = len(tensors) - len(self.names)
        named = dict(zip(self.names, tensors[count:]))  # noqa: B905
        return self.function(*tensors[:count], **named, **self.options)


class Listed(nn.Layer):
    """A layer that receives its tensors as one list, such as a neck on the maps of a backbone."""

    def __init__(self, layer: nn.Layer, **options: Any) -> None:
        super().__init__()
        self.layer, self.options = layer, options

    def forward(self, *tensors: Tensor) -> Any:
        return self.layer(list(tensors), **self.options)


class Keyed(nn.Layer):
    """A layer that receives its tensors as one dictionary; `key` selects one of its results."""

    def __init__(self, layer: nn.Layer, keys: Sequence[str], key: str = "") -> None:
        super().__init__()
        self.layer, self.keys, self.key = layer, list(keys), key

    def forward(self, *tensors: Tensor) -> Any:
        results = self.layer(dict(zip(self.keys, tensors)))  # noqa: B905
        return results[self.key] if self.key else results


class Detector(nn.Layer):
    """A backbone that receives a dictionary, followed by a neck and a head that receive its maps.

    `second` is the head's second argument: the "image", or the dictionary of "inputs".
    """

    def __init__(
        self,
        backbone: nn.Layer,
        neck: nn.Layer | None = None,
        head: nn.Layer | None = None,
        second: str = "",
    ) -> None:
        super().__init__()
        self.backbone, self.neck, self.head, self.second = backbone, neck, head, second

    def forward(self, image: Tensor) -> Any:
        inputs = {"image": image}
        maps = self.backbone(inputs)
        if self.neck is not None:
            maps = self.neck(maps)
        if self.head is None:
            return maps
        if self.second:
            return self.head(maps, image if self.second == "image" else inputs)
        return self.head(maps)


WRAPPERS: Mapping[str, Callable[..., nn.Layer]] = {
    "function": Function,
    "listed": Listed,
    "keyed": Keyed,
    "detector": Detector,
}
"""Layers around layers and functions that an entry names in its overrides."""

"""Calls captured in a CUDA graph, which removes kernel launch overhead.

A small model on a fast GPU is bound by the CPU that launches its kernels, so a compiler that fuses
kernels wins by launching fewer of them. With CUDA graphs, both arms need a single launch, and the
kernels themselves are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

NUM_WARM_UP_CALLS = 3
"""Calls on the side stream before the capture, as recommended by torch's documentation, because
libraries create handles and workspaces in their first calls."""


class CapturedCall:
    """A callable with its arguments in fixed buffers, replayed with one launch.

    `make_arguments` returns fresh arguments for each call during the capture, since a call may
    overwrite them. The first arguments become the buffers, so they must not be used elsewhere.
    `load` copies arguments into the buffers and is not part of the call. Outputs are in memory of
    the graph and are overwritten by the next replay.

    Raises:
        RuntimeError: If the call cannot be captured, e.g. because it waits for the device.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        make_arguments: Callable[[], Mapping[str, Any]],
        device: torch.device,
    ) -> None:
        self.buffers = dict(make_arguments())
        with torch.cuda.device(device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(NUM_WARM_UP_CALLS):
                    call(**self.buffers)
                    self.load(make_arguments())
            torch.cuda.current_stream().wait_stream(side)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._outputs = call(**self.buffers)
        self._replay = self._graph.replay

    def load(self, arguments: Mapping[str, Any]) -> None:
        """Copy arguments into the buffers.

        Raises:
            RuntimeError: If an argument does not match the captured shape.
        """
        for name, value in arguments.items():
            buffer = self.buffers[name]
            if isinstance(buffer, torch.Tensor):
                if buffer is not value:
                    buffer.copy_(value)
            elif buffer != value:
                raise RuntimeError(
                    f"The argument `{name}` is {value!r}, but {buffer!r} was captured in the graph."
                )

    def __call__(self) -> Any:
        """Launch the graph and return its outputs."""
        self._replay()
        return self._outputs

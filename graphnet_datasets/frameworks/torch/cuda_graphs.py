"""Calls captured in a CUDA graph: what the kernels take when launching them costs next to nothing.

A small model on a fast GPU is bound by the processor that launches its kernels, and a compiler that
fuses them then wins by launching less. Replayed from a graph, both arms launch once, so that the
kernels themselves are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

NUM_WARM_UP_CALLS = 3
"""Calls on the side stream before the capture, as torch's documentation asks for: libraries make
their handles and workspaces in the first ones."""


class CapturedCall:
    """A callable with its arguments in fixed buffers, replayed by one launch.

    `make_arguments` returns fresh arguments for each call made while capturing, since a call may
    write to them; the first ones are the buffers, so nobody else may use them. `load` copies
    arguments into the buffers, which is not part of the call; the outputs lie in memory of the
    graph and are overwritten by the next replay.

    Raises:
        RuntimeError: the call cannot be captured, for instance because it waits for the device.
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
            RuntimeError: an argument has another shape than the one captured.
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

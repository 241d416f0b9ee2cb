"""Drawing of normal tensors in device memory, with the same bits as on the host.

A draw is a sum of two lookups in a one-megabyte block (`inputs.draws`). A device computes it
exactly like a CPU, in a twentieth of the time that copying the elements to it would take.
"""

from __future__ import annotations

import torch

from ...inputs import SEGMENT_SIZE, Normals, check_interruption

_PIECE = 2**12
"""Segments summed at a time; they take twice 256 MiB of float32 beside the tensor."""


def draws_on(device: torch.device) -> bool:
    """Return whether a device adds and rounds according to IEEE 754."""
    return device.type == "cuda"


def draw_normals(normals: Normals, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return the normals as a one-dimensional tensor on the device.

    >>> import numpy as np
    >>> block, addresses = np.arange(2.0**15, dtype=np.float32), np.array([[7], [20]])
    >>> draw_normals(Normals(3, block, addresses), torch.float16, torch.device("cpu"))
    tensor([27., 29., 31.], dtype=torch.float16)
    """
    block = torch.tensor(normals.block, device=device)
    windows = block.as_strided((len(block) - SEGMENT_SIZE + 1, SEGMENT_SIZE), (1, 1))
    first, second = torch.from_numpy(normals.addresses).to(device)
    normals_drawn = torch.empty(normals.size, dtype=dtype, device=device)
    for start in range(0, len(first), _PIECE):
        check_interruption()
        values = windows.index_select(0, first[start : start + _PIECE])
        values += windows.index_select(0, second[start : start + _PIECE])
        if normals.bounds is not None:
            values.clamp_(*normals.bounds)
        piece = normals_drawn[start * SEGMENT_SIZE : (start + _PIECE) * SEGMENT_SIZE]
        piece.copy_(values.view(-1)[: len(piece)])
    return normals_drawn

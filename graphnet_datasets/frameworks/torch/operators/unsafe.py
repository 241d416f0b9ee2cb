"""Operators that compute on tensors and are left out all the same: they can corrupt memory.

Most kernels of torch compare indices and sizes with the tensors that they read and write. These do
not, or are not known to, so a sample made for it could write wherever it likes. Two were called
with indices out of range and took them (`embedding_dense_backward` and
`max_pool2d_with_indices_backward`, torch 2.13, CPU); the others are left out for the same pattern.
A kernel that only reads too far is not listed.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....operators import OperatorValues

_LEFT_OUT = OperatorValues("left_out")
_REASONS: Mapping[str, str] = {
    "trusts_indices": (
        "its kernel does not compare indices or sizes with the tensors that it writes to"
    ),
    "sparse_indices": (
        "the indices of sparse tensors are not compared with the tensors that they write to"
    ),
}


def why_left_out(last: str) -> str | None:
    """Return why an operator whose name (without namespace and overload) is `last` is left out.

    >>> why_left_out("relu") is None, why_left_out("embedding_dense_backward") is None
    (True, False)
    """
    return _REASONS.get(_LEFT_OUT.get(last, ""))

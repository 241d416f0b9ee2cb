"""Operators that compute on tensors but are excluded because they can corrupt memory.

Most torch kernels check indices and sizes against the tensors they access. The kernels of these
operators do not, or are not known to, so a crafted sample could write anywhere. Two of them
accepted out-of-range indices in a test (`embedding_dense_backward` and
`max_pool2d_with_indices_backward`, torch 2.13, CPU); the others are excluded because they follow
the same pattern. Kernels that only read out of bounds are not listed.
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
    """Return why an operator is excluded, given its name without namespace and overload.

    >>> why_left_out("relu") is None, why_left_out("embedding_dense_backward") is None
    (True, False)
    """
    return _REASONS.get(_LEFT_OUT.get(last, ""))

"""Names of operators in samples."""

from __future__ import annotations


def base_name(target: str) -> str:
    """Return the name of an operator without namespace and overload, for any string.

    >>> base_name("torch.ops.aten.add_.Tensor"), base_name("paddle._C_ops.matmul")
    ('add_', 'matmul')
    >>> base_name("torch.ops.x")
    'x'
    """
    if target.startswith("torch.ops.") and target.count(".") >= 3:
        return target.split(".")[3]
    return target.rpartition(".")[2]


_ASSERTIONS = ("_assert", "_functional_assert", "_check")


def is_assertion(target: str) -> bool:
    """Return whether an operator checks a condition, so that a string argument is its message.

    >>> is_assertion("torch.ops.aten._assert_scalar.default"), is_assertion("torch.einsum")
    (True, False)
    """
    return base_name(target).startswith(_ASSERTIONS)

"""Names of the Paddle operators that a sample may call, from reviewed operator entries.

An operator qualifies if it only computes on its tensor arguments. Excluded are operators that
communicate with other processes (`all_reduce`, `send_v2`), access files or global state
(`read_file`, `check_numerics`, `set_parameter`), run code or other programs (`run_program`,
`tensorrt_engine`), print, or address memory with unchecked strides and offsets (`as_strided`,
`index_elementwise_get`). Tensor arrays and sparse and string tensors are excluded because a sample
cannot describe them. Optimizers are excluded because they are not part of a graph.

The in-place form of an operator (`relu_`) and its gradient (`relu_grad`) are facts of its entry.
"""

from __future__ import annotations

from ...operators import OperatorNames


def words(text: str) -> frozenset[str]:
    """Split a string at whitespace."""
    return frozenset(text.split())


_NAMES = OperatorNames("paddle")
IN_PLACE = frozenset(name.removesuffix("_") for name in _NAMES if name.endswith("_"))
"""Operators with an in-place form, whose name has a trailing underscore."""

FUNCTION_NAMES = _NAMES | {f"{name}_grad" for name in OperatorNames("paddle_grad")}
"""Names in `paddle._C_ops` that a sample may call."""

RANDOM_NAMES = OperatorNames("paddle_random")
"""Operators that may draw random numbers, including those with dropout inside (attention, rnn)."""

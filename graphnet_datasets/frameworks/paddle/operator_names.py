"""The names of paddle's operators that a sample may call: entries of operators, reviewed by hand.

Each name was read against one question: does it only compute on the tensors it is given? What
talks to other processes (`all_reduce`, `send_v2`), touches files or global state (`read_file`,
`check_numerics`, `set_parameter`), runs code or other programs (`run_program`, `tensorrt_engine`),
prints, or addresses memory by raw strides and offsets without checking them (`as_strided`,
`index_elementwise_get`) is left out, and so are tensor arrays, sparse and string tensors, which a
sample cannot describe, and optimizers, which belong to no graph.

The in-place form of an operator (`relu_`) and its gradient (`relu_grad`) are facts of its entry.
"""

from __future__ import annotations

from ...operators import OperatorNames


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_NAMES = OperatorNames("paddle")
IN_PLACE = frozenset(name.removesuffix("_") for name in _NAMES if name.endswith("_"))
"""Operators with a form that writes into its first argument, named with a final underscore."""

FUNCTION_NAMES = _NAMES | {f"{name}_grad" for name in OperatorNames("paddle_grad")}
"""Names under `paddle._C_ops` that a sample may call."""

RANDOM_NAMES = OperatorNames("paddle_random")
"""Operators that may draw random numbers (dropout inside attention and rnn included)."""

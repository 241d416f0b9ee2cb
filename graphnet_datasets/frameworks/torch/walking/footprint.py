"""What a walk over a graph finds."""

from __future__ import annotations

import dataclasses

from ....sample import Value

Results = tuple["tuple[Value, ...] | None", ...]


@dataclasses.dataclass(frozen=True)
class Footprint:
    """What a walk on fake tensors finds.

    `results` has, per operator, one `Value` per tensor that it gives, or None where they cannot be
    known without running it. `input_bytes` is the memory of all inputs, `peak_bytes` the most that
    inputs and live values take at one time when values die at their last use, `working_bytes` the
    same with the copies that kernels may make of expanded operands, `total_bytes` all that
    operators allocate. Views and in-place operators allocate nothing; the working memory
    inside an operator is not counted. `unchecked` says why the sample may not run in any process,
    as far as the operands of its checked operators tell; "" if it may. `unsettled` are the
    positions of the operators of which only a run tells how large their operands or results are,
    `settled_bytes` the peak without those.
    """

    results: Results
    input_bytes: int
    peak_bytes: int
    total_bytes: int
    unchecked: str = ""
    unsettled: frozenset[int] = frozenset()
    settled_bytes: int = 0
    working_bytes: int = 0

"""Results of a walk over a graph."""

from __future__ import annotations

import dataclasses

from ....sample import Value

Results = tuple["tuple[Value, ...] | None", ...]


@dataclasses.dataclass(frozen=True)
class Footprint:
    """Shapes, memory and open questions found by a walk over a graph.

    Attributes:
        results: One tuple per operator with a `Value` for each result tensor, or None if the
            results are known only after a run.
        input_bytes: Memory of all inputs.
        peak_bytes: Peak memory of inputs and live values, if values are freed after their last use.
        total_bytes: Sum of all allocations. Views and in-place operators allocate nothing, and
            memory used inside an operator is not counted.
        unchecked: Why the sample may not run even in isolation, judging by the operands of its
            checked operators; "" if it may.
        unsettled: Positions of operators whose operand or result sizes are known only at run time.
        settled_bytes: The peak without the values of those operators.
        working_bytes: The peak including copies of expanded operands that kernels may make.
    """

    results: Results
    input_bytes: int
    peak_bytes: int
    total_bytes: int
    unchecked: str = ""
    unsettled: frozenset[int] = frozenset()
    settled_bytes: int = 0
    working_bytes: int = 0

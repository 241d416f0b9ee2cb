"""Facts about a framework's operators that limit inputs: indices, boxes, statistics and biases."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Set

from ..sample import Op
from ..sample.vocabulary import framework_package


class InputRules:
    """The input rules of a framework; this base class has no index, box or statistics operands.

    Attributes:
        axis_name: the keyword of the axis of an operator that splits a tensor.
        slice_names: the keywords of axes, starts, ends and steps of `slice`.
        has_single_slices: whether `slice` takes one axis with a step, and keeps the axis.
        scaling: short names of operators that multiply by a literal and add another literal.
    """

    axis_name: str = "axis"
    slice_names: tuple[str, str, str, str] = ("axes", "starts", "ends", "strides")
    has_single_slices: bool = False
    scaling: Set[str] = frozenset()

    def indexing(self, op: Op) -> str | None:
        """Return the index operands, like `2.index+3.other/table:0.input/axis:1.dim`, or None.

        An operand is `position.keyword`. `table` is the indexed tensor, `axis` its axis (also a
        number), and `count` the operand with the number of classes.
        """

    def boxes(self, op: Op) -> str | None:
        """Return the operand with boxes, as `position.keyword`, or None."""

    def bias(self, op: Op) -> int | None:
        """Return the position of an additive operand with the keyword `bias`, or None."""

    def norm(self, op: Op) -> tuple[int, int, int] | None:
        """Return the positions of the input, the running mean and the running variance, or None."""

    def is_training(self, op: Op) -> bool:  # noqa: ARG002
        """Return whether a normalization ignores its running statistics."""
        return False


@functools.cache
def rules_of(framework: str) -> InputRules:
    """Return the rules of a framework: `RULES` of the module `input_rules` of its package.

    >>> rules_of("torch").axis_name
    'dim'
    """
    name = f"{framework_package(framework)}.input_rules"
    if importlib.util.find_spec(name) is None:
        return InputRules()
    return importlib.import_module(name).RULES

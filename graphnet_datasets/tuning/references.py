"""Reference outputs that a check of candidates can rely on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def reference_problem(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], *, has_inputs: bool = True
) -> str:
    """Return why a comparison with the outputs of a first draw of inputs could not fail, or "".

    `second` are the outputs for another draw. A reference is useless if each of its outputs is
    constant, or equal for both draws although the task has inputs.

    >>> reference_problem({"1": np.zeros(3)}, {"1": np.zeros(3)})
    'all elements of every reference output are equal'
    >>> reference_problem({"1": np.arange(3)}, {"1": np.arange(3)})
    'the reference outputs are the same for two different draws of the inputs'
    >>> reference_problem({"1": np.arange(3)}, {"1": np.arange(3) + 1})
    ''
    """
    if not first:
        return "the task changes none of its arguments"
    if all(_is_constant(array) for array in first.values()):
        return "all elements of every reference output are equal"
    is_equal = all(
        name in second and array.tobytes() == second[name].tobytes()
        for name, array in first.items()
    )
    if has_inputs and is_equal:
        return "the reference outputs are the same for two different draws of the inputs"
    return ""


def _is_constant(array: np.ndarray) -> bool:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.size > 1 and flat.tobytes() == flat[:1].tobytes() * flat.size

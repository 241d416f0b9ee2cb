"""Verification of a capture: run the sample on the tensors of the call and compare the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle

from ...errors import CaptureError, GraphNetError
from ...sample import Sample
from .materialize import materialize
from .statistics import as_numbers
from .tracing import Randomness

_DEFAULT_STEPS = 128
"""Accepted output difference in rounding steps of the dtype, relative to the largest element.
The layer and its graph may call different kernels for the same operator."""


def check_capture(
    sample: Sample,
    inputs: Sequence[paddle.Tensor],
    outputs: Sequence[Any],
    before: Randomness,
) -> None:
    """Run a captured sample on the inputs of the call and compare its outputs.

    `inputs` are the values before the call, `outputs` the tensors that the layer returned, and
    `before` is the state of the random generators before the call.

    Raises:
        CaptureError: the sample fails, or an output differs; the message names the output.
    """
    after = Randomness()
    try:
        graph = materialize(sample, allow_unchecked_operators=True, is_known_to_fit=True)
        before.restore()
        with paddle.no_grad():
            results = tensor_leaves(graph(*inputs))
    except GraphNetError as error:
        raise CaptureError(f"The graph captured for `{sample.id}` does not run. {error}") from error
    except Exception as error:  # Paddle's kernels raise many exception types
        reason = str(error).strip().rpartition("\n")[2].strip()
        raise CaptureError(
            f"The graph captured for `{sample.id}` fails on the tensors of the call: {reason[:300]}"
        ) from error
    finally:
        after.restore()
    if len(results) != len(outputs):
        problem = f"it returns {len(results)} tensors instead of {len(outputs)}"
    else:
        pairs = enumerate(zip(results, outputs, strict=True))
        texts = ((index, difference(result, output)) for index, (result, output) in pairs)
        problem = next((f"output {index} {text}" for index, text in texts if text), "")
    if problem:
        raise CaptureError(
            f"The graph captured for `{sample.id}` does not compute the results of the layer: "
            f"{problem}. Paddle's tracer drops writes to buffers, to views and to arguments, and "
            "Python code that depends on tensor values. Compute a new tensor instead of writing "
            "in place, or capture the parts of the layer."
        )


def difference(actual: paddle.Tensor, expected: paddle.Tensor) -> str:
    """Return how an output differs from the expected output, or "" if the outputs agree.

    >>> difference(paddle.ones([2]), paddle.ones([2]) + 1e-7)
    ''
    >>> difference(paddle.ones([2]), paddle.to_tensor([1.0, 1.5]))
    'differs by up to 0.5 (at most 2.3e-05 is accepted)'
    >>> difference(paddle.ones([2]), paddle.ones([3]))
    'is float32[2] instead of float32[3]'
    """
    kinds = [f"{_dtype(tensor)}{list(tensor.shape)}" for tensor in (actual, expected)]
    if kinds[0] != kinds[1]:
        return f"is {kinds[0]} instead of {kinds[1]}"
    result, reference = as_numbers(actual), as_numbers(expected)
    if result.size == 0 or np.array_equal(result, reference):
        return ""
    if reference.dtype.kind not in "fc":
        return f"differs in {int((result != reference).sum())} of {result.size} elements"
    wide = np.complex128 if reference.dtype.kind == "c" else np.float64
    result, reference = result.astype(wide), reference.astype(wide)
    is_finite = np.isfinite(reference)
    if not np.array_equal(result[~is_finite], reference[~is_finite], equal_nan=True):
        return "has other values that are not finite"
    if not np.isfinite(result[is_finite]).all():
        return "is finite in other places"
    if not is_finite.any():
        return ""
    largest = np.abs(result - reference)[is_finite].max()
    step = float(paddle.finfo(expected.dtype).eps) if expected.is_floating_point() else 1.2e-7
    limit = _DEFAULT_STEPS * step * np.abs(reference[is_finite]).max()
    if largest <= limit:
        return ""
    return f"differs by up to {largest:.3g} (at most {limit:.2g} is accepted)"


def tensor_leaves(structure: Any) -> list[Any]:
    """Return the tensors in nested lists, tuples and dictionaries."""
    if isinstance(structure, dict):
        return [leaf for item in structure.values() for leaf in tensor_leaves(item)]
    if isinstance(structure, list | tuple):
        return [leaf for item in structure for leaf in tensor_leaves(item)]
    return [structure] if isinstance(structure, paddle.Tensor) else []


def _dtype(tensor: paddle.Tensor) -> str:
    return str(tensor.dtype).rpartition(".")[2]

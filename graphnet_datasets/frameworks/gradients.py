"""Gradient graphs of a sample, in a framework-independent form."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from ..decoding import load_json
from ..errors import GradientError
from ..sample import Sample, Statistics
from .choices import check_choice
from .contract import module, offers

Of: TypeAlias = Literal["auto", "parameters", "all"]
"""Inputs to differentiate: the weights, the weights and data inputs, or an automatic choice."""
Partition: TypeAlias = Literal["default", "min_cut"]
"""Partition of the joint graph: as autograd saves tensors, or with minimal saved tensors."""

LARGEST_T = -5.0
"""Gradients must agree with eager autograd at this tolerance."""

TANGENT = Statistics(0.0, 1.0, is_measured=False)
"""Placeholder statistics for the gradients of outputs, which are unknown: standard normal."""

EXPONENTS: Mapping[str, tuple[float, float]] = {
    "float16": (1.0, 3 / 5),
    "bfloat16": (1.0, 1.796 / 5),
    "float32": (1.0, 5.886 / 5),
    "complex64": (1.0, 5.886 / 5),
    "float64": (7 / 5, 7 / 5),
    "complex128": (7 / 5, 7 / 5),
}
"""Exponents of atol and rtol for each dtype that has gradients, as in `scores.tolerance`."""


@dataclasses.dataclass(frozen=True)
class Gradients:
    """A graph with its gradients, as one joint graph and split into a forward and a backward graph.

    `largest_t` is the tolerance at which the worst gradient agrees with the framework's own
    autograd. It is None if that was not checked, and -inf if all gradients agree bitwise.
    """

    joint: Sample
    forward: Sample
    backward: Sample
    largest_t: float | None = None


@dataclasses.dataclass(frozen=True)
class Output:
    """The meaning of an output of a joint graph.

    `kind` is `output`, `written` (the new value of an input that the graph writes to) or
    `gradient`; `index` is the index of the output or of the input.
    """

    kind: Literal["output", "written", "gradient"]
    index: int

    def describe(self, sample: Sample) -> str:
        """Return a description for messages.

        >>> from graphnet_datasets.sample import Input, Value
        >>> sample = Sample("a", "torch", "other", (Input("input", Value("float32", ())),), (), ())
        >>> Output("gradient", 0).describe(sample)
        'gradient of `input_0`'
        """
        if self.kind == "output":
            return f"output {self.index}"
        name = sample.input_names[self.index]
        return f"gradient of `{name}`" if self.kind == "gradient" else f"new value of `{name}`"


def differentiate(
    sample: Sample,
    *,
    of: Of = "auto",
    partition: Partition = "default",
    seed: int = 0,
    check: bool = True,
    allow_unchecked_operators: bool = False,
) -> Gradients:
    """Return the joint, forward and backward graphs of a sample; see `transforms.backward`.

    Raises:
        GradientError: the sample has no gradients, or they disagree with autograd.
        UnknownOperatorError, UncheckedOperatorError, MemoryLimitError, MaterializeError: as
            `materialize`.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> matrix = Value("float32", (4, 4))
    >>> sample = Sample("example/layer", "torch", "other",
    ...     (Input("input", matrix), Input("parameter", matrix)),
    ...     (Op("torch.matmul", (Ref(0), Ref(1))), Op("torch.tanh", (Ref(2),))), (Ref(3),))
    >>> made = differentiate(sample)
    >>> [each.source_name for each in made.backward.inputs], made.largest_t
    (['', 'saved_tanh', 'tangent_0'], -inf)
    """
    check_choice("of", of, get_args(Of))
    check_choice("partition", partition, get_args(Partition))
    if not offers(sample.framework, "gradients"):
        raise GradientError(
            f"`{sample.id}` is a graph of {sample.framework}, for which gradients are not "
            "supported.",
            reason=f"gradients of graphs of {sample.framework} are not supported",
        )
    return module(sample.framework, "gradients", "Computing gradients").differentiate(
        sample,
        of=of,
        partition=partition,
        seed=seed,
        check=check,
        allow_unchecked_operators=allow_unchecked_operators,
    )


def choose_inputs(sample: Sample, of: Of) -> frozenset[int]:
    """Return the indices of the inputs to differentiate.

    Raises:
        GradientError: there is no such input.
    """
    candidates: dict[str, set[int]] = {"parameter": set(), "input": set()}
    for position, sample_input in enumerate(sample.inputs):
        if sample_input.role in candidates and sample_input.value.dtype in EXPONENTS:
            candidates[sample_input.role].add(position)
    is_whole = sample.kind == "graph" and not sample.provenance.parent_id
    chosen = candidates["parameter"]
    if of == "all" or (of == "auto" and not (is_whole and chosen)):
        chosen = chosen | candidates["input"]
    if not chosen:
        sources = "parameters" if of == "parameters" else "inputs or parameters"
        raise GradientError(
            f"`{sample.id}` has no floating-point {sources} to differentiate.",
            reason=f"it has no {sources} of floating-point numbers",
        )
    return frozenset(chosen)


def no_gradients(sample: Sample) -> GradientError:
    """Return the error for a sample whose outputs do not depend on any differentiable input."""
    return GradientError(
        f"No output of `{sample.id}` depends on an input or weight that has a gradient.",
        reason="no output depends on a value with a gradient",
    )


def differs(sample: Sample, output: Output, t: float) -> GradientError:
    """Return the error for a graph whose results disagree with eager autograd."""
    return GradientError(
        f"The {output.describe(sample)} of `{sample.id}` equals that of eager autograd only at t "
        f"= {t:g}; {LARGEST_T:g} is required.",
        reason="an output or gradient equals that of eager autograd only at a t above "
        f"{LARGEST_T:g}",
    )


def least_t(dtype: str, passes: Callable[[float, float], bool]) -> float:
    """Return the smallest tolerance t, to a hundredth, for which `passes(atol, rtol)` is true.

    >>> round(least_t("float32", lambda atol, rtol: atol >= 1e-3), 2)
    -3.0
    """
    a, r = EXPONENTS[dtype]
    low, high = -1600, 800
    while low < high:  # in hundredths of t
        middle = (low + high) // 2
        if passes(10 ** (a * middle / 100), 10 ** (r * middle / 100)):
            high = middle
        else:
            low = middle + 1
    return low / 100 if low < 800 else math.inf


def note_outputs(metadata: str, outputs: Sequence[str]) -> str:
    """Return a sample's JSON metadata with the descriptions of its outputs added."""
    try:
        fields = load_json(metadata, "the metadata of a sample")
    except ValueError:
        fields = {}
    fields = fields if isinstance(fields, dict) else {}
    return json.dumps({**fields, "outputs": list(outputs)})

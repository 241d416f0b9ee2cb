"""Calls of one compiled graph with other sizes and numbers: the plan that both arms follow."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ..sample import Sample
from ..transforms.symbolic import find_literals, lift_literals, read_sizes_from_tensors
from ..transforms.symbolic.sizes import nearest_size, peak_bytes

Kind: TypeAlias = Literal["base", "sizes", "scalars"]
VERDICTS = ("ok", "wrong", "stale", "failed", "unsupported", "undecidable")
"""Verdicts on a call, and on all calls of a run together."""

DISTINCT_T = -4.0
"""Outputs that agree at this tolerance are too similar to distinguish two calls."""
MAX_CALLS = 256
MAX_SCALARS = 8
"""The number of scalar inputs that change; each call costs a compilation if the compiler
specializes."""
MAX_LITERALS = 24
"""The number of literals tried with eager to find those that change the outputs."""
MAX_FROZEN = 32
"""The number of eager's outputs with a frozen size or number that a call is compared with."""

_SIZE_FACTORS = (2.0, 3.0, 1.5, 0.5, 4.0, 0.75, 1.25, 2.5, 5.0, 0.25, 6.0, 8.0)
_NUMBER_FACTORS = (2.0, 3.0, 0.5, 1.5, 4.0, 0.75, 0.25, 5.0, -1.0, 1.25, 0.1, 8.0)
_FROM_ZERO = (0.5, 1.0, 0.25, 2.0, 0.1, -0.5, 4.0, 0.75)
_MEMORY_FACTOR = 16
_SMALL_BYTES = 2**26


@dataclasses.dataclass(frozen=True, slots=True)
class VariedCall:
    """A call: the sizes of all symbols and the values of the scalar inputs, by name."""

    kind: Kind
    sizes: Mapping[str, int]
    scalars: Mapping[str, float | int | bool]

    def to_json(self) -> dict[str, Any]:
        """Return the call in the form that `VaryingPlan.from_json` reads."""
        return {"kind": self.kind, "sizes": dict(self.sizes), "scalars": dict(self.scalars)}


@dataclasses.dataclass(frozen=True, slots=True)
class VaryingPlan:
    """The varied calls of a run in order; the first has the sizes of the capture.

    `literals` are the graph's literals that are inputs of the called module. `start` selects the
    compared elements of large outputs (`frameworks.outputs.excerpt_of`); None selects all.
    """

    calls: tuple[VariedCall, ...]
    literals: tuple[float | int, ...] = ()
    start: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON-compatible object."""
        return {
            "calls": [call.to_json() for call in self.calls],
            "literals": list(self.literals),
            "start": self.start,
        }

    @classmethod
    def from_json(cls, plan: Mapping[str, Any]) -> VaryingPlan:
        """Return the plan that `to_json` serialized.

        Raises:
            ValueError, TypeError, KeyError: `plan` is not a valid plan.

        >>> plan = VaryingPlan((VariedCall("base", {"batch": 2}, {"scalar_0": 0.5}),), (0.5,))
        >>> VaryingPlan.from_json(plan.to_json()) == plan
        True
        """
        calls = tuple(
            VariedCall(call["kind"], dict(call["sizes"]), dict(call["scalars"]))
            for call in plan["calls"]
        )
        if not 0 < len(calls) <= MAX_CALLS:
            raise ValueError(f"A plan must have 1 to {MAX_CALLS} calls, got {len(calls)}.")
        start = plan["start"]
        for call in calls:
            numbers = (*call.sizes.values(), *call.scalars.values())
            if call.kind not in ("base", "sizes", "scalars") or not all(
                type(number) in (int, float, bool) and math.isfinite(number) for number in numbers
            ):
                raise ValueError("A call of the plan has an unknown kind or a number out of range.")
        if start is not None and (type(start) is not int or start < 0):
            raise ValueError(f"`start` must be an integer or None, got {start!r}.")
        return cls(calls, tuple(plan["literals"]), start)


def as_called(sample: Sample, literals: Sequence[float | int]) -> Sample:
    """Return the compiled graph, with these literals and the sizes of its tensors as inputs.

    Raises:
        ValueError: the graph has no such literal.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> clamp = Sample("example/clamp", "torch", "other", (Input("input", Value("float32", (2,))),),
    ...     (Op("torch.clamp", (Ref(0), -1.0, 1.0)),), Ref(1))
    >>> as_called(clamp, (1.0,)).input_names
    ('input_0', 'scalar_0')
    """
    return read_sizes_from_tensors(with_literals(sample, literals))


def with_literals(sample: Sample, literals: Sequence[float | int]) -> Sample:
    """Return the graph with these of its literals as inputs; its symbols do not change."""
    places = find_literals(sample)
    for literal in literals:
        if literal not in places:
            raise ValueError(f"`{sample.id}` has no literal {literal!r}.")
    return lift_literals(sample, {literal: places[literal] for literal in literals})


def other_sizes(sample: Sample) -> Iterator[dict[str, int]]:
    """Yield sizes of all symbols that differ from those of the capture, the closest first.

    Symbols have different sizes from one another if the constraints allow it, so that a compiler
    that merges two symbols is detected.

    >>> from graphnet_datasets.sample import Input, Symbol, Value
    >>> lines = Sample("example/lines", "torch", "other",
    ...     (Input("input", Value("float32", ("batch", 256))),), (), (), (Symbol("batch", 8, 1),))
    >>> [sizes["batch"] for sizes, _ in zip(other_sizes(lines), range(4))]
    [16, 24, 12, 4]
    """
    hints = dict(sample.hints)
    base_bytes = peak_bytes(sample, hints)
    seen = [hints]
    for factor in _SIZE_FACTORS if hints else ():
        sizes = dict(hints)
        for number, (name, hint) in enumerate(hints.items()):
            wanted = max(2, round(hint * factor) + number)
            nearest = nearest_size(sample, sizes, [name], wanted)
            sizes[name] = hint if nearest is None else nearest
        is_small = peak_bytes(sample, sizes) <= max(_MEMORY_FACTOR * base_bytes, _SMALL_BYTES)
        if sizes not in seen and is_small:
            seen.append(sizes)
            yield sizes


def other_numbers(number: float | int | bool) -> Iterator[float | int | bool]:
    """Yield values for a scalar input that is `number` in the capture, of the same type.

    >>> [list(other_numbers(number))[:3] for number in (1.5, 0.0, 4, True)]
    [[3.0, 4.5, 0.75], [0.5, 1.0, 0.25], [5, 6, 3], [False]]
    """
    if type(number) is bool:
        yield not number
    elif type(number) is int:
        yield from (number + step for step in (1, 2, -1, 3, 4, 8, -2))
    elif number == 0:
        yield from _FROM_ZERO
    else:
        yield from (number * factor for factor in _NUMBER_FACTORS)


def plan_calls(
    hints: Mapping[str, int],
    base: Mapping[str, float | int | bool],
    sizes: Sequence[Mapping[str, int]],
    values: Mapping[str, Sequence[float | int | bool]],
) -> tuple[VariedCall, ...]:
    """Return the calls: the base, each of `sizes`, then the numbers together and one by one.

    Scalar inputs keep their base value while sizes change, and vice versa. The last call repeats
    the first one, which reveals state that an earlier call left behind.
    """
    calls = [VariedCall("base", hints, base)]
    calls += [VariedCall("sizes", other, base) for other in sizes]
    longest = max(map(len, values.values()), default=0)
    if len(values) > 1:
        for number in range(longest):
            together = {name: others[number % len(others)] for name, others in values.items()}
            calls.append(VariedCall("scalars", hints, {**base, **together}))
    for name, others in values.items():
        calls += [VariedCall("scalars", hints, {**base, name: other}) for other in others]
    if len(calls) > 1:
        calls.append(calls[0])
    return tuple(calls[:MAX_CALLS])

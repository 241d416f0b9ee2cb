"""Validation of options of `materialize` and `make_inputs` that is shared by all frameworks."""

from __future__ import annotations

from typing import Any

from ..errors import MaterializeError
from ..sample import Input
from ..sample.vocabulary import WEIGHT_ROLES


def is_weight(graph_input: Input) -> bool:
    """Return whether an input is a parameter, a buffer or a traced constant of the model."""
    return graph_input.role in WEIGHT_ROLES


def check_choice(option: str, value: Any, accepted: tuple[str, ...]) -> None:
    """Raise MaterializeError if `value` is not one of `accepted`."""
    if value not in accepted:
        raise MaterializeError(
            f"`{option}={value!r}` is unknown (accepted: {', '.join(map(repr, accepted))})."
        )

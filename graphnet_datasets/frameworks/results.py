"""What kind of thing an operator gives, as far as that is known without running it."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

from ..sample import Value

Kind: TypeAlias = Literal["tensor", "number", "other"]

NOTHING = Value()


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """One value: a tensor with its `Value`, a Python number, or neither (a tuple, nothing).

    A tensor or number that only a run would tell is `other`.
    """

    kind: Kind
    value: Value = NOTHING
    number: bool | int | float | None = None

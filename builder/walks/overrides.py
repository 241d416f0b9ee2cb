"""The committed exceptions to a walk for single models, one per line.

    model | overrides | inputs | reason

`model` is a class or registry name, or the type of a config for all its classes. Overrides and
inputs are written as in a catalog and replace those of the walk; `-` leaves the model out, and an
empty field keeps the walk's value. A missing reason is an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from ..catalog import CatalogError

WALKS = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Override:
    """The exception of a model, with its reason."""

    overrides: str
    inputs: str
    reason: str

    @property
    def is_left_out(self) -> bool:
        """True if the model has no entry."""
        return self.overrides == "-"


Overrides = Mapping[str, Override]


def read_overrides(source: str) -> Overrides:
    """Return the exceptions of a source by model; none if it has no file.

    Raises:
        CatalogError: a line does not follow the format, or a model occurs twice.
    """
    path = WALKS / f"{source}.txt"
    overrides: dict[str, Override] = {}
    for number, line in enumerate(path.read_text().splitlines() if path.is_file() else (), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 4 or not fields[0] or not fields[3]:
            raise CatalogError(f"{path}:{number} is not `model | overrides | inputs | reason`.")
        if fields[0] in overrides:
            raise CatalogError(f"`{path}` has two lines for `{fields[0]}`. Merge them.")
        overrides[fields[0]] = Override(*fields[1:])
    return overrides

"""Published sizes of models beside those of their default configs: `builder/walks/sizes.txt`.

    type of model | size | overrides

Default configs mostly have the base size. Every class of a listed type also has an entry for each
of these sizes, so that the dataset contains models of the size in which they are deployed.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ..catalog import CatalogError

PATH = Path(__file__).parent / "sizes.txt"


@dataclasses.dataclass(frozen=True)
class Size:
    """A published size: its name and its changes to the default config."""

    name: str
    overrides: str


def read_sizes(path: Path = PATH) -> dict[str, list[Size]]:
    """Return the sizes of each type of model.

    Raises:
        CatalogError: a line has other than three fields.

    >>> [size.name for size in read_sizes()["vit"]]
    ['large', 'huge']
    """
    sizes: dict[str, list[Size]] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 3 or not all(fields):
            raise CatalogError(
                f"{path}:{number} must be `type of model | size | overrides`; it is `{line}`."
            )
        sizes.setdefault(fields[0], []).append(Size(*fields[1:]))
    return sizes

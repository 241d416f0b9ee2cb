"""Published sizes of models beside those of their default configs: `builder/walks/sizes.txt`.

    type of model | size | overrides

Default configs mostly have the base size. Every class of a listed type also has an entry for each
of these sizes, so that the dataset contains models of the size in which they are deployed.

Some default configs were never published. For their types, `builder/walks/checkpoints.txt` has the
configuration of a released checkpoint, which replaces the default config in every entry:

    type of model | checkpoint | overrides | source
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from ..catalog import CatalogError

PATH = Path(__file__).parent / "sizes.txt"
CHECKPOINTS = Path(__file__).parent / "checkpoints.txt"


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
    for model_type, *fields in _lines(path, "type of model | size | overrides"):
        sizes.setdefault(model_type, []).append(Size(*fields))
    return sizes


def read_checkpoints(path: Path = CHECKPOINTS) -> dict[str, str]:
    """Return the overrides of the released checkpoint of each type of model.

    Raises:
        CatalogError: a line has other than four fields, or a type occurs twice.

    >>> read_checkpoints()["bloom"]
    'hidden_size=1024 n_layer=24 n_head=16'
    """
    checkpoints: dict[str, str] = {}
    form = "type of model | checkpoint | overrides | source"
    for model_type, _, overrides, _ in _lines(path, form):
        if model_type in checkpoints:
            raise CatalogError(f"`{path}` has two lines for `{model_type}`. Remove one of them.")
        checkpoints[model_type] = overrides
    return checkpoints


def replaced(overrides: str, later: str) -> str:
    """Return overrides with those of a second text, which takes precedence.

    >>> replaced("depth=2 sizes=[4, 2]", "depth=3 width=8")
    'sizes=[4, 2] depth=3 width=8'
    """
    before, after = (re.split(r"\s+(?=[\w.]+=)", text.strip()) for text in (overrides, later))
    keys = {part.partition("=")[0] for part in after}
    return " ".join([part for part in before if part.partition("=")[0] not in keys] + after).strip()


def _lines(path: Path, form: str) -> Iterator[list[str]]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != form.count("|") + 1 or not all(fields):
            raise CatalogError(f"{path}:{number} must be `{form}`; it is `{line}`.")
        yield fields

"""Safe names for files and URLs."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence

MAX_WORD = 60


def slug(text: str, *more: str) -> str:
    """Return a file name for a string, independent of other names; `more` distinguishes equal ones.

    The readable part is for people. A hash of the whole text makes the name unique, also on
    case-insensitive file systems.

    >>> slug("timm/ResNet18")
    'timm-resnet18-99b02c6c'
    >>> slug("../../<script>") != slug("..\\u202e/<script>")
    True
    """
    whole = "\0".join((text, *more)).encode("utf-8", "surrogatepass")
    return f"{_word(text)}-{hashlib.sha256(whole).hexdigest()[:8]}"


def file_names(stem: str, names: Sequence[str]) -> dict[str, str]:
    """Return a different file name for each run set: the stem alone if there is only one.

    >>> file_names("samples", ["a"]), file_names("samples", ["A b", "a_b"])
    ({'a': 'samples'}, {'A b': 'samples_a-b', 'a_b': 'samples_a-b-2'})
    """
    if len(names) == 1:
        return {names[0]: stem}
    results: dict[str, str] = {}
    for name in names:
        first = f"{stem}_{_word(name)}"
        choices = itertools.chain([first], (f"{first}-{number}" for number in itertools.count(2)))
        results[name] = next(choice for choice in choices if choice not in results.values())
    return results


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_WORD].strip("-") or "x"

"""Safe names for files and URLs, which do not change when records are added."""

from __future__ import annotations

import hashlib
import re

MAX_WORD = 60


def slug(text: str, *more: str) -> str:
    """Return a file name for a string; `more` distinguishes equal strings.

    The readable part is for people. A hash of the whole text makes the name unique, also on
    case-insensitive file systems.

    >>> slug("timm/ResNet18")
    'timm-resnet18-99b02c6c'
    >>> slug("../../<script>") != slug("..\\u202e/<script>")
    True
    """
    whole = "\0".join((text, *more)).encode("utf-8", "surrogatepass")
    word = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_WORD].strip("-")
    return f"{word or 'x'}-{hashlib.sha256(whole).hexdigest()[:8]}"

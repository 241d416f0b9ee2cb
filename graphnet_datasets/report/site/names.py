"""Names of files and addresses that are safe, and stay the same as records are added."""

from __future__ import annotations

import hashlib
import re

MAX_WORD = 60


def slug(text: str, *more: str) -> str:
    """Return a name for a file out of any text, and out of `more` that tells it from others.

    What is left of the text is for people; the digits behind it, of the whole text, make the name
    the only one, on file systems that do not tell cases apart too.

    >>> slug("timm/ResNet18")
    'timm-resnet18-99b02c6c'
    >>> slug("../../<script>") != slug("..\\u202e/<script>")
    True
    """
    whole = "\0".join((text, *more)).encode("utf-8", "surrogatepass")
    word = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_WORD].strip("-")
    return f"{word or 'x'}-{hashlib.sha256(whole).hexdigest()[:8]}"

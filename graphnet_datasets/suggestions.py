"""Suggestions for misspelled names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_SUGGESTIONS = 3
_LEAST_LIKENESS = 0.6
_BEST_BY = 0.1
"""Maximum difference to the highest similarity for a name to be suggested."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ` Did you mean …?` with the most similar names, or "" if no name is similar.

    Case is ignored, and the last part of a path matches the whole path.

    >>> did_you_mean("inducter", ["inductor", "eager", "onnxruntime"])
    ' Did you mean `inductor`?'
    >>> did_you_mean("resnet18", ["torchvision/resnet18", "timm/resnet50d"])
    ' Did you mean `torchvision/resnet18`?'
    >>> did_you_mean("dcgan64", ["torch/dcgan-64", "torch/tcn"])
    ' Did you mean `torch/dcgan-64`?'
    >>> did_you_mean("resnet18", ["cv", "nlp"])
    ''
    """
    wanted = name.casefold()
    by_text: dict[str, list[str]] = {}
    for candidate in names:
        for text in {candidate.casefold(), candidate.casefold().rpartition("/")[2]}:
            by_text.setdefault(text, []).append(candidate)
    close = difflib.get_close_matches(wanted, by_text, MAX_SUGGESTIONS, _LEAST_LIKENESS)
    likeness = {text: difflib.SequenceMatcher(None, text, wanted).ratio() for text in close}
    least = max(likeness.values(), default=0) - _BEST_BY
    close = [wanted] if wanted in by_text else [text for text in close if likeness[text] > least]
    matches = list(dict.fromkeys(match for text in close for match in by_text[text]))
    if not matches:
        return ""
    return f" Did you mean {' or '.join(f'`{name}`' for name in matches[:MAX_SUGGESTIONS])}?"

"""Parsing of `model.py` source text with size limits, and errors that point at a line.

The text is untrusted. It is parsed and never executed.
"""

from __future__ import annotations

import ast
import re

from ..errors import SourceError

MAX_SOURCE_CHARACTERS = 8 * 2**20
"""Limit of characters. The largest source among 2,495 upstream samples has 3 million."""

MAX_SOURCE_TOKENS = 400_000
"""Limit of line ends and punctuation marks, for each of which `ast` needs up to a kilobyte. The
largest of 142 upstream sources has 48,000."""

MAX_F_STRING_STEPS = 10**9
"""Limit of the number of braces times the number of characters, for sources with an f-string."""

_F_STRING = re.compile(r"(?<!\w)(?:f|fr|rf)['\"]", re.IGNORECASE)
_SIGNS = ",;()[]{}=.+-*/%<>&|^~@:\"'\\#!"


def parse_text(text: str, file: str) -> ast.Module:
    """Return the syntax tree of a `model.py`; `file` is the path used in error messages.

    Raises:
        SourceError: the text is too long, is not Python, or is nested too deeply.

    >>> parse_text("def forward(x: return", "a/model.py")
    Traceback (most recent call last):
    graphnet_datasets.errors.SourceError: `a/model.py`, line 1: this is not Python: ...
    """
    if len(text) > MAX_SOURCE_CHARACTERS:
        raise SourceError(
            f"`{file}` has {len(text)} characters; at most {MAX_SOURCE_CHARACTERS} are accepted."
        )
    num_tokens = len(text)
    if num_tokens > MAX_SOURCE_TOKENS:
        num_tokens = text.count("\n") + sum(map(text.count, _SIGNS))
    if num_tokens > MAX_SOURCE_TOKENS:
        raise SourceError(
            f"`{file}` has {num_tokens} line ends and punctuation marks; at most "
            f"{MAX_SOURCE_TOKENS} are accepted."
        )
    # Python parses each expression in an f-string in time proportional to the string.
    if text.count("{") * len(text) > MAX_F_STRING_STEPS and _F_STRING.search(text):
        raise source_error(file, 1, "the text contains f-strings and too many braces")
    try:
        return ast.parse(text)
    except SyntaxError as error:
        reason = str(error.msg).partition("; ")[0]
        raise source_error(file, error.lineno or 1, f"this is not Python: {reason}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise too_deep(file) from error


def too_deep(file: str) -> SourceError:
    """Return the error for source that is nested too deeply to parse or to traverse."""
    return source_error(file, 1, "the text is not Python, or is nested too deeply")


def source_error(file: str, line: int, problem: str) -> SourceError:
    """Return an error that points at a line of a source file."""
    return SourceError(
        f"`{file}`, line {line}: {problem}. A graph is straight-line code: assignments of calls, "
        "operators and literals, and one return; correct the file or skip the sample."
    )

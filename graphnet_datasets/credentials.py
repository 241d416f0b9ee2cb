"""Removal of credentials in URLs from messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

_END = r"\s`'\"<>"
_WITH_PASSWORD = re.compile(rf"(?<=://)[^{_END}]*:[^{_END}]*(?=@)")
"""Matches up to the last `@`, because pasted passwords may contain `/`, `#` or `@` unescaped."""
_WITH_USER = re.compile(rf"(?<=://)[^/?#{_END}]+(?=@)")
_IN_QUERY = re.compile(
    r"(?i)((?:[?&;#]|%3f|%26)[^=&;\s]*?"
    r"(?:token|secret|passw(?:or)?d|pwd|signature|sig|credential|api-?_?key|access-?_?key|auth)"
    rf"[^=&;{_END}]*=)[^&;{_END}]+"
)
_SECRET_OPTION = re.compile(r"(?i)secret|token|passw|pwd|key|credential|auth|sas|user")
_MIN_SECRET_LENGTH = 4
"""Shorter values occur in too many ordinary words to be replaced."""


def hide_credentials(text: str) -> str:
    """Replace the credentials of every URL in a string by `***`.

    Credentials are the user and password before the host, and the values of query parameters whose
    names suggest tokens, keys or signatures.

    >>> hide_credentials("`s3://me:pass/word@bucket/cv?X-Amz-Signature=abc&part=2` is not there.")
    '`s3://***@bucket/cv?X-Amz-Signature=***&part=2` is not there.'
    """
    if "://" not in text and "=" not in text:
        return text
    for pattern in (_WITH_PASSWORD, _WITH_USER):
        text = pattern.sub(HIDDEN, text)
    return _IN_QUERY.sub(rf"\1{HIDDEN}", text)


def hide_parts(text: str, url: str) -> str:
    """Replace the credentials of a URL by `***` wherever they occur in a string.

    Messages of file systems may contain a part of their URL, or an address derived from it.

    >>> hide_parts("no repository tiger", "github://me:tiger@main/x")
    'no repository ***'
    """
    secrets = [match[0] for match in _WITH_PASSWORD.finditer(url)]
    secrets += [match[0] for match in _WITH_USER.finditer(url)]
    secrets += [part for secret in secrets for part in secret.split(":")]
    secrets += [match[0][len(match[1]) :] for match in _IN_QUERY.finditer(url)]
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET_LENGTH:
            text = text.replace(secret, HIDDEN)
    return text


def hide_options(text: str, options: Mapping[str, Any]) -> str:
    """Replace the secret values of a file system's options by `***` in a string.

    >>> hide_options("no user 'tiger'", {"client_kwargs": {"aws_secret_access_key": "tiger"}})
    "no user '***'"
    """
    for name, value in options.items():
        if isinstance(value, Mapping):
            text = hide_options(text, value)
        elif isinstance(value, str) and len(value) >= _MIN_SECRET_LENGTH:
            if _SECRET_OPTION.search(str(name)):
                text = text.replace(value, HIDDEN)
            elif hide_credentials(value) != value:
                text = text.replace(value, hide_credentials(value))
    return text

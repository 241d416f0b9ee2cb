"""Removal of credentials in URLs from messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

HIDDEN = "***"

_END = r"\s`'\"<>"
_AFTER_SCHEME = re.compile(rf"(?<=://)[^{_END}]*")
_WITH_USER = re.compile(rf"(?<=://)[^/?#{_END}]+(?=@)")
_NAME = re.compile(r"(?<![^=&;\s])[^=&;\s]*=")
"""Matches the name of a query parameter and its `=`, and the rest of a URL before the name."""
_VALUE = re.compile(rf"[^&;{_END}]+")
_BEFORE_NAME = re.compile(r"(?i)[?#]|%3f|%26")
_SECRET_NAME = re.compile(
    r"(?i)token|secret|passw(?:or)?d|pwd|signature|sig|credential|api-?_?key|access-?_?key|auth"
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
    text = _WITH_USER.sub(HIDDEN, _without(text, _find_passwords(text)))
    return _without(text, _find_query_secrets(text))


def _without(text: str, places: Iterable[tuple[int, int]]) -> str:
    parts, end = [], 0
    for start, stop in places:
        parts += [text[end:start], HIDDEN]
        end = stop
    return "".join([*parts, text[end:]])


def _find_passwords(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of users and passwords, in linear time.

    A place ends before the last `@`, because pasted passwords may contain `/`, `#` or `@`.
    """
    for match in _AFTER_SCHEME.finditer(text):
        user, at, _ = match[0].rpartition("@")
        if at and ":" in user:
            yield match.start(), match.start() + len(user)


def _find_query_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of secret values of query parameters, in linear time."""
    end = 0
    for match in _NAME.finditer(text):
        if match.end() <= end:
            continue
        start = max(match.start(), end)
        name = text[start : match.end() - 1]
        if text[start - 1 : start] not in ("&", ";"):
            before = _BEFORE_NAME.search(name)
            name = name[before.end() :] if before else ""
        if not _SECRET_NAME.search(re.split("[`'\"<>]", name)[-1]):
            continue
        if value := _VALUE.match(text, match.end()):
            end = value.end()
            yield value.span()


def hide_parts(text: str, url: str) -> str:
    """Replace the credentials of a URL by `***` wherever they occur in a string.

    Messages of file systems may contain a part of their URL, or an address derived from it.

    >>> hide_parts("no repository tiger", "github://me:tiger@main/x")
    'no repository ***'
    """
    secrets = [url[start:stop] for start, stop in _find_passwords(url)]
    secrets += [match[0] for match in _WITH_USER.finditer(url)]
    secrets += [part for secret in secrets for part in secret.split(":")]
    secrets += [url[start:stop] for start, stop in _find_query_secrets(url)]
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

"""Declaration, checking and command-line parsing of compiler options."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import CompilerError


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """An option: its default, its meaning, and its allowed values if there are few.

    A value has the type of the default; if the default is None, it is None or a string.
    """

    default: Any
    description: str
    choices: tuple[Any, ...] = ()

    def problem(self, value: Any) -> str:
        """Return the reason why `value` is invalid, or "" if it is valid."""
        if self.choices:
            accepted = ", ".join(json.dumps(choice) for choice in self.choices)
            return "" if value in self.choices else f"it has to be one of {accepted}"
        expected = type(self.default) if self.default is not None else str
        is_right = type(value) is expected or (expected is float and type(value) is int)
        if is_right or (self.default is None and value is None):
            return ""
        return f"it has to be of type {expected.__name__}"


def check_options(
    compiler: str, table: Mapping[str, Option], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all options of a compiler, with defaults for those that are not in `options`.

    Raises:
        CompilerError: An option is unknown or has a value that it does not accept.

    >>> check_options("mine", {"level": Option(1, "How hard to try.")}, {"level": 3})
    {'level': 3}
    """
    for name, value in options.items():
        if name not in table:
            accepted = ", ".join(f"`{option}`" for option in table) or "none"
            raise CompilerError(
                f"The compiler `{compiler}` has no option `{name}` (accepted: {accepted})."
            )
        problem = table[name].problem(value)
        if problem:
            raise CompilerError(
                f"The option `{name}` of the compiler `{compiler}` cannot be {value!r}: {problem}."
            )
    return {name: options.get(name, option.default) for name, option in table.items()}


def resolve_paths(options: Mapping[str, Any]) -> dict[str, Any]:
    """Make paths in options absolute, so that they are valid in another working directory.

    A string that contains a slash or begins with `~` is a path if a file or directory exists there.

    >>> resolve_paths({"cache": "/tmp/../tmp", "mode": "max-autotune", "level": 3})
    {'cache': '/tmp', 'mode': 'max-autotune', 'level': 3}
    """
    return {name: _resolved(value) for name, value in options.items()}


def _resolved(value: Any) -> Any:
    if not isinstance(value, str) or not ("/" in value or value.startswith("~")):
        return value
    try:
        path = Path(value).expanduser()
        return str(path.resolve()) if path.exists() else value
    except (OSError, RuntimeError, ValueError):  # not a valid path
        return value


def parse_options(settings: Iterable[str]) -> dict[str, Any]:
    """Parse `name=value` settings. A value is parsed as JSON, or kept as a string if it is not
    JSON.

    >>> parse_options(["mode=max-autotune", "freezing=true"])
    {'mode': 'max-autotune', 'freezing': True}
    """
    options = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise CompilerError(
                f"`{setting}` is not a compiler option. Write it as `name=value`, for example "
                "`freezing=true`."
            )
        try:
            options[name] = json.loads(text)
        except ValueError:
            options[name] = text
    return options

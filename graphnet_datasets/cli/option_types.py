"""Plain types in the help, and plain messages for values that do not have their type."""

from __future__ import annotations

import functools
import typing
from pathlib import Path
from typing import Any

_NAMES = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH"}
_NOUNS = {int: "an integer", float: "a number"}


def show_plain_types(command: Any, ctx: Any) -> None:
    """Let the help name the types of a command's parameters in the user's words, not Python's.

    Older releases of typer do so themselves.
    """
    for parameter in command.get_params(ctx):  # with `--help`
        parameter.display_type_rich = functools.partial(_name_type, parameter)


def _name_type(parameter: Any, ctx: Any) -> str | None:
    del ctx
    if getattr(parameter, "is_flag", False):
        return None
    is_option = parameter.param_type_name == "option"
    if is_option and parameter.metavar is not None:
        return parameter.metavar
    return _NAMES.get(_type_of(parameter), "TEXT")


def _type_of(parameter: Any) -> Any:
    annotation = parameter.type_descriptor.annotation
    return (typing.get_args(annotation) or (annotation,))[0]


def explain_value(error: Any) -> str | None:
    """Return a sentence on a number that cannot be read or is out of range, or None."""
    parameter, cause = getattr(error, "param", None), error.__cause__
    if not hasattr(parameter, "type_descriptor") or not hasattr(cause, "errors"):
        return None
    noun = _NOUNS.get(_type_of(parameter))
    if noun is None:
        return None
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if least is not None and most is not None:
        noun += f" from {least:g} to {most:g}"
    elif least is not None or most is not None:
        noun += f" of at least {least:g}" if most is None else f" of at most {most:g}"
    return f"Expected {noun}, got `{cause.errors()[0]['input']}`."

"""Groups of options: dataclasses that the help shows as separate panels.

A field is declared like a parameter of a command: type, `typer.Option` and default.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

import typer.models

_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptionGroup:
    """Base class of a group of options; `title` is its heading in the help."""

    title: ClassVar[str] = "Options"


def with_groups(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Replace the `OptionGroup` parameters of a command by their single options.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Size(OptionGroup):
    ...     width: typing.Annotated[int, typer.Option(help="In pixels.")] = 3
    >>> @with_groups
    ... def draw(name: str, *, size: Size) -> str:
    ...     return name * size.width
    >>> draw("x", width=2), list(inspect.signature(draw).parameters)
    ('xx', ['name', 'width'])
    """
    signature = inspect.signature(command)
    hints = typing.get_type_hints(command, include_extras=True)
    groups: dict[str, type[OptionGroup]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        kind = hints[parameter.name]
        if isinstance(kind, type) and issubclass(kind, OptionGroup):
            groups[parameter.name] = kind
            parameters += _parameters_of(kind)
        else:
            parameters.append(parameter.replace(annotation=kind))

    @functools.wraps(command)
    def grouped(*positional: Any, **options: Any) -> _Result:
        for name, group in groups.items():
            fields = [field.name for field in dataclasses.fields(group)]
            options[name] = group(
                **{field: options.pop(field) for field in fields if field in options}
            )
        return command(*positional, **options)

    result = hints.get("return", inspect.Signature.empty)
    wrapper: Any = grouped
    wrapper.__signature__ = inspect.Signature(parameters, return_annotation=result)
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {
        "return": result
    }
    return grouped


def _parameters_of(group: type[OptionGroup]) -> Iterator[inspect.Parameter]:
    hints = typing.get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        kind, *notes = typing.get_args(hints[field.name])
        notes = [_in_panel(note, group.title) for note in notes]
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=typing.Annotated[(kind, *notes)],
        )


def _in_panel(note: Any, title: str) -> Any:
    if isinstance(note, typer.models.OptionInfo):
        note = copy.copy(note)
        note.rich_help_panel = title
    return note

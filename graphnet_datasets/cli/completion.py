"""Shell completion of the values of options and arguments, by the name of the parameter."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from ..errors import GraphNetError

MAX_VALUES = 200
"""Maximum number of values that a shell gets at a time."""


def complete(name: str, incomplete: str) -> list[str]:
    """Return the values of a parameter that start with `incomplete`, at most `MAX_VALUES`.

    >>> complete("task", "s"), complete("compiler", "induc"), complete("source", "pytorch/v")
    (['scientific'], ['inductor'], ['pytorch/vision'])
    """
    try:
        values = sorted({value for value in _VALUES[name]() if value.startswith(incomplete)})
    except (GraphNetError, OSError):
        return []  # a shell cannot show an error
    return values[:MAX_VALUES]


def add_completion(command: Any) -> Any:
    """Let the parameters of a command complete their values, and return the command."""
    for parameter in command.params:
        # The option `--names` of `show` does not take the values of the argument `names`.
        is_other = parameter.name in _PATHS and parameter.param_type_name != "argument"
        if parameter.name in _VALUES and not is_other:
            completing: Any = parameter
            completing.shell_complete = functools.partial(_items, parameter.name)
    return command


def _items(name: str, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    del ctx
    items = [CompletionItem(value) for value in complete(name, incomplete)]
    is_path = name in _PATHS and (not items or incomplete.startswith((".", "/", "~")))
    return [CompletionItem(incomplete, type="file")] if is_path else items


def _column(name: str) -> Callable[[], Iterable[str]]:
    """Return a function that returns the values of a column of the embedded graphs."""

    def find() -> Iterable[str]:
        from ..storage.loading import STARTER
        from ..storage.selection import list_rows

        for row in list_rows(STARTER, None, [name]):
            value = row[name]
            yield from value if isinstance(value, list) else [value] if value else []

    return find


def _tasks() -> Iterable[str]:
    from ..sample.vocabulary import TASKS

    return TASKS


def _kinds() -> Iterable[str]:
    from ..sample.vocabulary import KINDS

    return KINDS


def _methods() -> Iterable[str]:
    from ..sample.vocabulary import PART_METHODS

    return PART_METHODS


def _frameworks() -> Iterable[str]:
    from ..frameworks import framework_names

    return framework_names()


def _compilers() -> Iterable[str]:
    from ..compilers import list_entries

    return [entry.name for entry in list_entries()]


def _checks() -> Iterable[str]:
    from ..validation import CHECKS

    return CHECKS


def _names() -> Iterable[str]:
    from ..schema import ALL, CONFIGS

    configs = [name for name, config in CONFIGS.items() if config.table.holds_samples]
    return [ALL, *configs, *_column("id")()]


def _listed_names() -> Iterable[str]:
    return [*_configs(), *_column("id")()]


def _configs() -> Iterable[str]:
    from ..schema import ALL, CONFIGS

    return [ALL, *CONFIGS]


_VALUES: dict[str, Callable[[], Iterable[str]]] = {
    "names": _names,
    "listed": _listed_names,
    "what": _names,
    "sample_id": _names,
    "config": _configs,
    "task": _tasks,
    "framework": _frameworks,
    "kind": _kinds,
    "found_by": _methods,
    **{name: _column(name) for name in ("subtask", "source", "dtype", "license")},
    "tag": _column("tags"),
    "compiler": _compilers,
    "compiler_a": _compilers,
    "compiler_b": _compilers,
    "device": lambda: ("cpu", "cuda", "cuda:0"),
    "executor": lambda: ("local", "ray"),
    "only": _checks,
}
"""Functions that return the values of parameters, by the parameter's name."""
_PATHS = ("names", "listed", "what", "sample_id")
"""Parameters that also take paths."""

"""Compilers whose generated code can be collected, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..compilers import make_compiler
from ..errors import CompilerError
from ..plugins import entry_points
from ..sample import Sample
from ..suggestions import did_you_mean
from .generated import Generation

Generator = Callable[[Sample, Mapping[str, Any], str], Generation]


def _inductor() -> Generator:
    from .inductor import generate

    return generate


def _tvm() -> Generator:
    from .tvm import generate

    return generate


GENERATOR_GROUP = "graphnet_datasets.kernels"
"""The entry point group for compilers of other packages; a value is a `Generator`."""


def _generators() -> dict[str, Callable[[], Generator]]:
    """Return functions that import the generator of each compiler."""
    added = {point.name: point.load for point in entry_points(GENERATOR_GROUP)}
    return {**added, "inductor": _inductor, "tvm": _tvm}


def generator_names() -> tuple[str, ...]:
    """Return the names of the compilers whose generated code can be collected.

    >>> generator_names()
    ('inductor', 'tc', 'tvm')
    """
    return tuple(sorted(_generators()))


def generator_of(compiler: str) -> Generator:
    """Return the function that compiles a sample and collects its kernels.

    Raises:
        CompilerError: the generated code of this compiler cannot be collected.
    """
    _check_name(compiler)
    return _generators()[compiler]()


def _check_name(compiler: str) -> None:
    names = generator_names()
    if compiler not in names:
        raise CompilerError(
            "Generated kernels cannot be collected from "
            f"`{compiler}`.{did_you_mean(compiler, names)} Choose one of {', '.join(names)}."
        )


def check_generator(compiler: str, options: Mapping[str, Any]) -> str:
    """Return the version of a compiler that can run here with these options.

    Raises:
        CompilerError: its generated code cannot be collected, or an option is wrong.
        CompilerUnavailableError: it cannot run here.
    """
    _check_name(compiler)
    return make_compiler(compiler, "torch", options).version()

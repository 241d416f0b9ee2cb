"""Compilers whose generated code can be collected, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..compilers import make_compiler
from ..errors import CompilerError
from ..sample import Sample
from ..suggestions import did_you_mean
from .generated import Generation

Generator = Callable[[Sample, Mapping[str, Any], str], Generation]


def _inductor() -> Generator:
    from .inductor import generate

    return generate


def _tc() -> Generator:
    from .tensor_comprehensions import generate

    return generate


def _tvm() -> Generator:
    from .tvm import generate

    return generate


_GENERATORS: Mapping[str, Callable[[], Generator]] = {
    "inductor": _inductor,
    "tc": _tc,
    "tvm": _tvm,
}


def generator_names() -> tuple[str, ...]:
    """Return the names of the compilers whose generated code can be collected.

    >>> generator_names()
    ('inductor', 'tc', 'tvm')
    """
    return tuple(_GENERATORS)


def generator_of(compiler: str) -> Generator:
    """Return the function that compiles a sample and collects its kernels.

    Raises:
        CompilerError: the generated code of this compiler cannot be collected.
    """
    if compiler not in _GENERATORS:
        raise CompilerError(
            "Generated kernels cannot be collected from "
            f"`{compiler}`.{did_you_mean(compiler, _GENERATORS)} "
            f"Choose one of {', '.join(_GENERATORS)}."
        )
    return _GENERATORS[compiler]()


def check_generator(compiler: str, options: Mapping[str, Any]) -> str:
    """Return the version of a compiler that can run here with these options.

    Raises:
        CompilerError: its generated code cannot be collected, or an option is wrong.
        CompilerUnavailableError: it cannot run here.
    """
    if compiler not in _GENERATORS:
        generator_of(compiler)
    return make_compiler(compiler, "torch", options).version()

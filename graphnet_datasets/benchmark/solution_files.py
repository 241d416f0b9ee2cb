"""Solutions as files: their languages, and the references by which workers load them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..compilers.function_source import store_source
from ..compilers.passes import PASS_NAMES
from ..compilers.replacement import (
    CALL_MARK,
    check_source,
    find_candidate_name,
    read_source,
)
from ..errors import CandidateError

SUFFIXES: Mapping[str, str] = {
    ".py": "python", ".cpp": "cpp", ".cc": "cpp", ".cu": "cuda", ".tc": "tc",
}  # fmt: skip
"""Languages of solutions by suffix. Triton kernels and FX passes are Python files."""
_WRAPPERS: Mapping[str, str] = {
    "cpp": """\
from graphnet_datasets.compilers.native import NativeCandidate

candidate = NativeCandidate({name!r}, {source!r})
""",
    "cuda": """\
from graphnet_datasets.compilers.native import NativeCandidate

candidate = NativeCandidate({name!r}, {source!r})
""",
    "tc": """\
from graphnet_datasets.tensor_comprehensions import define
from graphnet_datasets.tensor_comprehensions.polyhedral.isl import isl

isl()  # a first import in a call would be reported as a change of state
_definition = define({source!r})


def candidate(*inputs):
    return _definition(_definition.names[-1], *inputs)
""",
}
"""Python files whose candidate is a solution in another language."""
_TC = re.compile(
    r"\s*(#.*\n\s*)*def\s+\w+\s*\((?:\s*(?:u?int\d*|float\d*|double|bool|half)\b|\s*\))"
)


def language_of(source: str) -> str:
    """Return the language of a solution's text: `python`, `cpp`, `cuda` or `tc`.

    >>> [language_of(text) for text in ("def f(x): return x", 'extern "C" void f() {}',
    ...     "__global__ void k() {}", "def f(float(N) A) -> (B) { B(i) = A(i) }")]
    ['python', 'cpp', 'cuda', 'tc']
    """
    if "__global__" in source:
        return "cuda"
    if 'extern "C"' in source or re.search(r"^[ \t]*#include\b", source, re.MULTILINE):
        return "cpp"
    return "tc" if _TC.match(source) and "{" in source and "->" in source else "python"


def read_solution(path: Path) -> tuple[str, str]:
    """Return the text and the language of a solution's file.

    Raises:
        CandidateError: The file has another suffix or is not a source file of limited size.
    """
    language = SUFFIXES.get(path.suffix)
    if language is None:
        raise CandidateError(
            f"`{path.name}` has the suffix `{path.suffix}`. A solution is a file with one of the "
            f"suffixes {', '.join(f'`{suffix}`' for suffix in SUFFIXES)}."
        )
    return read_source(path), language


def reference_of_text(source: str, language: str, file_name: str | None = None) -> str:
    """Store a solution's text in the user's cache, and return the reference that a worker loads.

    Nothing of the text runs. Errors and verdicts call it `file_name`.

    Raises:
        CandidateError: The text is too long, or does not define exactly one Python candidate.
        CompilerError: The text cannot be stored.
    """
    check_source(source, "solution")
    wrapper = _WRAPPERS.get(language)
    if wrapper is not None:
        suffix = next(suffix for suffix, name in SUFFIXES.items() if name == language)
        name = file_name or f"candidate{suffix}"
        text = wrapper.format(source=source, name=name)
        return store_source(text, "candidate", f"{name}.py") + CALL_MARK
    return reference_of_file(Path(store_source(source, "solution").rpartition(":")[0]))


def reference_of_file(path: Path) -> str:
    """Return the reference of a Python file's candidate, or of its pass.

    Raises:
        CandidateError: The file cannot be read or does not define exactly one candidate.
    """
    name = find_candidate_name(path)
    return f"{path}:{name}" if name in PASS_NAMES else f"{path}:{name}{CALL_MARK}"

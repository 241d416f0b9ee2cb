"""Candidates that replace a whole graph: functions and modules that take the graph's inputs.

A reference to such a candidate ends with parentheses, as in `/path/to/file.py:softmax()`, because
the harness calls it with the inputs of the graph. A compiler is called with the graph instead.
"""

from __future__ import annotations

import functools
import inspect
import io
import tokenize
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..decoding import open_without_waiting
from ..errors import CandidateError
from ..suggestions import did_you_mean
from ..terminal import counted, first_few
from .base import Compiler
from .native import BUILD_LOG, NativeCandidate
from .passes import PASS_NAMES

CALL_MARK = "()"
"""The end of references to candidates that are called with the inputs of the graph."""
USUAL_NAMES = ("candidate", "Candidate", "ModelNew", *PASS_NAMES)
"""Names that are chosen if a file defines several functions and classes."""
MAX_SOURCE_LENGTH = 2**20
"""Maximum number of characters of a candidate's text."""
MAX_FRAMES = 5
"""Maximum number of lines of the candidate's own source in an error message."""
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def is_replacement(reference: str) -> bool:
    """Return whether a reference names a candidate that is called with the graph's inputs.

    >>> is_replacement("/tmp/mine.py:softmax()"), is_replacement("/tmp/mine.py:compile")
    (True, False)
    """
    return reference.endswith(CALL_MARK)


def find_candidate_name(path: Path) -> str:
    """Return the name of a file's candidate function or class without running the file.

    Candidates are the public functions and classes at the top level, except functions with a `jit`
    decorator, which are kernels. If there are several, one of `USUAL_NAMES` is chosen.

    Raises:
        CandidateError: The file is not a source file of limited size, or the number of remaining
            names is not one.
    """
    text = read_source(path)
    try:
        names = [*_public_names(text)]
    except (tokenize.TokenError, SyntaxError):
        return USUAL_NAMES[0]  # the worker reports the error when it imports the file
    chosen = [name for name in USUAL_NAMES if name in names] if len(names) > 1 else names
    if len(chosen) == 1:
        return chosen[0]
    listed = f" It defines {', '.join(f'`{name}`' for name in names)}." if names else ""
    raise CandidateError(
        f"`{path}` must define exactly one public function or class, or one of them named "
        f"`{USUAL_NAMES[0]}`.{listed} Select the candidate as `{path.name}:NAME`."
    )


def read_source(path: Path) -> str:
    """Return the text of a candidate's file.

    Raises:
        CandidateError: The file cannot be read, is too large or contains null bytes.
    """
    try:
        with open_without_waiting(path) as file:
            content = file.read(4 * MAX_SOURCE_LENGTH) or b""
    except OSError as error:
        raise CandidateError(
            f"The candidate `{path}` cannot be read: {error.strerror}. Pass the path of a source "
            "file."
        ) from error
    text = content.decode(errors="replace")
    check_source(text, str(path))
    return text


def check_source(text: str, name: str) -> None:
    """Check that a candidate's text can be a source file.

    Raises:
        CandidateError: The text is too long or contains null bytes.
    """
    if len(text) > MAX_SOURCE_LENGTH or "\0" in text:
        problem = "null bytes" if "\0" in text else f"more than {MAX_SOURCE_LENGTH:,} characters"
        raise CandidateError(
            f"The candidate `{name}` contains {problem}. Pass a source file of limited length."
        )


def _public_names(text: str) -> Iterator[str]:
    """Yield the public functions and classes at the top level of a Python text.

    Functions with a `jit` decorator are omitted. The text is tokenized and not parsed: parsing can
    take minutes for an f-string and a kilobyte of memory for each character.

    Raises:
        tokenize.TokenError, SyntaxError: The text is not Python.
    """
    depth, is_kernel = 0, False
    words: list[str] = []
    """The first two words of a statement, or all of a decorator."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.INDENT, tokenize.DEDENT):
            depth += 1 if token.type == tokenize.INDENT else -1
        elif token.type in (tokenize.NAME, tokenize.OP):
            if depth == 0 and (len(words) < 2 or words[0] == "@"):
                words.append(token.string)
        elif token.type == tokenize.NEWLINE and words:
            if words[0] == "@":
                is_kernel |= "".join(words).partition("(")[0].endswith("jit")
            else:
                word, name = (*words, "", "")[:2]
                is_candidate = word == "class" or (word == "def" and not is_kernel)
                if is_candidate and name.isidentifier() and not name.startswith("_"):
                    yield name
                is_kernel = False
            words = []


def make_replacement(reference: str, compiler_framework: str) -> type[Compiler]:
    """Return a compiler that replaces each graph by the candidate with this reference.

    The candidate's file is imported at the start of the compile phase.
    """

    class Replacement(Compiler):
        """A compiler that ignores the graph and calls a candidate with the graph's inputs."""

        name = reference.rpartition(":")[2]
        framework = compiler_framework
        package = ""
        extra = ""

        @classmethod
        def is_available(cls) -> tuple[bool, str]:
            return True, ""

        @classmethod
        def version(cls) -> str:
            return ""

        def use_caches(self, directory: Path) -> None:
            """Redirect caches, and import the candidate, which may compile when it is imported."""
            super().use_caches(directory)
            self._directory = directory
            self._target = _load(reference)

        def compile(
            self,
            module: Callable[..., Any],
            example_inputs: Mapping[str, Any],  # noqa: ARG002
        ) -> Callable[..., Any]:
            target = self._target
            if isinstance(target, NativeCandidate):  # the graph determines the sizes of outputs
                target, log = target.compile_for(
                    module, self.graph_inputs, self.graph_attributes, self._directory / "native"
                )
                self.warnings += [BUILD_LOG + log] if log else []
            name = self.name.removesuffix(CALL_MARK)
            return bind(target, name, self.graph_inputs, self.graph_attributes)

    return Replacement


def _load(reference: str) -> Any:
    from .registry import import_module_of

    module, _, attribute = reference.removesuffix(CALL_MARK).rpartition(":")
    names = vars(import_module_of(reference))
    if attribute not in names:
        raise CandidateError(
            f"`{Path(module).name}` defines no `{attribute}`.{did_you_mean(attribute, names)} "
            "Check the name after the colon."
        )
    return names[attribute]


def bind(
    target: Any,
    name: str,
    graph_inputs: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Return a callable that takes inputs of a graph as keywords and passes them to `target`.

    `graph_inputs` contains all inputs of the graph in order: weights that the graph holds as
    tensors, and None for inputs that each call passes. A class is instantiated first: the
    parameters of its constructor are names of held weights. The function, or the `forward` of the
    instance, takes the remaining inputs in order. If its parameters are names of inputs, it takes
    only these inputs. Parameters with names of `attributes`, the numeric arguments of the graph's
    operators, receive their values.

    Raises:
        CandidateError: The parameters fit neither the order nor the names of the inputs.

    >>> import numpy as np
    >>> scale = bind(lambda x, factor: x * factor, "scale", {"input_0": None, "parameter_0": 3})
    >>> scale(input_0=np.array([1, 2])).tolist()
    [3, 6]
    >>> bind(lambda parameter_0: parameter_0, "weight", {"input_0": None, "parameter_0": 3})(
    ...     input_0=0)
    3
    >>> bind(lambda x, op0_arg1: x * op0_arg1, "scale", {"input_0": None}, {"op0_arg1": 2})(
    ...     input_0=4)
    8
    """
    attributes = attributes or {}
    remaining = dict(graph_inputs)
    if inspect.isclass(target):
        weights = {key: value for key, value in graph_inputs.items() if value is not None}
        target = _with_attributes(target, attributes)
        names = _constructor_names(target, name, weights)
        target = target(**{key: weights[key] for key in names})
        remaining = {key: value for key, value in graph_inputs.items() if key not in names}
        if callable(getattr(target, "eval", None)):
            target.eval()
    if not callable(target):
        raise CandidateError(
            f"The candidate `{name}` has the type `{type(target).__name__}`, but it must be a "
            "function or a `torch.nn.Module`."
        )
    method = getattr(target, "forward", target)
    by_name, names = _names_of_call(_with_attributes(method, attributes), name, tuple(remaining))
    target = _with_attributes(target, attributes, method)
    weights = {key: remaining[key] for key in names if remaining[key] is not None}
    if by_name:

        def call_by_name(**inputs: Any) -> Any:
            return target(**{key: weights[key] if key in weights else inputs[key] for key in names})

        return call_by_name

    def call(**inputs: Any) -> Any:
        return target(*[weights[key] if key in weights else inputs[key] for key in names])

    return call


def note_own_lines(error: BaseException, reference: str) -> None:
    """Add the lines of the candidate's directory in an error's traceback to the error's notes.

    Only the last `MAX_FRAMES` lines are added, without directories.
    """
    folder = Path(reference.rpartition(":")[0]).parent
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).parent == folder
    ]
    if isinstance(error, SyntaxError) and error.filename and error.text:
        error.add_note(f"  {Path(error.filename).name}:{error.lineno}: {error.text.strip()}")
    for frame in frames[-MAX_FRAMES:]:
        error.add_note(
            f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}"
        )


def _with_attributes(
    function: Callable[..., Any], attributes: Mapping[str, Any], declared: Any = None
) -> Any:
    """Bind the parameters of a function that are names of attributes.

    `declared` is the function that declares the parameters, if it is another one.
    """
    try:
        parameters = inspect.signature(declared or function).parameters
    except (TypeError, ValueError):  # functions of extension modules may lack a signature
        return function
    values = {name: attributes[name] for name in parameters if name in attributes}
    return functools.partial(function, **values) if values else function


def _constructor_names(
    target: Callable[..., Any], name: str, weights: Mapping[str, Any]
) -> list[str]:
    """Return the weights that the constructor of a candidate takes."""
    parameters = [
        parameter
        for parameter in inspect.signature(target).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    for parameter in parameters:
        if parameter.name not in weights and parameter.default is parameter.empty:
            listed = f"The weights are {_listed(weights)}" if weights else "It has no weights"
            raise CandidateError(
                f"The constructor of `{name}` requires `{parameter.name}`, which is not a weight "
                f"of the graph.{did_you_mean(parameter.name, weights)} {listed}."
            )
    return [parameter.name for parameter in parameters if parameter.name in weights]


def _names_of_call(
    function: Callable[..., Any], name: str, inputs: Sequence[str]
) -> tuple[bool, Sequence[str]]:
    """Return whether a function is called by name, and the names of the inputs that it takes."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions of extension modules may lack a signature
        return False, inputs
    parameters = signature.parameters.values()
    named = [parameter.name for parameter in parameters if parameter.name in inputs]
    required = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if named and set(required) <= set(named):
        return True, named
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters) and not required:
        return True, inputs
    try:
        signature.bind(*inputs)
    except TypeError as error:
        positional = [parameter.name for parameter in parameters if parameter.kind in _BY_POSITION]
        raise CandidateError(
            f"`{name}({', '.join(positional)})` cannot be called with the "
            f"{counted(len(inputs), 'input')} of the graph: {error}. Take them in this order, or "
            f"name some of them: {_listed(inputs)}."
        ) from error
    return False, inputs


def _listed(names: Mapping[str, Any] | Sequence[str]) -> str:
    return first_few([f"`{name}`" for name in names], 12)

"""Generated Triton code as functions, compiled for a GPU.

Triton compiles Python functions from their source text. The text of `write_triton` is therefore
executed, and this is the only module that does so. The text comes from the same process or, in a
worker of the tuner, from the process that started it; it is never read from a cache. Executing it
only defines functions, which is checked first: apart from fixed imports, it consists of functions
decorated with `triton.jit`, whose bodies Triton translates and Python does not run. The generator
chooses all names in it, and text of a definition occurs only in comments.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import linecache
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import KernelCompileError, MissingExtraError
from ..language.types import ScalarType
from .body import Launch
from .program import PRELUDE

_CODES = {"bool": "i1", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
ALIGNMENT = 16
"""Bytes by which addresses must be divisible for reads of whole vectors."""


def check_installed() -> None:
    """Raise unless Triton is installed.

    Raises:
        MissingExtraError: Triton is not installed.
    """
    if importlib.util.find_spec("triton") is None:
        raise MissingExtraError("triton", "kernels", "Compiling Triton code")


def load_functions(source: str) -> dict[str, Any]:
    """Define the functions of a generated file and return them by name.

    Raises:
        KernelCompileError: the text has statements that `write_triton` never writes.
        MissingExtraError: Triton is not installed.
    """
    check_installed()
    names = _check(source)
    file = f"<tensor comprehension {hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    # Triton reads the text of functions through this cache.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": f"{__name__}.generated"}
    exec(compile(source, file, "exec", dont_inherit=True), scope)  # noqa: S102 - checked text
    return {name: scope[name] for name in names}


def _check(source: str) -> list[str]:
    """Parse source code of imports and functions, and return the names of the functions."""
    statements = ast.parse(source).body
    imports = ast.parse(PRELUDE).body
    if list(map(ast.dump, statements[: len(imports)])) != list(map(ast.dump, imports)):
        raise _unexpected(source, "other imports")
    names = []
    for statement in statements[len(imports) :]:
        if not isinstance(statement, ast.FunctionDef):
            raise _unexpected(source, f"the statement `{ast.unparse(statement)[:60]}`")
        arguments = statement.args
        is_plain = (
            [ast.unparse(decorator) for decorator in statement.decorator_list] == ["triton.jit"]
            and ast.unparse(arguments) == ", ".join(argument.arg for argument in arguments.args)
            and statement.returns is None
        )
        if not is_plain:
            raise _unexpected(source, f"the head of `{statement.name}`")
        for node in ast.walk(statement):
            name = getattr(node, "attr", None) or getattr(node, "id", None) or ""
            if name.startswith("_") or isinstance(node, ast.Import | ast.ImportFrom):
                raise _unexpected(source, f"`{ast.unparse(node)}`")
        names.append(statement.name)
    return names


def _unexpected(source: str, content: str) -> KernelCompileError:
    return KernelCompileError(
        f"Generated Triton code of {len(source)} characters contains {content}, which the "
        "generator never writes, so it is not executed. Pass the unchanged `source` of a "
        "`TritonProgram`."
    )


def compile_triton(
    source: str,
    launches: Sequence[Launch],
    types: Mapping[str, ScalarType],
    target: Any,
    *,
    is_aligned: bool = True,
) -> list[Any]:
    """Compile the kernels of a program; no GPU is needed.

    Args:
        source, launches, types: those of a `TritonProgram`.
        target: a `triton.backends.compiler.GPUTarget`, such as `GPUTarget("cuda", 90, 32)`.
        is_aligned: promise that all addresses are divisible by 16.

    Returns:
        A `triton.compiler.CompiledKernel` for each launch.

    Raises:
        KernelCompileError: Triton rejects the code.
        MissingExtraError: Triton is not installed.
    """
    functions = load_functions(source)
    from triton import compiler  # pyright: ignore[reportAttributeAccessIssue]
    from triton.runtime.errors import TritonError  # pyright: ignore[reportMissingImports]

    compiled = []
    for launch in launches:
        function = functions[launch.name]
        signature = {
            place: f"*{_code(types[name])}"
            for place, name in zip(function.arg_names, launch.arguments, strict=True)
        }
        attributes = {
            (place,): [["tt.divisibility", ALIGNMENT]]
            for place in range(len(signature) * is_aligned)
        }
        options = {"num_warps": launch.num_warps, "num_stages": launch.num_stages}
        try:
            text = compiler.ASTSource(function, signature, {}, attributes)
            compiled.append(compiler.compile(text, target=target, options=options))
        except (TritonError, RuntimeError) as error:
            raise KernelCompileError(
                f"Triton could not compile `{launch.name}`: {str(error)[-2000:]} Use smaller "
                'blocks, or compile with `Options(gpu="nvrtc")`.'
            ) from error
    return compiled


def _code(scalar: ScalarType) -> str:
    """Return Triton's abbreviation of a type.

    >>> from graphnet_datasets.tensor_comprehensions.language.types import FLOAT16, UINT8
    >>> _code(FLOAT16), _code(UINT8)
    ('fp16', 'u8')
    """
    return _CODES.get(scalar.name, f"{scalar.kind[0]}{scalar.bits}")

"""The exceptions of this library.

Every error caused by bad input derives from `GraphNetError` and, if callers would expect a builtin
exception, from that as well. A message consists of whole sentences: the problem, its location, and
the fix.
"""

from __future__ import annotations

import errno
import functools
import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from .credentials import hide_credentials
from .terminal import printable

_PACKAGE = Path(__file__).parent


class GraphNetError(Exception):
    """Base class of all errors that this library raises deliberately.

    Messages hide the credentials of URLs, escape control characters, and refer to the embedded
    dataset by name instead of path.

    >>> raise GraphNetError("`s3://me:secret@bucket` is not there.")
    Traceback (most recent call last):
    graphnet_datasets.errors.GraphNetError: `s3://***@bucket` is not there.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(_presentable(arg) if isinstance(arg, str) else arg for arg in args))


def _presentable(text: str) -> str:
    text = text.replace(f"{_PACKAGE}/starter/graphnet", "graphnet")
    return printable(hide_credentials(text.replace(f"{_PACKAGE}/", f"{_PACKAGE.name}/")))


class SampleError(GraphNetError, ValueError):
    """A sample breaks one of its invariants (dangling value, unknown dtype, oversized literal)."""


class SymbolError(SampleError):
    """A symbolic dimension or relation is outside the grammar or names an unknown symbol."""


class SourceError(SampleError):
    """A GraphNet source file contains code other than a straight-line graph."""


class SchemaError(GraphNetError, ValueError):
    """A row or table does not have the columns, types or values of this format version."""


class DecodedSizeError(SchemaError):
    """A file would take more memory than allowed when it is decoded."""


class FormatVersionError(SchemaError):
    """The format version of a table differs from the version that this library reads."""


UNKNOWN_ADVICE = (
    "This version of graphnet-datasets does not know it: leave the sample out, or ask for the "
    "operator on the project's issue page."
)


class UnknownOperatorError(SampleError, LookupError):
    """An operator is not in the operator table of its framework."""


class UnknownFrameworkError(GraphNetError, LookupError):
    """A framework does not exist or does not support the requested function."""


class MaterializeError(GraphNetError, RuntimeError):
    """A sample cannot be converted to a runnable module."""


class CalibrationError(GraphNetError, RuntimeError):
    """A sample cannot be calibrated or observed, because its graph does not run on its inputs.

    `operator` is the target of the failing operator.
    """

    def __init__(self, message: str, *, operator: str = "") -> None:
        super().__init__(message)
        self.operator = operator


class UntrustedCodeError(MaterializeError):
    """Data contains or names code that the caller has not allowed to run, or that was changed."""


class MemoryLimitError(MaterializeError, MemoryError):
    """A sample would need more memory than the caller allows."""


class TimeLimitError(MaterializeError, TimeoutError):
    """Preparing a sample, or running it, would take more time than the caller allows."""


class UncheckedOperatorError(MaterializeError):
    """A sample calls an operator whose kernel does not validate operands, without permission."""


class TransformError(SampleError):
    """A sample cannot be transformed.

    `operator` is the target of the operator that prevents it, or "". `reason` is the same for all
    samples rejected for the same cause, so rejections can be counted by it.

    >>> error = TransformError("`a` overflows at 3.", operator="torch.exp", reason="it overflows")
    >>> str(error), error.operator, error.reason
    ('`a` overflows at 3.', 'torch.exp', 'it overflows')
    """

    def __init__(self, message: str, *, operator: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.operator = operator
        self.reason = reason


class GradientError(TransformError):
    """The gradients of a sample cannot be expressed as a graph, or differ from autograd's."""


class TranslationError(SampleError):
    """A sample of one framework cannot be expressed in another."""


class CaptureError(GraphNetError, RuntimeError):
    """A live model cannot be captured as a graph."""


class DiskError(GraphNetError, OSError):
    """The disk is full, or a file or directory may not be read or written."""


def cannot_write(path: object, error: OSError) -> DiskError:
    """Return the error for a file or directory that cannot be written.

    >>> import errno
    >>> str(cannot_write("a.parquet", OSError(errno.ENOSPC, "No space left on device")))[:62]
    '`a.parquet` cannot be written: no space is left on its device.'
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskError(
            f"`{path}` cannot be written: no space is left on its device. Free some space, or "
            "choose a path on another device."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return DiskError(
            f"`{path}` cannot be written: you have no permission to write there. Choose a path in "
            "a directory that you own."
        )
    if error.errno == errno.EFBIG:
        return DiskError(
            f"`{path}` cannot be written: it would exceed the size limit of files (`ulimit -f`). "
            "Raise the limit, or choose a path on another file system."
        )
    reason = error.strerror or type(error).__name__
    return DiskError(f"`{path}` cannot be written: {reason}. Choose another path.")


class UnsafePathError(GraphNetError, ValueError):
    """A name from data leads outside its directory."""


class DatasetNotFoundError(GraphNetError, FileNotFoundError):
    """No dataset, config, split or sample exists with this name."""


class DatasetExistsError(GraphNetError, FileExistsError):
    """The destination of a dataset already exists."""


class PushError(GraphNetError, RuntimeError):
    """Samples or run records cannot be added to a repository, which was not changed."""


class MissingExtraError(GraphNetError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package `{package}`, which is not installed. "
            f"Install it with `pip install 'graphnet-datasets[{extra}]'`."
        )
        self.package = package
        self.extra = extra


class CompilerError(GraphNetError):
    """A compiler is unknown, unavailable or wrongly configured."""


class UnknownCompilerError(CompilerError, LookupError):
    """No compiler is registered under the given name."""


class CompilerUnavailableError(CompilerError, RuntimeError):
    """A registered compiler cannot run on this machine."""


class ConversionError(GraphNetError):
    """A sample cannot be converted to a format, or the converted graph differs from eager."""


class CandidateError(CompilerError, TypeError):
    """A candidate for a graph is missing or does not take the graph's inputs."""


class FixedInputError(CompilerError, ValueError):
    """Compiled code was called with a size or number that it does not support."""


class TensorComprehensionError(GraphNetError, ValueError):
    """A tensor comprehension cannot be read, specialised, compiled or called."""


class DefinitionError(TensorComprehensionError):
    """The text of a tensor comprehension is wrong: its grammar, names, types or size."""


class RangeInferenceError(TensorComprehensionError):
    """The ranges of a tensor comprehension's indices do not follow from the sizes of its inputs."""


class KernelInputError(TensorComprehensionError):
    """An argument of a tensor comprehension has the wrong number, type, rank, size or stride."""


class KernelCompileError(TensorComprehensionError, RuntimeError):
    """Generated code cannot be compiled or loaded: no compiler, a limit, or an invalid flag."""


class SchedulingLimitError(KernelCompileError):
    """Finding or checking the dependences of a tensor comprehension would take too long."""


class IllegalScheduleError(TensorComprehensionError):
    """A schedule would execute a statement before a statement that it depends on."""


class RunError(GraphNetError, RuntimeError):
    """A timed run cannot start or its results cannot be stored."""


class IsolatedCallError(RunError):
    """A call of an isolated module failed, or its process crashed or reached a limit."""


class BisectionError(RunError):
    """A compiler failure cannot be bisected: it does not occur, or eager also fails."""


class TuningError(GraphNetError, ValueError):
    """A task, candidate, record, state or budget of a tuning run is invalid."""


class UnverifiedProgramError(UntrustedCodeError, TuningError):
    """A workload, trace or target contains an item that the verifier's allow-list lacks."""


class ReplayError(TuningError, LookupError):
    """A proposed candidate has no measurement in the pool of records."""


class UnknownTunerError(TuningError):
    """A tuner or allocator does not exist or cannot be imported."""


class ScoreError(GraphNetError, ValueError):
    """Run records or parameters do not allow a score to be computed."""


_Function = TypeVar("_Function", bound=Callable[..., Any])


def raises_only(
    error: type[GraphNetError], *, passes: Callable[[Exception], bool] | None = None
) -> Callable[[_Function], _Function]:
    """Return a decorator that converts unexpected exceptions of a public function to `error`.

    Malformed data may raise any exception in a framework or in Python. With this decorator, callers
    need to catch only `GraphNetError` to continue with the next row. `MemoryError` becomes
    `MemoryLimitError`, and `OSError` becomes `DiskError`; the original exception is the cause.
    Exceptions for which `passes` returns true, such as those of the caller's own code, are not
    converted.

    >>> @raises_only(SampleError)
    ... def first(sample):
    ...     return sample["ops"]
    >>> first({})
    Traceback (most recent call last):
    graphnet_datasets.errors.SampleError: `first` raised KeyError: 'ops'. The data may be \
malformed. Omit it, or report the traceback if it comes from a real model.
    """

    def is_foreign(cause: Exception) -> bool:
        is_own = isinstance(cause, GraphNetError | ImportError)
        return not is_own and (passes is None or not passes(cause))

    def decorate(function: _Function) -> _Function:
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args: Any, **kwargs: Any) -> Any:
                try:
                    yield from function(*args, **kwargs)
                except Exception as cause:
                    if not is_foreign(cause):
                        raise
                    raise _own(cause, function.__name__, error) from cause

            return generate  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except Exception as cause:
                if not is_foreign(cause):
                    raise
                raise _own(cause, function.__name__, error) from cause

        return call  # type: ignore[return-value]

    return decorate


def _own(cause: Exception, name: str, error: type[GraphNetError]) -> Exception:
    text = " ".join(str(cause).split())[:300]
    problem = f"`{name}` raised {type(cause).__name__}: {text}."
    if isinstance(cause, MemoryError) or "can't allocate memory" in text:
        return MemoryLimitError(
            f"`{name}` ran out of memory. Omit the data, or use a machine with more memory."
        )
    if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
        unnamed = f"the output or for temporary files in `{tempfile.gettempdir()}`"
        place = f"`{cause.filename}`" if cause.filename else unnamed
        return DiskError(
            f"There is no space left for {place}. Free some, choose another output, or set "
            "`TMPDIR` to another directory."
        )
    if isinstance(cause, OSError) and cause.errno is not None:
        return DiskError(f"{problem} Check that the path can be read and written.")
    return error(
        f"{problem} The data may be malformed. Omit it, or report the traceback if it comes from a "
        "real model."
    )

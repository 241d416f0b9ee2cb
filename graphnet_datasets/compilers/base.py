"""The interface that every compiler implements."""

from __future__ import annotations

import abc
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..errors import FixedInputError
from .carrying import link_files
from .options import Option, check_options


class Compiler(abc.ABC):
    """Base class of compilers. Each run has its own instance.

    A subclass sets the class attributes and implements `compile`, often in about twenty lines.

    >>> class Twice(Compiler):
    ...     name = "twice"
    ...     def compile(self, module, example_inputs):
    ...         return lambda **inputs: module(**inputs) * 2
    >>> Twice().compile(lambda x: x + 1, {"x": 1})(x=1)
    4
    """

    name: ClassVar[str]
    framework: ClassVar[str] = "torch"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    """Device types for which the compiler can generate code."""
    package: ClassVar[str] = "torch"
    """The distribution that determines the compiler's version."""
    module: ClassVar[str] = ""
    """The module to import if it is not named after the package."""
    extra: ClassVar[str] = "torch"
    """The extra of this library that installs the package, or "" if there is no such extra."""
    option_table: ClassVar[Mapping[str, Option]] = {}
    uses_framework_compiler: ClassVar[bool] = True
    """Whether the compiler imports the framework's own compiler (`torch.compile` for torch). That
    import takes seconds, so it runs once, in the server that forks the worker processes.
    """

    carried_folder: ClassVar[str] = ""
    """The folder below the compiler's caches that `carry_caches` fills, or "" if the compiler does
    not take compiled code from a cache.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = check_options(self.name, self.option_table, options or {})
        self.warnings: list[str] = []
        """Warnings from compiling and running, for the run's record."""
        self.fallback_share: float | None = None
        """Share of operators that fell back to eager; None if the compiler does not report it."""
        self.trust_remote_code = False
        """Whether the caller allows code from data, such as the traces in tuning records."""
        self.graph_inputs: Mapping[str, Any] = {}
        """All inputs of the graph by name, in order: the weights that the module holds, and None
        for inputs that each call passes. Set before `compile`.
        """
        self.graph_attributes: Mapping[str, Any] = {}
        """Numeric arguments of the graph's operators (`analysis.attributes`). Set before `compile`.
        """
        self.excluded_time_s = 0.0
        """Part of the time spent in `compile` that was not compilation."""
        self.fixed_inputs: Mapping[str, Any] = {}
        """Fixed inputs by name, set by `compile`: the value of a number, or the sizes of a tensor
        as a tuple with `None` for each dynamic size.
        """

    @classmethod
    def is_available(cls) -> tuple[bool, str]:
        """Return whether the compiler can run here, and if not, the reason."""
        if importlib.util.find_spec(cls.module or cls.package) is None:
            hint = f" (pip install 'graphnet-datasets[{cls.extra}]')" if cls.extra else ""
            return False, f"`{cls.package}` is not installed{hint}"
        return True, ""

    @classmethod
    def version(cls) -> str:
        """Return the version of the compiler, or "" if it is not installed."""
        try:
            return importlib.metadata.version(cls.package)
        except importlib.metadata.PackageNotFoundError:
            return ""

    @classmethod
    def cache_environment(cls, directory: Path) -> dict[str, str]:
        """Return environment variables that put the compiler's caches into `directory`.

        They are set before the framework is imported, so that each run starts with empty caches.
        """
        return {
            "TORCHINDUCTOR_CACHE_DIR": str(directory / "inductor"),
            "TRITON_CACHE_DIR": str(directory / "triton"),
        }

    def use_caches(self, directory: Path) -> None:
        """Redirect the compiler's caches to `directory`, in this process only.

        TorchInductor reads the directory of precompiled headers when it is imported, possibly in
        the process that this worker was forked from. Its module variables are therefore set as
        well.
        """
        os.environ.update(self.cache_environment(directory))
        codecache: Any = sys.modules.get("torch._inductor.codecache")
        shared = getattr(codecache, "_HEADER_DIR", None)
        if shared is None:
            return
        headers = directory / "headers"
        (headers / "locks").mkdir(parents=True, exist_ok=True)
        for path in Path(shared).glob("*.h*"):
            (headers / path.name).symlink_to(path)
        codecache._HEADER_DIR = str(headers)
        codecache._HEADER_LOCK_DIR = str(headers / "locks")

    def carry_caches(self, carried: Path, directory: Path) -> bool:
        """Add the caches in `carried` to those in `directory`; return whether there are any.

        Call this after `use_caches` with the same `directory`. Files are linked; the compiler's
        own writes do not change `carried`.
        """
        if not self.carried_folder:
            return False
        return link_files(carried, directory / self.carried_folder) > 0

    @classmethod
    def prepare(cls) -> None:
        """Do the imports and detection that all runs share, in the server that forks the workers.

        Suitable work depends on neither graph nor options: importing the modules needed for
        compilation, for example, or detecting the instruction sets of the CPU. It must not touch a
        device or leave a thread running. Called only for the compilers of this library.
        """
        return

    @abc.abstractmethod
    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Compile `module` completely and return the callable that replaces it.

        Both callables take the inputs as keywords and return outputs of the same structure. All
        compilation belongs here: an error raised later by the returned callable counts as a failure
        of the run. The call may modify `example_inputs`, which are discarded afterwards. It runs in
        the gradient mode of the timed calls.
        """

    def note_fallback(self, share: float) -> None:
        """Record the share of operators that fell back to eager, and warn if it is not zero."""
        self.fallback_share = share
        if share > 0:
            self.warnings.append(f"fallback: {share:.0%} of the operators left to eager")

    def synchronize(self) -> None:  # noqa: B027 - a hook; most have nothing to wait for
        """Wait for work that the compiled callable started outside the framework's streams.

        The timer already synchronizes the framework's own device.
        """

    def check_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Check that the compiled callable accepts inputs with these sizes and values.

        Called only if a run changes the inputs after compiling, outside the timed section.

        Raises:
            FixedInputError: An input has a size or value that `fixed_inputs` does not allow.
        """
        for name, fixed in self.fixed_inputs.items():
            value = inputs[name]
            shape = getattr(value, "shape", None)
            if shape is None:
                is_taken, actual = value == fixed, value
            else:
                actual = tuple(shape)
                is_taken = len(actual) == len(fixed) and all(
                    size in (None, current) for size, current in zip(fixed, actual, strict=True)
                )
            if not is_taken:
                raise FixedInputError(
                    f"`{self.name}` compiled the input `{name}` for {fixed}, and it is {actual} "
                    "now. Compile again for it, or choose a compiler or an option that supports it."
                )

    def num_compilations(self) -> int:
        """Return the number of graphs compiled so far; an increase after `compile` is a
        recompilation.
        """
        return 1

    def phase_of(self, error: BaseException) -> Literal["compile", "run"]:
        """Return the phase to which an error from the compiled callable is attributed."""
        del error
        return "run"

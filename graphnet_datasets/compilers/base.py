"""What a compiler is to the benchmark: the interface that each one implements."""

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
from .options import Option, check_options


class Compiler(abc.ABC):
    """One way to turn a module into something faster; an instance serves one run.

    A subclass sets the class attributes and writes `compile`; twenty lines are enough.

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
    """Device types that the compiler produces code for."""
    package: ClassVar[str] = "torch"
    """The distribution whose version is the compiler's."""
    module: ClassVar[str] = ""
    """The module to be found where the package is installed, if it has another name."""
    extra: ClassVar[str] = "torch"
    """The extra of this library that installs the package, or "" if none does."""
    option_table: ClassVar[Mapping[str, Option]] = {}
    uses_framework_compiler: ClassVar[bool] = True
    """Whether compiling needs what the framework's own compiler imports, `torch.compile` of torch.
    That takes seconds, so it is done once, in the process that worker processes are forked from."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = check_options(self.name, self.option_table, options or {})
        self.warnings: list[str] = []
        """What was noticed while compiling and running, for the run's record."""
        self.fallback_share: float | None = None
        """Share of the operators that were left to eager, None where the compiler does not tell."""
        self.trust_remote_code = False
        """Whether the caller allows code that came with data, such as traces of tuning records."""
        self.excluded_time_s = 0.0
        """Part of the time spent in `compile` that was not compilation."""
        self.fixed_inputs: Mapping[str, Any] = {}
        """By name, the number that an input is fixed at, or for a tensor the tuple of its fixed
        sizes, with `None` for a size that may change. `compile` sets it."""

    @classmethod
    def is_available(cls) -> tuple[bool, str]:
        """Tell whether the compiler can run here; if not, the second item says why not."""
        if importlib.util.find_spec(cls.module or cls.package) is None:
            hint = f" (pip install 'graphnet-datasets[{cls.extra}]')" if cls.extra else ""
            return False, f"`{cls.package}` is not installed{hint}"
        return True, ""

    @classmethod
    def version(cls) -> str:
        """Return the version of the compiler, or "" where it is not installed."""
        try:
            return importlib.metadata.version(cls.package)
        except importlib.metadata.PackageNotFoundError:
            return ""

    @classmethod
    def cache_environment(cls, directory: Path) -> dict[str, str]:
        """Return environment variables that put the compiler's caches into `directory`.

        They are set before the framework is imported, so that each run compiles anew.
        """
        return {
            "TORCHINDUCTOR_CACHE_DIR": str(directory / "inductor"),
            "TRITON_CACHE_DIR": str(directory / "triton"),
        }

    def use_caches(self, directory: Path) -> None:
        """Put the compiler's caches into `directory`, from now on and in this process alone.

        TorchInductor reads its directory of precompiled headers once, when it is imported, which
        the process that this one was forked from may have done.
        """
        os.environ.update(self.cache_environment(directory))
        codecache = sys.modules.get("torch._inductor.codecache")
        shared = getattr(codecache, "_HEADER_DIR", None)
        if shared is None:
            return
        headers = directory / "headers"
        (headers / "locks").mkdir(parents=True, exist_ok=True)
        for path in Path(shared).glob("*.h*"):
            (headers / path.name).symlink_to(path)
        setattr(codecache, "_HEADER_DIR", str(headers))  # noqa: B010 (not in torch's stubs)
        setattr(codecache, "_HEADER_LOCK_DIR", str(headers / "locks"))  # noqa: B010

    @classmethod
    def prepare(cls) -> None:
        """Import and find out once, in the process that worker processes are forked from.

        Only for what depends on neither graph nor options and is the same in every run, such as
        the modules that compiling imports, or which instructions the C++ compiler can produce. It
        must not touch a device or start a thread that stays. Called for compilers that come with
        this library.
        """
        return

    @abc.abstractmethod
    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Compile `module` to the end and return what is called in its place.

        Both are called with the inputs as keywords and return the same structure of outputs. All
        that is compilation happens here: what the returned callable raises counts as a failure
        of the run. `example_inputs` may be changed by the call and are thrown away after it.
        Called under the gradient mode of the timed calls.
        """

    def note_fallback(self, share: float) -> None:
        """Record which share of the operators was left to eager, with a warning if any was."""
        self.fallback_share = share
        if share > 0:
            self.warnings.append(f"fallback: {share:.0%} of the operators left to eager")

    def synchronize(self) -> None:  # noqa: B027 - a hook; most have nothing to wait for
        """Wait until what the compiled callable started outside the framework's streams is done.

        The clock waits for the framework's own device by itself.
        """

    def check_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Check that the compiled callable takes inputs of these sizes and numbers.

        Only called where a run changes them after compiling, outside the clock.

        Raises:
            FixedInputError: an input has another size or value than `fixed_inputs` allows.
        """
        for name, fixed in self.fixed_inputs.items():
            value = inputs[name]
            shape = getattr(value, "shape", None)
            if shape is None:
                is_taken, actual = value == fixed, value
            else:
                actual = tuple(shape)
                is_taken = len(actual) == len(fixed) and all(
                    size in (None, now) for size, now in zip(fixed, actual, strict=True)
                )
            if not is_taken:
                raise FixedInputError(
                    f"`{self.name}` compiled the input `{name}` for {fixed}, and it is {actual} "
                    "now. Compile again for it, or choose a compiler or an option that takes it."
                )

    def num_compilations(self) -> int:
        """Return how many graphs were compiled so far; growth after `compile` is recompilation."""
        return 1

    def phase_of(self, error: BaseException) -> Literal["compile", "run"]:
        """Return the phase to which an error raised by the compiled callable belongs."""
        del error
        return "run"

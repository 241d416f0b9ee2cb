"""The registry of frameworks.

A framework backend is a package with the modules in `protocols.MODULES`. Two backends are built in.
Others are discovered through the entry point group `graphnet_datasets.frameworks`, whose values
name such packages. Code outside `frameworks/` never branches on the framework; it requests a module
by name.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import importlib.util
import logging
import re
from types import ModuleType
from typing import Literal, overload

from ..collector import not_collecting
from ..errors import MissingExtraError, UnknownFrameworkError
from ..sample.vocabulary import FRAMEWORK_GROUP, framework_names, framework_package
from . import protocols
from .protocols import MODULES

_LOGGER = logging.getLogger("graphnet_datasets")

FRAMEWORK_VARIABLE = "GRAPHNET_DATASETS_FRAMEWORK"
"""The environment variable that names the framework of a fork server's jobs."""


@dataclasses.dataclass(frozen=True)
class Framework:
    """Properties of a framework that are known without importing it.

    `package` is the backend package and `imported_as` the import name of the framework. Any of
    `distributions` installs it. `validation` is the module with the validation checks that run a
    sample, or "". If `is_walk_native`, even shape inference runs native code,
    which a malicious graph can crash. `newest_tested` is the newest (major, minor) version that
    this library has been tested with.
    """

    name: str
    package: str
    imported_as: str
    distributions: tuple[str, ...]
    validation: str = ""
    is_walk_native: bool = False
    newest_tested: tuple[int, int] | None = None

    @property
    def is_installed(self) -> bool:
        """True if the framework is installed; it is not imported."""
        return importlib.util.find_spec(self.imported_as) is not None

    def versions(self) -> dict[str, str]:
        """Return the installed distribution and its version, or the first distribution and "" if
        the framework is not installed."""
        for distribution in self.distributions:
            try:
                return {distribution: importlib.metadata.version(distribution)}
            except importlib.metadata.PackageNotFoundError:
                continue
        return {self.distributions[0]: ""}

    def warn_if_untested(self) -> None:
        """Log a warning if the installed version is newer than `newest_tested`."""
        ((distribution, version),) = self.versions().items()
        if not _is_newer(version, self.newest_tested):
            return
        tested = ".".join(map(str, self.newest_tested or ()))
        _LOGGER.warning(
            "%s %s is newer than %s, the newest version that graphnet-datasets has been tested "
            "with. Please report graphs that worked before and fail now.",
            distribution,
            version,
            tested,
        )

    def missing(self, purpose: str) -> MissingExtraError:
        """Return the error that explains how to install the framework."""
        return MissingExtraError(self.distributions[0], self.name, purpose)


_BUILT_IN = {
    framework.name: framework
    for framework in (
        Framework(
            "torch",
            "graphnet_datasets.frameworks.torch",
            "torch",
            ("torch",),
            "graphnet_datasets.validation.torch_worker",
            newest_tested=(2, 13),
        ),
        Framework(
            "paddle",
            "graphnet_datasets.frameworks.paddle",
            "paddle",
            ("paddlepaddle", "paddlepaddle-gpu"),
            "graphnet_datasets.validation.paddle_worker",
            is_walk_native=True,
            newest_tested=(3, 3),
        ),
    )
}


def framework_named(name: str) -> Framework:
    """Return the framework with the given name.

    Raises:
        UnknownFrameworkError: there is no such framework; the message lists the available
            frameworks.

    >>> framework_named("paddle").distributions[0]
    'paddlepaddle'
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    package = framework_package(name)
    if package is None:
        raise UnknownFrameworkError(
            f"There is no framework `{name}`. There are {', '.join(framework_names())}; packages "
            f"add frameworks through the entry point group `{FRAMEWORK_GROUP}`."
        )
    root = package.partition(".")[0]
    validation = f"{package}.validation"
    has_checks = importlib.util.find_spec(validation) is not None
    return Framework(name, package, root, (root,), validation if has_checks else "")


@overload
def module(name: str, part: Literal["materialize"], purpose: str = "") -> protocols.Materialize: ...
@overload
def module(name: str, part: Literal["tensors"], purpose: str = "") -> protocols.Tensors: ...
@overload
def module(name: str, part: Literal["operators"], purpose: str = "") -> protocols.Operators: ...
@overload
def module(name: str, part: Literal["runtime"], purpose: str = "") -> protocols.RuntimeModule: ...
@overload
def module(name: str, part: Literal["results"], purpose: str = "") -> protocols.Results: ...
@overload
def module(name: str, part: Literal["printer"], purpose: str = "") -> protocols.Printer: ...
@overload
def module(name: str, part: Literal["source"], purpose: str = "") -> protocols.Source: ...
@overload
def module(name: str, part: Literal["costs"], purpose: str = "") -> protocols.Costs: ...
@overload
def module(name: str, part: Literal["calibration"], purpose: str = "") -> protocols.Calibration: ...
@overload
def module(name: str, part: Literal["observing"], purpose: str = "") -> protocols.Observing: ...
@overload
def module(name: str, part: Literal["oracle"], purpose: str = "") -> protocols.Oracle: ...
@overload
def module(name: str, part: Literal["profiling"], purpose: str = "") -> protocols.Profiling: ...
@overload
def module(name: str, part: Literal["regions"], purpose: str = "") -> protocols.Regions: ...
@overload
def module(name: str, part: Literal["gradients"], purpose: str = "") -> protocols.Derivatives: ...
@overload
def module(name: str, part: Literal["fusion"], purpose: str = "") -> protocols.FusionModule: ...
@overload
def module(name: str, part: Literal["probing"], purpose: str = "") -> protocols.Probing: ...
@overload
def module(name: str, part: Literal["extract"], purpose: str = "") -> protocols.Extract: ...
@overload
def module(name: str, part: Literal["peaks"], purpose: str = "") -> protocols.Peaks: ...
@overload
def module(name: str, part: str, purpose: str = "") -> object: ...
def module(name: str, part: str, purpose: str = "") -> object:
    """Import one of the `MODULES` of a framework.

    `purpose` is the reason given in the error message if the framework is not installed.

    Raises:
        UnknownFrameworkError: there is no such framework, or its package has no such module.
        MissingExtraError: the framework is not installed.

    >>> module("torch", "operators").lookup("operator.add").name
    'operator.add'
    """
    if part not in MODULES:
        raise ValueError(f"`{part}` is not a module of a framework: {', '.join(MODULES)}.")
    framework = framework_named(name)
    try:
        imported = _import(framework.package, part)
    except ModuleNotFoundError as error:
        if error.name == f"{framework.package}.{part}":
            raise UnknownFrameworkError(
                f"The framework `{name}` has no module `{part}` ({_summary(part)})."
            ) from error
        if error.name == framework.imported_as:
            raise framework.missing(purpose or f"Running samples of {name}") from error
        raise
    _warn_once(framework)
    return imported


def _summary(part: str) -> str:
    """Return the first line of a protocol's docstring without its full stop."""
    return (MODULES[part].__doc__ or "").partition("\n")[0].rstrip(".")


@functools.cache
def _warn_once(framework: Framework) -> None:
    framework.warn_if_untested()


def _is_newer(version: str, tested: tuple[int, int] | None) -> bool:
    release = re.match(r"(\d+)\.(\d+)", version)
    if tested is None or release is None:
        return False
    return (int(release[1]), int(release[2])) > tested


@functools.cache
def _import(package: str, part: str) -> ModuleType:
    with not_collecting():
        return importlib.import_module(f"{package}.{part}")


def offers(name: str, part: str) -> bool:
    """Return whether a framework's package has a module, without importing the module.

    >>> offers("torch", "profiling"), offers("paddle", "profiling")
    (True, False)
    """
    return importlib.util.find_spec(f"{framework_named(name).package}.{part}") is not None

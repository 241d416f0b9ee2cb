"""Selection of the compilers that run each sample: those of the sample's framework."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..compilers import find_entry
from ..errors import RunError, UnknownCompilerError
from ..frameworks import framework_named, framework_names
from ..frameworks.builds import find_build_problem
from ..storage.filters import Filters, as_filters
from ..storage.selection import Chosen, choose, no_match


def match_compilers(
    dataset: Any,
    filters: Any,
    source: str | os.PathLike[str],
    compilers: Sequence[str],
) -> tuple[Chosen, dict[str, list[str]]]:
    """Return the selected samples, not read yet, and, by framework, the compilers that run them.

    Samples of a framework without a compiler are excluded. The framework of a compiler named as
    `module:attribute` is only known once it is loaded. If there are samples of several frameworks,
    such a compiler is assumed to be for torch.

    Raises:
        UnknownCompilerError: a compiler supports none of the samples.
        DatasetNotFoundError: no sample matches the filters.
        RunError: no compiler or no sample was given.
    """
    if not compilers:
        raise RunError("No compiler was passed. Pass at least one name.")
    dataset = list(dataset) if isinstance(dataset, Iterator) else dataset
    if isinstance(dataset, list | tuple) and not dataset:
        raise RunError("No sample was passed. Pass names or samples.")
    filters = as_filters(filters)
    by_compiler = _frameworks_of_compilers(compilers, filters)  # raises before the slower reading
    supported = frozenset().union(*by_compiler.values())
    # Select all samples first: a limit applies to the samples that will run, which requires their
    # framework.
    chosen = choose(dataset, filters, dataset=source)
    names = chosen.frameworks
    if not filters.framework and not names.isdisjoint(supported):
        names &= supported
    frameworks = [name for name in framework_names() if name in names]
    if not frameworks:
        raise no_match(dataset, filters, dataset=source)
    matched: dict[Any, list[str]] = {framework: [] for framework in frameworks}
    for name, able in by_compiler.items():
        fitting = [framework for framework in frameworks if framework in able]
        if not fitting:
            find_entry(name, frameworks[0])  # raises an error that lists the known compilers
        for framework in fitting[:1] if ":" in name else fitting:
            matched[framework].append(name)
    run_by = {framework: names for framework, names in matched.items() if names}
    return chosen, run_by


def check_builds(compilers: Sequence[str], filters: Any, devices: Sequence[str]) -> None:
    """Raise if no framework of the compilers is built for the requested GPUs.

    Raises:
        UnknownCompilerError: there is no compiler with this name.
        RunError: the frameworks are built without CUDA.
    """
    filters = as_filters(filters)
    supported = frozenset().union(*_frameworks_of_compilers(compilers, filters).values())
    chosen = filters.framework or framework_names()
    usable = [name for name in chosen if name in supported and framework_named(name).is_installed]
    for device in devices:
        if problem := find_build_problem(usable, device):
            raise RunError(problem)


def _frameworks_of_compilers(compilers: Sequence[str], filters: Filters) -> dict[str, list[str]]:
    """Return the frameworks of each compiler.

    Raises:
        UnknownCompilerError: there is no compiler with this name.
    """
    by_compiler = {name: _frameworks_of(name) for name in compilers}
    for name, frameworks in by_compiler.items():
        if not frameworks:
            find_entry(name, (filters.framework or framework_names())[0])
    return by_compiler


def _frameworks_of(name: str) -> list[str]:
    names = []
    for framework in framework_names():
        try:
            find_entry(name, framework)
        except UnknownCompilerError:
            continue
        names.append(framework)
    return names

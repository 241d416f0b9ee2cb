"""One known bug of a compiler."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from graphnet_datasets.sample import Sample

GITHUB = "https://github.com"
PREFIX = "compiler_bugs"
"""Prefix of the ids of graphs."""
SOURCE = "graphnet-datasets/builder"


@dataclasses.dataclass(frozen=True)
class Bug:
    """A function of tensors, its inputs, and the report of the bug.

    `function` takes one tensor for each of `inputs`; `sample` is a graph written by hand instead of
    a function. The report is about `compiler` with `options`. `report` is its path on GitHub, or
    None if there is no known report. `versions` are the affected versions, or the date of the
    report. `note` describes the right and the wrong result. A bug with `num_variations` only shows
    in calls with other scalar inputs, and is run with and without them. `is_as_reported` is False
    if the compiler still fails, but in another way than reported.
    """

    name: str
    title: str
    compiler: str
    report: str | None
    versions: str
    note: str
    function: Callable[..., Any] | None = None
    inputs: tuple[npt.NDArray, ...] = ()
    sample: Sample | None = None
    framework: str = "torch"
    num_variations: int = 0
    is_as_reported: bool = True

    @property
    def url(self) -> str | None:
        """The address of the report."""
        return None if self.report is None else f"{GITHUB}/{self.report}"


class Catalog:
    """Collects the bugs of one compiler."""

    def __init__(self, compiler: str, prefix: str = "") -> None:
        self.bugs: list[Bug] = []
        self._compiler = compiler
        self._prefix = prefix or compiler

    def add(
        self,
        name: str,
        title: str,
        report: str | None,
        versions: str,
        note: str,
        function: Callable[..., Any],
        *inputs: Any,
        num_variations: int = 0,
        is_as_reported: bool = True,
    ) -> None:
        """Add a bug; `inputs` are arrays, lists of floats (float32), integers (int64) or bools."""
        bug = Bug(
            name=f"{self._prefix}/{name}",
            title=title,
            compiler=self._compiler,
            report=report,
            versions=versions,
            note=note,
            function=function,
            inputs=tuple(map(_array, inputs)),
            num_variations=num_variations,
            is_as_reported=is_as_reported,
        )
        self.bugs.append(bug)


def _array(values: Any) -> npt.NDArray:
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def normals(*shape: int, seed: int = 0) -> npt.NDArray:
    """Return float32 elements of the standard normal distribution, the same on every machine.

    >>> normals(2, 3).shape
    (2, 3)
    """
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)

"""The state of this machine: versions, confinement and load."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Mapping
from typing import Any

from ..frameworks import framework_named, framework_names
from ..isolation.confinement import available_layers
from ..version import __version__


@dataclasses.dataclass(frozen=True)
class Machine:
    """The state of a machine; `load` is the mean number of running processes in the last minute."""

    threads: int
    load: float
    confinement: Mapping[str, bool]
    frameworks: Mapping[str, str]
    python: str = dataclasses.field(default_factory=platform.python_version)
    version: str = __version__

    @classmethod
    def read(cls) -> Machine:
        """Return the state of this machine.

        >>> Machine.read().threads >= 1
        True
        """
        frameworks = {}
        for name in framework_names():
            framework = framework_named(name)
            if framework.is_installed:
                frameworks[name] = next(iter(framework.versions().values()))
        return cls(
            threads=len(os.sched_getaffinity(0)),
            load=os.getloadavg()[0],
            confinement=available_layers(),
            frameworks=frameworks,
        )

    @property
    def layers(self) -> str:
        """The layers of confinement with `on` or `off`."""
        states = ((name, "on" if is_on else "off") for name, is_on in self.confinement.items())
        return ", ".join(f"{name} {state}" for name, state in states)

    @property
    def packages(self) -> str:
        """The versions of this library, Python and the frameworks."""
        versions = {"graphnet-datasets": self.version, "Python": self.python, **self.frameworks}
        return ", ".join(f"{name} {version}" for name, version in versions.items())

    def warnings(self) -> list[str]:
        """Return sentences about missing layers of confinement and other processes."""
        sentences = []
        missing = [name for name, is_on in self.confinement.items() if not is_on]
        if missing:
            sentences.append(
                f"This system lacks {' and '.join(missing)}, so workers are less confined. Run "
                "samples from strangers on another machine, or in a container with a recent kernel."
            )
        if self.load > self.threads / 2:
            sentences.append(
                "Other processes use the processors. Timings will have wide intervals."
            )
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "graphnet_datasets": self.version,
            "python": self.python,
            "frameworks": dict(self.frameworks),
            "threads": self.threads,
            "load": self.load,
            "confinement": dict(self.confinement),
        }

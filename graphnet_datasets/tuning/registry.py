"""Registry of tuners and allocators: built-in, registered, entry points and references.

Only names that the user typed or installed are imported, never names from rows or files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..compilers.registry import import_reference
from ..errors import TuningError, UnknownTunerError
from ..plugins import entry_points
from ..suggestions import did_you_mean
from .interfaces import Space, TaskAllocator, Tuner
from .task import Task


@dataclasses.dataclass
class _Registry:
    kind: str
    entry_point_group: str
    builtin: Mapping[str, str]
    base: type
    registered: dict[str, Any] = dataclasses.field(default_factory=dict)

    def names(self) -> list[str]:
        points = entry_points(self.entry_point_group)
        return sorted({*self.builtin, *self.registered, *(point.name for point in points)})

    def register(self, name: str, factory: Any) -> Any:
        if factory is None:
            return lambda decorated: self.register(name, decorated)
        if name in self.builtin or name in self.registered or ":" in name:
            raise UnknownTunerError(
                f"The {self.kind} name `{name}` is already taken or contains a colon. Choose "
                "another name."
            )
        self.registered[name] = factory
        return factory

    def find(self, name: str) -> Callable[..., Any]:
        if name in self.registered:
            return self.registered[name]
        reference = self.reference(name)
        return import_reference(reference, kind=self.kind, error_type=UnknownTunerError)

    def reference(self, name: str) -> str:
        reference = self.builtin.get(name, name if ":" in name else None)
        if reference is None:
            points = entry_points(self.entry_point_group)
            reference = next((point.value for point in points if point.name == name), None)
        if reference is None:
            raise UnknownTunerError(
                f"There is no {self.kind} `{name}`.{did_you_mean(name, self.names())} Choose from "
                f"{', '.join(self.names())}, register a new one, or pass `module:attribute`."
            )
        return reference

    def make(self, name: str, first: Any, seed: int, options: Mapping[str, Any] | None) -> Any:
        factory = self.find(name)
        try:
            instance = factory(first, seed=seed, **(options or {}))
        except TypeError as error:
            raise TuningError(
                f"The {self.kind} `{name}` cannot be created with the options "
                f"{dict(options or {})}: {error}. Pass only options that it accepts."
            ) from error
        if not isinstance(instance, self.base):
            raise UnknownTunerError(
                f"The {self.kind} `{name}` returned `{type(instance).__name__}`. Return an "
                f"instance of `graphnet_datasets.tuning.{self.base.__name__}`."
            )
        return instance


_TUNERS = _Registry(
    "tuner",
    "graphnet_datasets.tuners",
    {
        "random": f"{__package__}.tuners.random:RandomTuner",
        "ansor": f"{__package__}.tuners.ansor:AnsorTuner",
        "gptune": f"{__package__}.tuners.gptune:GpTuner",
        "bolt": f"{__package__}.tuners.bolt:BoltTuner",
        "oneshot": f"{__package__}.tuners.oneshot:OneShotTuner",
        "alt": f"{__package__}.tuners.alt:AltTuner",
    },
    Tuner,
)
_ALLOCATORS = _Registry(
    "allocator",
    "graphnet_datasets.allocators",
    {
        "round-robin": f"{__package__}.allocators.round_robin:RoundRobin",
        "gradient": f"{__package__}.allocators.gradient:GradientAllocator",
        "dynatune": f"{__package__}.allocators.dynatune:DynaTune",
    },
    TaskAllocator,
)


def register_tuner(name: str, factory: Any = None) -> Any:
    """Register a tuner under a name; also a decorator, `@register_tuner("mine")`.

    `factory` takes `(space, *, seed=0, **options)` and returns a `Tuner`. A package registers
    tuners under the entry point group `graphnet_datasets.tuners`.

    Raises:
        UnknownTunerError: the name is taken.
    """
    return _TUNERS.register(name, factory)


def register_allocator(name: str, factory: Any = None) -> Any:
    """Register an allocator under a name; also a decorator.

    `factory` takes `(tasks, *, seed=0, **options)` and returns a `TaskAllocator`. A package
    registers allocators under the entry point group `graphnet_datasets.allocators`.

    Raises:
        UnknownTunerError: the name is taken.
    """
    return _ALLOCATORS.register(name, factory)


def list_tuners() -> list[str]:
    """Return the names of all tuners.

    >>> {"random", "ansor", "gptune", "bolt", "oneshot", "alt"} <= set(list_tuners())
    True
    """
    return _TUNERS.names()


def list_allocators() -> list[str]:
    """Return the names of all allocators.

    >>> {"round-robin", "gradient", "dynatune"} <= set(list_allocators())
    True
    """
    return _ALLOCATORS.names()


def check_names(tuner: str, allocator: str) -> None:
    """Raise an error for an unknown tuner or allocator, without importing either.

    Raises:
        UnknownTunerError: there is no tuner or allocator with this name.

    >>> check_names("ansor", "gradient")
    """
    for registry, name in ((_TUNERS, tuner), (_ALLOCATORS, allocator)):
        if name not in registry.registered:
            registry.reference(name)


def make_tuner(
    name: str, space: Space, *, seed: int = 0, options: Mapping[str, Any] | None = None
) -> Tuner:
    """Return a tuner over a space; `name` may be `module:attribute` or `file.py:attribute`.

    Raises:
        UnknownTunerError: the name is unknown, or does not refer to a tuner.
        TuningError: the tuner does not accept the options.
        MissingExtraError: a library that the tuner needs is not installed.
    """
    return _TUNERS.make(name, space, seed, options)


def make_allocator(
    name: str, tasks: Sequence[Task], *, seed: int = 0, options: Mapping[str, Any] | None = None
) -> TaskAllocator:
    """Return an allocator over tasks; `name` may be `module:attribute` or `file.py:attribute`.

    Raises:
        UnknownTunerError: the name is unknown, or does not refer to an allocator.
        TuningError: the allocator does not accept the options.
    """
    return _ALLOCATORS.make(name, tasks, seed, options)

"""Decorators that capture the first call of a module or module class, for all frameworks.

A capturing module is an instance of a subclass of the original module's class and shares its
attributes. It therefore behaves like the original module except when called.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import inspect
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from ..errors import CaptureError, raises_only
from ..sample import Sample

Capture = Callable[
    [Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], tuple[Any, list[Sample]]
]
"""A function that captures a call. It takes the module, the function to call and its arguments, and
returns the outputs and the samples."""

_CHILDREN = ("_modules", "_sub_layers")
"""The attributes in which torch and paddle store the submodules of a module."""

_PACKAGE = Path(__file__).parents[1]
_PYTHON = Path(sysconfig.get_path("stdlib"))
_LIBRARIES = {"torch", "paddle", "numpy", "sympy", "networkx", "pyarrow", "datasets"}
"""Packages whose functions a capture calls."""
_LAYERS = ("torch/nn/modules/", "paddle/nn/layer/")

capture_lock = threading.RLock()
"""Held during a capture: tracers and random generators are global to the process."""

_NAMES = ("__name__", "__qualname__", "__module__", "__doc__")


class Record(Protocol):
    """A receiver for the samples of all modules that one decorator captures."""

    def check(self) -> None:
        """Raise the errors that can be detected before the module is called."""
        ...

    def name(self, samples: list[Sample]) -> list[Sample]:
        """Return the samples of one module with ids that no earlier module uses."""
        ...

    def write(self) -> None:
        """Write the samples of all modules captured so far."""
        ...


@dataclasses.dataclass(frozen=True)
class FirstCall:
    """The capture function for the first call of a module, and the receiver of its samples.

    Calls for which `is_traced` is true belong to another tracer and are not captured.
    """

    capture: Capture
    record: Record | None = None
    is_traced: Callable[[tuple[Any, ...], dict[str, Any]], bool] = lambda _args, _kwargs: False


class CapturingWrapper:
    """Base class of the classes of capturing modules.

    `samples` holds the samples of the first call, and is empty before it.
    """

    __slots__ = ()
    samples: list[Sample]


def make_decorator(base: type[Any], first_call: FirstCall) -> Callable[[Any], Any]:
    """Return a decorator for instances and subclasses of `base`, the framework's module class.

    Raises:
        CaptureError: (the decorator) its argument is neither an instance nor a subclass of `base`.
    """

    def decorate(target: Any) -> Any:
        if isinstance(target, type) and issubclass(target, base):
            return _decorate_class(target, first_call)
        if isinstance(target, base):
            return _wrap(plain_module(target), first_call)
        name = f"{base.__module__.partition('.')[0]}.nn.{base.__name__}"
        raise CaptureError(
            f"`extract` accepts a `{name}`, a subclass of it, or a Python function, not a "
            f"`{type(target).__name__}`. Call it in a function and decorate the function."
        )

    return decorate


def _decorate_class(cls: type[Any], first_call: FirstCall) -> type[Any]:
    """Make `cls` and its subclasses construct capturing instances, and return `cls`.

    The class object keeps its identity, since `super(Net, self)` in its methods and `pickle` look
    it up by name.
    """
    make: Any = cls.__new__

    @functools.wraps(cls.__init__)  # `inspect.signature` of a class reads `__new__` first
    def new(subclass: type[Any], *args: Any, **kwargs: Any) -> Any:
        if not issubclass(subclass, CapturingWrapper):
            subclass = _capturing_class(subclass, first_call)
        module = make(subclass) if make is object.__new__ else make(subclass, *args, **kwargs)
        object.__setattr__(module, "samples", [])
        object.__setattr__(module, "_module", None)
        return module

    new.__name__, new.__qualname__ = "__new__", f"{cls.__qualname__}.__new__"
    cls.__new__ = staticmethod(new)  # type: ignore[assignment]
    return cls


def _wrap(module: Any, first_call: FirstCall) -> Any:
    """Return a capturing module that shares all attributes with `module`."""
    wrapper = object.__new__(_capturing_class(type(module), first_call))
    object.__setattr__(wrapper, "__dict__", module.__dict__)
    object.__setattr__(wrapper, "samples", [])
    object.__setattr__(wrapper, "_module", module)
    return wrapper


def plain_module(module: Any) -> Any:
    """Return the original module behind a capturing module."""
    if not isinstance(module, CapturingWrapper):
        return module
    plain = object.__getattribute__(module, "_module")
    if plain is None:
        base: Any = type(module).__base__
        plain = object.__new__(base)
        object.__setattr__(plain, "__dict__", module.__dict__)
        object.__setattr__(module, "_module", plain)
    return plain


def _capturing_class(base: type[Any], first_call: FirstCall) -> type[Any]:
    """Return a subclass of `base` whose instances capture their first call."""

    class Capturing(base, CapturingWrapper):
        # Slots, because `__dict__` is shared with the plain module.
        __slots__ = ("_module", "samples")

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            # Methods that construct their own class, such as slicing, return plain modules.
            del cls
            return base(*args, **kwargs)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if self.samples or first_call.is_traced(args, kwargs):
                return super().__call__(*args, **kwargs)
            return _capture(self, plain_module(self).__call__, first_call, args, kwargs)

        @functools.wraps(inspect.getattr_static(base, "forward"))
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            if self.samples or first_call.is_traced(args, kwargs):
                return super().forward(*args, **kwargs)
            return _capture(self, plain_module(self).forward, first_call, args, kwargs)

        def __copy__(self) -> Any:
            return self._wrap_copy(copy.copy(plain_module(self)))

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            return self._wrap_copy(copy.deepcopy(plain_module(self), memo))

        def _wrap_copy(self, module: Any) -> Any:
            wrapper = _wrap(plain_module(module), first_call)
            object.__setattr__(wrapper, "samples", list(self.samples))
            return wrapper

        def __reduce_ex__(self, protocol: Any) -> Any:
            return _same, (plain_module(self),)

    for name in _NAMES:
        setattr(Capturing, name, getattr(base, name))
    return Capturing


def _same(module: Any) -> Any:
    """Return the module unchanged; used to pickle a capturing module as the plain module."""
    return module


def comes_from_model(error: Exception) -> bool:
    """Return whether an exception was raised by the caller's model code or inside framework layers.

    Such an exception has a traceback frame outside of this library, the standard library and the
    packages that a capture calls. Framework layers count as model code.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE) or path.name.startswith("<frozen"):
            continue
        _, is_installed, name = path.as_posix().rpartition("/site-packages/")
        if not is_installed:
            if not path.is_relative_to(_PYTHON):
                return True
        elif name.startswith(_LAYERS) or name.partition("/")[0] not in _LIBRARIES:
            return True
    return False


@raises_only(CaptureError, passes=comes_from_model)
def _capture(
    wrapper: Any,
    call: Callable[..., Any],
    first_call: FirstCall,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Capture a call of the plain module behind `wrapper` and return the outputs of the call.

    If another thread captures a call first, the module is called normally.
    """
    with capture_lock:
        if not wrapper.samples:
            return _capture_alone(wrapper, call, first_call, args, kwargs)
    return call(*args, **kwargs)


def _capture_alone(
    wrapper: Any,
    call: Callable[..., Any],
    first_call: FirstCall,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    record = first_call.record
    if record is not None:
        record.check()
    module = plain_module(wrapper)
    with plain_children(module):
        outputs, samples = first_call.capture(module, call, args, kwargs)
    if record is not None:
        samples = record.name(samples)
    object.__setattr__(wrapper, "samples", samples)
    if record is not None:
        record.write()  # last, so that the samples are in memory if writing fails
    return outputs


@contextlib.contextmanager
def plain_children(module: Any) -> Iterator[None]:
    """Temporarily replace capturing submodules of `module` with plain modules, to prevent nested
    captures."""
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    pending, seen = [module], {id(module)}
    while pending:
        parent = pending.pop()
        children = next((vars(parent)[name] for name in _CHILDREN if name in vars(parent)), {})
        for name, child in children.items():
            if isinstance(child, CapturingWrapper):
                replaced.append((children, name, child))
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                pending.append(child)
    for children, name, child in replaced:
        children[name] = plain_module(child)
    try:
        yield
    finally:
        for children, name, child in replaced:
            children[name] = child

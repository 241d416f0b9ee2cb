"""Process state outside of a graph that a candidate may change.

Each entry of the table reads and restores one part of the state. Entries of a framework apply only
if the framework is imported. State that cannot be restored, such as functions that run at exit, is
only reported.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import gc
import os
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from ...isolation import Reporter

Kind: TypeAlias = Literal["process", "seed", "collector"]
ALL_KINDS: frozenset[Kind] = frozenset({"process", "seed", "collector"})
Restore: TypeAlias = Callable[[Any], object]

_LIMIT = 120
"""The maximum length of a value in a report."""
_LEAST_NORMAL, _HALF = sys.float_info.min, 0.5
_AUTOCAST_DEVICES = ("cpu", "cuda")


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One part of the state: its name, its getter and, if it can be restored, its setter.

    The entry applies only if `module` is imported. The harness itself sets a "seed" before each
    call and pauses the "collector" while measuring. `is_private` excludes values from reports.
    """

    name: str
    read: Callable[[], Any]
    restore: Restore | None = None
    module: str = "sys"
    kind: Kind = "process"
    is_private: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A part of the state whose value has changed."""

    name: str
    before: str
    after: str

    def to_json(self) -> list[str]:
        """Return the name and both values, in the form that the parent reads."""
        return [self.name, self.before, self.after]


class OutsideState:
    """A snapshot of the state of this process.

    >>> state = OutsideState()
    >>> warnings.simplefilter("ignore", ResourceWarning)
    >>> [change.name for change in state.undo()], [change.name for change in state.undo()]
    (['warnings.filters'], [])
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before = {entry.name: value for entry, value in _read()}

    def renew(self, kind: Kind) -> None:
        """Use the current values of this kind of state for later comparisons."""
        self._before.update((entry.name, value) for entry, value in _read({kind}))

    def undo(self, kinds: Collection[Kind] = ("process",)) -> list[Change]:
        """Restore each part that has changed and return the changes."""
        changes = []
        for entry, value in _read(kinds):
            if entry.name not in self._before:  # its module was imported after the snapshot
                self._before[entry.name] = value
                continue
            before = self._before[entry.name]
            if before == value:
                continue
            changes.append(_describe(entry, before, value))
            if entry.restore is not None:
                # State that cannot be restored stays changed; the change is reported.
                with contextlib.suppress(Exception):
                    entry.restore(before)
            # Later comparisons use this value, because it may not have been restored.
            self._before[entry.name] = entry.read()
        return changes


def report_state(reporter: Reporter, moment: str, changes: Iterable[Change]) -> None:
    """Report changes that a candidate made while it was compiled or called."""
    described = [change.to_json() for change in changes]
    if described:
        reporter.send({f"state of {moment}": described})


def _describe(entry: Entry, before: Any, after: Any) -> Change:
    if isinstance(before, Mapping):
        names = sorted(
            name for name in {*before, *after} if before.get(name, entry) != after.get(name, entry)
        )
        values = {
            side: ", ".join(
                name if entry.is_private else f"{name}={values.get(name)}" for name in names
            )
            for side, values in (("before", before), ("after", after))
        }
        if entry.is_private:
            return Change(f"{entry.name}[{values['after'][:_LIMIT]}]", "", "")
        return Change(entry.name, values["before"][:_LIMIT], values["after"][:_LIMIT])
    if entry.is_private:
        return Change(entry.name, "", "")
    return Change(entry.name, str(before)[:_LIMIT], str(after)[:_LIMIT])


def _read(kinds: Collection[Kind] = ALL_KINDS) -> Iterator[tuple[Entry, Any]]:
    for entry in TABLE:
        if entry.kind not in kinds or entry.module not in sys.modules:
            continue
        try:
            yield entry, entry.read()
        except Exception:  # noqa: S112 - a version that lacks it, or mixed interfaces of one flag
            continue


def _module(name: str) -> Any:
    return sys.modules[name]


def _call(module: str, path: str, *args: Any) -> Any:
    """Call the function at a dotted path of an imported module."""
    return _find(module, path)(*args)


def _find(module: str, path: str) -> Any:
    owner = _module(module)
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner


def _pair(module: str, name: str, getter: str, setter: str) -> Entry:
    """Return the entry of a getter and setter pair."""
    return Entry(
        f"{module}.{name}",
        lambda: _call(module, getter),
        lambda value: _call(module, setter, value),
        module,
    )


def _attribute(module: str, path: str) -> Entry:
    """Return the entry of an attribute."""
    owner, _, name = path.rpartition(".")
    return Entry(
        f"{module}.{path}",
        lambda: _find(module, path),
        lambda value: setattr(_find(module, owner), name, value),
        module,
    )


def _restore_environment(before: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)


def _restore_filters(before: tuple[Any, ...]) -> None:
    warnings.filters[:] = before  # type: ignore[index]
    warnings.simplefilter("default", append=True)  # any change invalidates the module's cache
    warnings.filters.pop()  # type: ignore[attr-defined]


def _restore_callbacks(before: tuple[Any, ...]) -> None:
    gc.callbacks[:] = before


def _read_autocast() -> tuple[Any, ...]:
    torch = _module("torch")
    return (
        torch.is_autocast_cache_enabled(),
        *(
            (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
            for device in _AUTOCAST_DEVICES
        ),
    )


def _restore_autocast(before: tuple[Any, ...]) -> None:
    torch = _module("torch")
    torch.set_autocast_cache_enabled(before[0])
    for device, (is_enabled, dtype) in zip(_AUTOCAST_DEVICES, before[1:], strict=True):
        torch.set_autocast_enabled(device, is_enabled)
        torch.set_autocast_dtype(device, dtype)


def _read_determinism() -> tuple[bool, bool]:
    torch = _module("torch")
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def _restore_determinism(before: tuple[bool, bool]) -> None:
    _module("torch").use_deterministic_algorithms(before[0], warn_only=before[1])


def _read_anomaly() -> tuple[bool, bool]:
    torch = _module("torch")
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


_GUARDS: list[Any] = []
"""Guards that keep inference mode restored: the mode ends when its guard is destroyed."""


def _restore_inference_mode(before: bool) -> None:
    guard = _module("torch").inference_mode(before)
    guard.__enter__()
    _GUARDS.append(guard)


def _read_default_device() -> str | None:
    context = getattr(_module("torch")._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else str(context.device)


def _read_hooks() -> dict[str, tuple[Any, ...]]:
    functions = _module("torch").nn.modules.module
    return {
        name: tuple(hooks.items())
        for name, hooks in vars(functions).items()
        if name.endswith("_hooks") and isinstance(hooks, dict)
    }


def _restore_hooks(before: Mapping[str, tuple[Any, ...]]) -> None:
    functions = _module("torch").nn.modules.module
    for name, hooks in before.items():
        registered = getattr(functions, name)
        registered.clear()
        registered.update(hooks)


def _stack(kind: str, path: str) -> Entry:
    """Return the entry of a stack of modes; the function at `path` pops its last mode."""

    def read() -> int:
        return _find("torch", f"_C._len_torch_{kind}_stack")()

    def restore(before: int) -> None:
        while read() > before:
            _call("torch", path)

    return Entry(f"torch {kind} modes", read, restore, "torch")


def _read_saved_tensors_hooks() -> Any:
    return _call("torch", "_C._autograd._top_saved_tensors_default_hooks", True)


def _restore_saved_tensors_hooks(before: Any) -> None:
    while _read_saved_tensors_hooks() not in (before, None):
        _call("torch", "_C._autograd._pop_saved_tensors_default_hooks")


def _restore_print_options(before: Mapping[str, Any]) -> None:
    vars(_module("torch")._tensor_str.PRINT_OPTS).update(before)


def _restore_denormals(is_flushing: bool) -> None:
    _module("torch").set_flush_denormal(is_flushing)


def _is_static() -> bool:
    return not _module("paddle").in_dynamic_mode()


def _restore_static(before: bool) -> None:
    paddle = _module("paddle")
    if before:
        paddle.enable_static()
    else:
        paddle.disable_static()


_PADDLE_FLAGS = (
    "FLAGS_check_nan_inf", "FLAGS_cudnn_deterministic", "FLAGS_embedding_deterministic",
    "FLAGS_cudnn_exhaustive_search", "FLAGS_use_mkldnn", "FLAGS_prim_all", "FLAGS_use_cinn",
    "FLAGS_gemm_use_half_precision_compute_type", "FLAGS_allow_cinn_ops", "FLAGS_benchmark",
)  # fmt: skip


def _read_paddle_flags() -> dict[str, Any]:
    paddle = _module("paddle")
    flags: dict[str, Any] = {}
    for name in _PADDLE_FLAGS:
        with contextlib.suppress(Exception):  # not every build has all flags
            flags |= paddle.get_flags([name])
    return flags


def _read_paddle_amp() -> tuple[Any, ...]:
    tracer = _module("paddle").base.framework._dygraph_tracer()
    return tracer._amp_level, tracer._amp_dtype


def _restore_paddle_amp(before: tuple[Any, ...]) -> None:
    tracer = _module("paddle").base.framework._dygraph_tracer()
    tracer._amp_level, tracer._amp_dtype = before


TABLE: tuple[Entry, ...] = (
    Entry("sys.settrace", sys.gettrace, sys.settrace),
    Entry("sys.setprofile", sys.getprofile, sys.setprofile),
    Entry("threading.settrace", threading.gettrace, threading.settrace),  # type: ignore[arg-type]
    Entry("threading.setprofile", threading.getprofile, threading.setprofile),  # type: ignore[arg-type]
    Entry("gc.callbacks", lambda: tuple(gc.callbacks), _restore_callbacks),
    Entry(
        "gc.isenabled",
        gc.isenabled,
        lambda before: gc.enable() if before else gc.disable(),
        kind="collector",
    ),
    Entry("gc.get_threshold", gc.get_threshold, lambda before: gc.set_threshold(*before)),
    Entry("atexit functions", lambda: atexit._ncallbacks()),  # type: ignore[attr-defined]
    Entry("warnings.filters", lambda: tuple(warnings.filters), _restore_filters),
    Entry("os.environ", lambda: dict(os.environ), _restore_environment, is_private=True),
    Entry("working directory", os.getcwd, os.chdir, is_private=True),
    Entry(
        "sys.path",
        lambda: tuple(sys.path),
        lambda before: sys.path.__setitem__(slice(None), before),
        is_private=True,
    ),
    Entry(
        "processors",
        lambda: os.sched_getaffinity(0),
        lambda before: os.sched_setaffinity(0, before),
    ),
    Entry("sys.setswitchinterval", sys.getswitchinterval, sys.setswitchinterval),
    Entry("sys.setrecursionlimit", sys.getrecursionlimit, sys.setrecursionlimit),
    Entry("flush_denormal", lambda: _LEAST_NORMAL * _HALF == 0.0, _restore_denormals, "torch"),
    Entry(
        "numpy error state",
        lambda: _call("numpy", "geterr"),
        lambda before: _module("numpy").seterr(**before),
        "numpy",
    ),
    Entry(
        "numpy print options",
        lambda: _call("numpy", "get_printoptions"),
        lambda before: _module("numpy").set_printoptions(**before),
        "numpy",
    ),
    _pair("torch", "default_dtype", "get_default_dtype", "set_default_dtype"),
    _pair("torch", "num_threads", "get_num_threads", "set_num_threads"),
    _pair("torch", "num_interop_threads", "get_num_interop_threads", "set_num_interop_threads"),
    _pair("torch", "grad_mode", "is_grad_enabled", "_C._set_grad_enabled"),
    _pair(
        "torch",
        "float32_matmul_precision",
        "get_float32_matmul_precision",
        "set_float32_matmul_precision",
    ),
    Entry(
        "torch.inference_mode",
        lambda: _call("torch", "is_inference_mode_enabled"),
        _restore_inference_mode,
        "torch",
    ),
    Entry("torch.deterministic_algorithms", _read_determinism, _restore_determinism, "torch"),
    Entry(
        "torch.anomaly_mode",
        _read_anomaly,
        lambda before: _call("torch", "autograd.set_detect_anomaly", *before),
        "torch",
    ),
    Entry(
        "torch.default_device",
        _read_default_device,
        lambda before: _call("torch", "set_default_device", before),
        "torch",
    ),
    Entry("torch.autocast", _read_autocast, _restore_autocast, "torch"),
    Entry(
        "torch seed",
        lambda: _call("torch", "initial_seed"),
        lambda before: _module("torch").default_generator.manual_seed(before),
        "torch",
        kind="seed",
    ),
    Entry("torch hooks on all modules", _read_hooks, _restore_hooks, "torch"),
    Entry(
        "torch hooks on saved tensors",
        _read_saved_tensors_hooks,
        _restore_saved_tensors_hooks,
        "torch",
    ),
    Entry(
        "torch print options",
        lambda: dict(vars(_module("torch")._tensor_str.PRINT_OPTS)),
        _restore_print_options,
        "torch",
    ),
    _stack("function", "overrides._pop_mode"),
    _stack("dispatch", "utils._python_dispatch._pop_mode"),
    _attribute("torch", "backends.cuda.matmul.allow_tf32"),
    _attribute("torch", "backends.cuda.matmul.allow_fp16_reduced_precision_reduction"),
    _attribute("torch", "backends.cuda.matmul.allow_bf16_reduced_precision_reduction"),
    _attribute("torch", "backends.cudnn.allow_tf32"),
    _attribute("torch", "backends.cudnn.benchmark"),
    _attribute("torch", "backends.cudnn.deterministic"),
    _attribute("torch", "backends.cudnn.enabled"),
    _attribute("torch", "backends.mkldnn.enabled"),
    _attribute("torch", "backends.mkldnn.deterministic"),
    _attribute("torch", "backends.mkldnn.matmul.fp32_precision"),
    _attribute("torch", "backends.mkldnn.conv.fp32_precision"),
    _attribute("torch", "backends.opt_einsum.enabled"),
    _attribute("torch", "backends.opt_einsum.strategy"),
    _attribute("torch", "backends.quantized.engine"),
    _pair("torch", "backends.nnpack.enabled", "_C._get_nnpack_enabled", "_C._set_nnpack_enabled"),
    _pair(
        "torch",
        "autograd_multithreading",
        "_C._is_multithreading_enabled",
        "_C._set_multithreading_enabled",
    ),
    _pair("torch", "view_replay", "_C._is_view_replay_enabled", "_C._set_view_replay_enabled"),
    _pair(
        "torch",
        "sparse_invariants",
        "_C._check_sparse_tensor_invariants",
        "_C._set_check_sparse_tensor_invariants",
    ),
    _attribute("torch", "utils.deterministic.fill_uninitialized_memory"),
    _pair(
        "torch",
        "backends.mha.fastpath",
        "backends.mha.get_fastpath_enabled",
        "backends.mha.set_fastpath_enabled",
    ),
    _pair(
        "torch", "flash_sdp", "backends.cuda.flash_sdp_enabled", "backends.cuda.enable_flash_sdp"
    ),
    _pair("torch", "math_sdp", "backends.cuda.math_sdp_enabled", "backends.cuda.enable_math_sdp"),
    _pair(
        "torch",
        "mem_efficient_sdp",
        "backends.cuda.mem_efficient_sdp_enabled",
        "backends.cuda.enable_mem_efficient_sdp",
    ),
    _pair("paddle", "default_dtype", "get_default_dtype", "set_default_dtype"),
    _pair("paddle", "grad_mode", "is_grad_enabled", "set_grad_enabled"),
    _pair("paddle", "device", "device.get_device", "device.set_device"),
    Entry("paddle static mode", _is_static, _restore_static, "paddle"),
    Entry(
        "paddle flags",
        _read_paddle_flags,
        lambda before: _call("paddle", "set_flags", before),
        "paddle",
    ),
    Entry("paddle.amp", _read_paddle_amp, _restore_paddle_amp, "paddle"),
)
"""Parts of the state, in the order in which they are restored."""

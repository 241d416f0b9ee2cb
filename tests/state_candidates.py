"""Candidates that change state outside their graph, each in one way; named by reference."""

# ruff: noqa: ARG001 (every candidate has the same arguments, used or not)

from __future__ import annotations

import atexit
import gc
import itertools
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

Inputs = Mapping[str, Any]
Module = Callable[..., Any]


class _FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class _DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _ignore(*_: Any) -> None:
    return None


_KEPT: list[Any] = []


def _enter_inference_mode() -> None:
    mode = torch.inference_mode()
    mode.__enter__()
    _KEPT.append(mode)  # the mode ends with its guard


def _set_engine() -> None:
    quantized = torch.backends.quantized
    quantized.engine = next(
        name for name in quantized.supported_engines if name != quantized.engine
    )


def _affinity() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


CHANGES: dict[str, tuple[str, Callable[[], object]]] = {
    "default_dtype": ("torch.default_dtype", lambda: torch.set_default_dtype(torch.float64)),
    "num_threads": (
        "torch.num_threads",
        lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    ),
    "deterministic": (
        "torch.deterministic_algorithms",
        lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    ),
    "grad_mode": ("torch.grad_mode", lambda: torch.set_grad_enabled(not torch.is_grad_enabled())),
    "inference_mode": ("torch.inference_mode", _enter_inference_mode),
    "anomaly": ("torch.anomaly_mode", lambda: torch.autograd.set_detect_anomaly(True)),
    "precision": (
        "torch.float32_matmul_precision",
        lambda: torch.set_float32_matmul_precision("medium"),
    ),
    "tf32": (
        "torch.backends.cudnn.allow_tf32",
        lambda: setattr(torch.backends.cudnn, "allow_tf32", False),
    ),
    "device": ("torch.default_device", lambda: torch.set_default_device("meta")),
    "denormals": ("flush_denormal", lambda: torch.set_flush_denormal(True)),
    "autocast": ("torch.autocast", lambda: torch.set_autocast_enabled("cpu", True)),
    "filters": ("warnings.filters", lambda: warnings.simplefilter("error", RuntimeWarning)),
    "numpy": ("numpy error state", lambda: np.seterr(all="ignore")),
    "environment": ("os.environ[STATE_CANDIDATE]", lambda: os.environ.update(STATE_CANDIDATE="1")),
    "hooks": (
        "torch hooks on all modules",
        lambda: torch.nn.modules.module.register_module_forward_hook(_ignore),
    ),
    "function_mode": ("torch function modes", lambda: _FunctionMode().__enter__()),
    "dispatch_mode": ("torch dispatch modes", lambda: _DispatchMode().__enter__()),
    "trace": ("sys.settrace", lambda: sys.settrace(_ignore)),
    "profile": ("sys.setprofile", lambda: sys.setprofile(_ignore)),
    "thread_trace": ("threading.settrace", lambda: threading.settrace(_ignore)),
    "collector_callback": ("gc.callbacks", lambda: gc.callbacks.append(_ignore)),
    "atexit": ("atexit functions", lambda: atexit.register(_ignore)),
    "seed": ("torch seed", lambda: torch.manual_seed(1234)),
    "affinity": ("processors", _affinity),
    "mkldnn": ("torch.backends.mkldnn.enabled", lambda: torch.backends.mkldnn.set_flags(False)),
    "mkldnn_deterministic": (
        "torch.backends.mkldnn.deterministic",
        lambda: torch.backends.mkldnn.set_flags(_deterministic=True),
    ),
    "nnpack": ("torch.backends.nnpack.enabled", lambda: torch._C._set_nnpack_enabled(False)),
    "quantized": ("torch.backends.quantized.engine", _set_engine),
    "einsum": (
        "torch.backends.opt_einsum.enabled",
        lambda: setattr(torch.backends.opt_einsum, "enabled", False),
    ),
    "multithreading": (
        "torch.autograd_multithreading",
        lambda: torch._C._set_multithreading_enabled(False),
    ),
    "view_replay": ("torch.view_replay", lambda: torch._C._set_view_replay_enabled(True)),
    "sparse_invariants": (
        "torch.sparse_invariants",
        torch.sparse.check_sparse_tensor_invariants.enable,
    ),
    "saved_tensors": (
        "torch hooks on saved tensors",
        lambda: torch.autograd.graph.saved_tensors_hooks(_ignore, torch.detach).__enter__(),
    ),
    "print_options": ("torch print options", lambda: torch.set_printoptions(precision=2)),
    "numpy_print_options": ("numpy print options", lambda: np.set_printoptions(precision=2)),
    "recursion": ("sys.setrecursionlimit", lambda: sys.setrecursionlimit(2345)),
}
"""Name of a change, the part of the state that it shows in, and the change."""


def _compiling(change: Callable[[], object]) -> Callable[[Module, Inputs], Module]:
    def compile_changing(module: Module, example_inputs: Inputs) -> Module:
        change()
        return module

    return compile_changing


def _calling(change: Callable[[], object]) -> Callable[[Module, Inputs], Module]:
    def compile_plain(module: Module, example_inputs: Inputs) -> Module:
        def call(**inputs: Any) -> Any:
            outputs = module(**inputs)
            change()
            return outputs

        return call

    return compile_plain


for _name, (_, _change) in CHANGES.items():
    globals()[f"compiling_{_name}"] = _compiling(_change)
    globals()[f"calling_{_name}"] = _calling(_change)


def honest(module: Module, example_inputs: Inputs) -> Module:
    """Change nothing."""
    return module


def restores_the_threads(module: Module, example_inputs: Inputs) -> Module:
    """Change the number of threads in the second call, and restore it in the third."""
    count, calls = torch.get_num_threads(), itertools.count(1)

    def call(**inputs: Any) -> Any:
        torch.set_num_threads(count + (next(calls) == 2))
        return module(**inputs)

    return call


def needs_its_dtype(module: Module, example_inputs: Inputs) -> Module:
    """Work only where the default dtype is the one that was set while compiling."""
    torch.set_default_dtype(torch.float64)

    def call(**inputs: Any) -> Any:
        if torch.get_default_dtype() is not torch.float64:
            raise RuntimeError("The default dtype has changed.")
        return module(**inputs)

    return call

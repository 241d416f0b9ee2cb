"""A lightweight import of MetaSchedule, with the tensor intrinsics of one machine only.

The first `TuneContext` of TVM imports the intrinsics of CUDA, ROCm, Arm, Hexagon and RISC-V. They
are written in TVMScript, whose decorators call `inspect.stack`, which searches all loaded modules
for the source of every frame. This takes tens of seconds on an idle machine and minutes on a busy
one. For tested versions of TVM this module avoids both steps; other versions import everything.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import platform
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import CompilerUnavailableError

PACKAGE = "tvm.s_tir.tensor_intrin"
TRIED_VERSIONS = ("0.27.",)
"""Prefixes of TVM versions whose intrinsics can be imported one module at a time."""
_BY_PROCESSOR = {"x86_64": "x86", "AMD64": "x86", "aarch64": "arm_cpu", "arm64": "arm_cpu"}


def import_meta_schedule(*intrinsics: str, is_light: bool | None = None) -> Any:
    """Return the module `tvm.s_tir.meta_schedule`, with `intrinsics` registered.

    `intrinsics` are modules of `tvm.s_tir.tensor_intrin`, by default that of this processor. If
    `is_light` is false, imports all of them as TVM does; if None, decides by the version.

    Raises:
        CompilerUnavailableError: TVM is not installed.
    """
    try:
        tvm = importlib.import_module("tvm")
        importlib.import_module("tvm.s_tir")
    except ImportError as error:
        raise CompilerUnavailableError(
            f"Tuning needs TVM, which cannot be imported: {error}. Install it with "
            "`pip install 'graphnet-datasets[tuning]'`."
        ) from error
    if is_light is None:
        is_light = is_tried(str(tvm.__version__))
    with light_stacks() if is_light else contextlib.nullcontext():
        if is_light:
            _stand_in(tvm)
            for name in intrinsics or default_intrinsics():
                importlib.import_module(f"{PACKAGE}.{name}")
        else:
            sys.modules.pop(PACKAGE, None)
            importlib.import_module(PACKAGE)
        return importlib.import_module("tvm.s_tir.meta_schedule")


def is_tried(version: str) -> bool:
    """Return whether importing intrinsics one at a time was tested with this version of TVM.

    >>> is_tried("0.27.0.post1"), is_tried("0.31.0")
    (True, False)
    """
    return version.startswith(TRIED_VERSIONS)


def default_intrinsics() -> tuple[str, ...]:
    """Return the intrinsics module for this machine's processor, if TVM has one."""
    name = _BY_PROCESSOR.get(platform.machine())
    return () if name is None else (name,)


@contextlib.contextmanager
def light_stacks() -> Iterator[None]:
    """Make `inspect.stack` omit the source of each frame, which TVMScript does not read."""
    real = inspect.stack
    inspect.stack = _stack_without_source
    try:
        yield
    finally:
        inspect.stack = real


def _stack_without_source(context: int = 1) -> list[inspect.FrameInfo]:
    del context
    frames: list[inspect.FrameInfo] = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        frames.append(
            inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None)
        )
        frame = frame.f_back
    return frames


def _stand_in(tvm: Any) -> None:
    """Register a package without an `__init__` in place of the package of all intrinsics."""
    if PACKAGE in sys.modules:
        return
    package = types.ModuleType(PACKAGE)
    package.__path__ = [str(Path(tvm.s_tir.__file__).parent / "tensor_intrin")]
    sys.modules[PACKAGE] = package
    tvm.s_tir.tensor_intrin = package

"""Properties of installed framework builds, read from their files; importing a framework takes
seconds."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterable
from pathlib import Path

from ..errors import RunError
from . import framework_named

DEVICE_PATTERN = re.compile(r"cpu|(cuda|gpu|xpu)(:\d{1,3})?")
_VERSION_FILES = {
    "torch": ("version.py", ("cuda", "hip", "xpu")),
    "paddle": ("version/__init__.py", ("cuda_version", "xpu_version", "with_hip_version")),
}
_NONE = (None, "False", "")
"""Values of a build constant that mean that the build lacks the device."""


def find_build_problem(frameworks: Iterable[str], device: str) -> str:
    """Return why no framework build can use a GPU, or "" if at least one build can.

    No framework is imported. An empty result does not imply that a GPU is present.

    >>> find_build_problem(["torch"], "cpu")
    ''
    """
    if device.partition(":")[0] not in ("cuda", "gpu"):
        return ""
    versions = []
    for name in frameworks:
        version = _version_without_gpu(name)
        if version is None:
            return ""
        versions.append(f"{name} ({version})")
    if not versions:
        return ""
    verb = "is" if len(versions) == 1 else "are"
    return (
        f"CUDA is not available: this {' and this '.join(versions)} {verb} built without it. "
        "Install a CUDA build, or drop `--device`."
    )


def check_device(device: str, frameworks: Iterable[str]) -> None:
    """Check that a name is a device, and that a framework build supports it.

    No framework is imported, so a missing GPU is not noticed.

    Raises:
        RunError: the device cannot be used.

    >>> check_device("tpu", ["torch"])
    Traceback (most recent call last):
      ...
    graphnet_datasets.errors.RunError: `tpu` is not a device. Choose `cpu`, `cuda` or `cuda:1`.
    """
    if not DEVICE_PATTERN.fullmatch(device):
        raise RunError(f"`{device[:40]}` is not a device. Choose `cpu`, `cuda` or `cuda:1`.")
    if problem := find_build_problem(frameworks, device):
        raise RunError(problem)


def _version_without_gpu(framework: str) -> str | None:
    """Return the version of a build without GPU support, or None for other or unknown builds."""
    if framework not in _VERSION_FILES or not framework_named(framework).is_installed:
        return None
    file, names = _VERSION_FILES[framework]
    spec = importlib.util.find_spec(framework)
    if spec is None or not spec.submodule_search_locations:
        return None
    try:
        tree = ast.parse((Path(spec.submodule_search_locations[0]) / file).read_text())
    except (OSError, SyntaxError, ValueError):
        return None
    constants: dict[str, object] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        value = statement.value.value if isinstance(statement.value, ast.Constant) else statement
        constants |= {target.id: value for target in targets if isinstance(target, ast.Name)}
    if names[0] not in constants or any(constants.get(name) not in _NONE for name in names):
        return None
    return str(constants.get("__version__", constants.get("full_version", "unknown version")))

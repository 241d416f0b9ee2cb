"""Packages of compiled kernels, for machines without a C compiler.

A package is a directory with `package.json`, the shared objects, and their C sources. Loading a
kernel runs its machine code, so load only packages from people you trust.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic import file_sha256, new_directory, write_text
from ..decoding import read_json, read_text
from ..errors import KernelInputError, TensorComprehensionError
from .codegen.general import general_schedule, write_general
from .codegen.machine import Machine, processor_flags, this_machine
from .codegen.program import Program
from .codegen.toolchain import compile_object
from .compiling import GENERAL_FLAGS, generate
from .kernel import Kernel
from .language.instance import Instance
from .options import Options

if TYPE_CHECKING:
    from .definition import Definition

FORMAT = 1
MANIFEST = "package.json"
_V2 = frozenset({"sse4_1", "sse4_2", "ssse3", "popcnt"})
_V3 = _V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
TARGETS: Mapping[str, tuple[Machine, frozenset[str]]] = {
    "x86-64-v2": (Machine("x86_64", "baseline", 16, 16), _V2),
    "x86-64-v3": (Machine("x86_64", "avx2", 32, 16), _V3),
    "x86-64-v4": (Machine("x86_64", "avx512", 64, 32), _V4),
}
"""Processors to compile for: their vectors, and the features that a machine must have."""


def save_package(
    path: str | Path,
    definition: Definition,
    calls: Sequence[tuple[Any, ...]],
    *,
    target: str = "native",
    threads: int = 1,
    options: Options | None = None,
    is_general: bool = True,
) -> Path:
    """Compile kernels for example calls and write them to a new directory.

    Args:
        calls: for each call, the name of a definition followed by example inputs.
        target: "native" for processors like this one, or one of `TARGETS`.
        threads: number of threads of the kernels. More than 1 requires `libgomp` on the machine
            that loads the package.
        options: compile options of the kernels for the sizes of the examples.
        is_general: also compile kernels that take the sizes as parameters.

    >>> import tempfile
    >>> import numpy as np
    >>> from .definition import define
    >>> twice = define("def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_package(f"{folder}/twice", twice, [("twice", np.ones(4, "float32"))])
    ...     load_package(path).twice(np.ones(3, "float32"))
    array([2., 2., 2.], dtype=float32)

    Raises:
        TensorComprehensionError: the target is unknown.
        KernelCompileError: the C compiler is missing, fails or reaches a limit.
    """
    if target != "native" and target not in TARGETS:
        raise TensorComprehensionError(
            f"There is no target `{target}`; choose from native, {', '.join(TARGETS)}."
        )
    machine, flags = TARGETS.get(target, (this_machine(), frozenset(processor_flags())))
    wanted = (options or Options()).replace(threads=threads)
    with new_directory(path) as folder:
        folder.mkdir()
        kernels: list[dict[str, Any]] = []
        for name, *inputs in calls:
            instance = definition.instance(name, *inputs)
            entries = [(_key(instance), generate(instance, wanted, machine).program, wanted)]
            if is_general:
                program = write_general(instance, machine, threads)
                key = hashlib.sha256(program.source.encode()).hexdigest()
                entries.append((key, program, Options(extra_flags=GENERAL_FLAGS)))
            for key, program, own in entries:
                if all(kernel["key"] != key for kernel in kernels):
                    file = _add(folder, program, own, target)
                    kernels.append({"key": key, "object": file, "options": own.to_dict()})
        manifest = {
            "format": FORMAT,
            "source": definition.source,
            "machine": dataclasses.asdict(machine),
            "flags": sorted(flags),
            "threads": threads,
            "kernels": kernels,
        }
        write_text(folder / MANIFEST, json.dumps(manifest, indent=1))
    return Path(path)


def load_package(path: str | Path) -> Definition:
    """Return the definitions of a package, whose calls use its kernels.

    Calls with other sizes use its general kernels, or else the C compiler. The machine code of the
    package runs in this process, so the package must come from someone you trust.

    Raises:
        TensorComprehensionError: the package is damaged, or this processor lacks features that its
            kernels need.
    """
    from .definition import Definition

    folder = Path(path)
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise TensorComprehensionError(
            f"`{folder}` is not a package of kernels in format {FORMAT}. Build it again with "
            "`save_package`."
        )
    package = Package(folder, manifest)
    package.check_processor()
    return Definition(str(manifest["source"]), package=package)


class Package:
    """The kernels of a package."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self._folder, self._manifest = folder, manifest
        self._machine = Machine(**manifest["machine"])
        self._kernels = {str(kernel["key"]): kernel for kernel in manifest["kernels"]}
        self._checked: set[str] = set()

    def check_processor(self) -> None:
        """Raise unless this processor can run the kernels."""
        architecture = this_machine().architecture
        missing = sorted(set(self._manifest["flags"]) - processor_flags())
        if architecture != self._machine.architecture or missing:
            reason = f"lacks {', '.join(missing[:5])}" if missing else f"is {architecture}"
            raise TensorComprehensionError(
                f"The kernels in `{self._folder}` need another processor: this one {reason}. Build "
                "the package with another `target`."
            )

    def kernel(self, instance: Instance) -> Kernel | None:
        """Return the kernel of an instance, or None if it is not in the package."""
        threads, parameters = int(self._manifest["threads"]), ()
        entry = self._kernels.get(_key(instance))
        if entry is None:
            program = write_general(instance, self._machine, threads)
            parameters = program.parameters
            entry = self._kernels.get(hashlib.sha256(program.source.encode()).hexdigest())
        if entry is None:
            return None
        file = str(entry["object"])
        path = self._folder / f"{file}.so"
        if file not in self._checked:
            if not path.is_file() or file_sha256(path) != file:
                raise TensorComprehensionError(
                    f"`{path}` is damaged or missing. Copy the package again."
                )
            self._checked.add(file)
        source = read_text(path.with_suffix(".c"))
        options = Options.from_dict(entry["options"])
        schedule = general_schedule(instance)
        return Kernel(instance, options, source, schedule, path, threads, None, parameters)

    def error(self, instance: Instance) -> KernelInputError:
        """Return the error for an instance without a kernel, on a machine without a compiler."""
        shapes = ", ".join(f"{tensor.name}{list(tensor.shape)}" for tensor in instance.inputs)
        return KernelInputError(
            f"`{self._folder}` has no kernel of `{instance.name}` for {shapes}, and there is no C "
            "compiler. Add a call with such inputs to `save_package`, or install gcc."
        )


def _key(instance: Instance) -> str:
    """Return a digest of everything that the code for an instance depends on."""
    return hashlib.sha256(repr(instance).encode()).hexdigest()


def _add(folder: Path, program: Program, options: Options, target: str) -> str:
    """Compile a program and copy the object and the source; return the digest of the object."""
    path = compile_object(program, options.compiler, options.extra_flags, target=target)
    file = file_sha256(path)
    shutil.copyfile(path, folder / f"{file}.so")
    (folder / f"{file}.c").write_text(program.source)
    return file

"""TorchInductor, the compiler that `torch.compile` uses by default."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
import torch._dynamo.utils

from ..atomic import write_text
from ..decoding import read_text
from ..errors import CompilerError, GraphNetError
from ..user_cache import cache_directory, file_identity, private_directory
from .dynamo import DYNAMO_OPTIONS, DynamoCompiler
from .options import Option

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class Inductor(DynamoCompiler):
    """TorchInductor with its modes, constant folding (`freezing`) and C++ wrapper.

    With `fallback_random`, random numbers equal those of eager for the same seed, so outputs that
    depend on them are compared element by element.

    `freezing` folds weights only if they are parameters of the module (`weights="parameters"`).
    """

    name = "inductor"
    carried_folder = "inductor"
    option_table: ClassVar[Mapping[str, Option]] = {
        **DYNAMO_OPTIONS,
        "mode": Option("default", "A preset of options, as in `torch.compile`.", MODES),
        "freezing": Option(False, "Fold and lay out weights at compile time."),
        "cpp_wrapper": Option(False, "Generate the code around the kernels in C++."),
        "fallback_random": Option(
            False, "Draw random numbers with eager's operators, so that both follow one stream."
        ),
        "config": Option({}, "Further options, by their names in `torch._inductor.config`."),
    }

    @classmethod
    def is_available(cls) -> tuple[bool, str]:
        is_installed, reason = super().is_available()
        if not is_installed:
            return is_installed, reason
        compiler = os.environ.get("CXX", "g++")
        if shutil.which(compiler) is None and shutil.which("clang++") is None:
            return False, "there is no C++ compiler (neither `g++` nor `clang++` nor $CXX)"
        return True, ""

    @classmethod
    def prepare(cls) -> None:
        """Detect the CPU's vector instructions and compile the header that every kernel includes.

        Detection compiles and runs four programs; its result is stored in the user's cache for this
        processor and C++ compiler. Compiling the header takes as long as several
        kernels, so it is cached for the user's later runs. With empty caches these steps dominate
        the first compilation of a process on a CPU, whatever the graph.
        """
        from torch._inductor.cpu_vec_isa import pick_vec_isa

        with tempfile.TemporaryDirectory() as directory:
            before = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = directory
            try:
                with _known_probes():
                    pick_vec_isa()
                _precompile_header()
            finally:
                del os.environ["TORCHINDUCTOR_CACHE_DIR"]
                if before is not None:
                    os.environ["TORCHINDUCTOR_CACHE_DIR"] = before

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._config = self._inductor_config()
        self._is_carrying = False

    def carry_caches(self, carried: Path, directory: Path) -> bool:
        """Link carried caches into the private ones; `compile` then counts the missing graphs."""
        self._is_carrying = super().carry_caches(carried, directory)
        return self._is_carrying

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        compiled = super().compile(module, example_inputs)
        num_hits = torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"]
        num_graphs = self.num_compilations()
        if self._is_carrying and num_hits < num_graphs:
            self.warnings.append(
                f"compile_cache: {num_graphs - num_hits} of {num_graphs} graphs are not in the "
                "carried caches"
            )
        return compiled

    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        from torch._inductor.compile_fx import compile_fx

        compiled = compile_fx(graph, list(example_inputs), config_patches=self._config)
        return cast(Callable[..., Any], compiled)

    @property
    def config(self) -> Mapping[str, Any]:
        """The options under their names in `torch._inductor.config`."""
        return self._config

    def _inductor_config(self) -> dict[str, Any]:
        """Return the options under their names in `torch._inductor.config`."""
        import torch._inductor
        from torch._inductor import config

        mode = self.options["mode"]
        dynamic = self.options["dynamic"] is True
        patches = {} if mode == "default" else torch._inductor.list_mode_options(mode, dynamic)
        patches = {name.replace("-", "_"): value for name, value in patches.items()}
        if self.options["freezing"]:
            patches["freezing"] = True
        if self.options["cpp_wrapper"]:
            patches["cpp_wrapper"] = True
        if self.options["fallback_random"]:
            patches["fallback_random"] = True
        defaults = config.get_config_copy()
        for name in self.options["config"]:
            if name not in defaults:
                raise CompilerError(
                    f"TorchInductor has no option `{name}`. Its options are the names in "
                    "`torch._inductor.config`."
                )
        return {**patches, **self.options["config"]}


@contextlib.contextmanager
def _known_probes() -> Iterator[None]:
    """Answer torch's probes of vector instructions from the user's cache, and store new answers.

    This uses a private method of torch. If it differs, torch probes as usual.
    """
    from torch._inductor import cpu_vec_isa

    probe = getattr(cpu_vec_isa.VecISA, "check_build", None)
    if probe is None:
        yield
        return
    path = cache_directory("vector_instructions") / f"{_probe_key()}.json"
    try:
        answers: dict[str, Any] = dict(json.loads(read_text(path)))
    except (OSError, ValueError, GraphNetError):
        answers = {}
    num_known = len(answers)

    def check_build(self: Any, code: str) -> bool:
        name = hashlib.sha256(f"{self} {code}".encode()).hexdigest()
        if answers.get(name) is not True:
            answers[name] = bool(probe(self, code))
        return answers[name]

    cpu_vec_isa.VecISA.check_build = check_build
    try:
        yield
    finally:
        cpu_vec_isa.VecISA.check_build = probe
    answers = {name: answer for name, answer in answers.items() if answer is True}
    if len(answers) > num_known:
        with contextlib.suppress(OSError, GraphNetError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(answers))


def _probe_key() -> str:
    """Return a hash of the C++ compiler's file, torch's version and the processor."""
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++") or ""
    facts = (
        *file_identity(compiler),
        *(torch.__version__, platform.machine(), torch.backends.cpu.get_cpu_capability()),
        *(sys.executable, os.environ.get("LD_LIBRARY_PATH", "")),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _precompile_header() -> None:
    """Precompile the header of CPU kernels if it is missing, and let jobs find it.

    This uses private functions of torch. If they differ, no cache directory exists or the header
    does not compile, the first kernel of each process compiles the header as usual.
    """
    from torch._inductor import codecache

    with contextlib.suppress(Exception):
        directory = private_directory("inductor_headers")
        places = {"_HEADER_DIR": directory, "_HEADER_LOCK_DIR": directory / "locks"}
        before = {name: getattr(codecache, name) for name in places}
        for name, place in places.items():
            setattr(codecache, name, str(place))
        try:
            # Only the header is compiled: the task passed to `submit_fn`, which builds the kernel,
            # never runs.
            codecache.CppPythonBindingsCodeCache.load_pybinding_async(
                [], 'extern "C" void kernel() {}', submit_fn=lambda _: Future()
            )
        except BaseException:
            for name, place in before.items():
                setattr(codecache, name, place)
            raise

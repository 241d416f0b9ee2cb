"""The server that compiles one sample per job, usually for a GPU that this machine lacks.

A job repeats the steps of a benchmark's worker up to the end of compilation: the keys of the caches
depend on the module, the inputs, the options, the gradient mode and the order of imports.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphnet_datasets.benchmark.worker_job import WorkerJob
from graphnet_datasets.errors import CompilerError
from graphnet_datasets.isolation import RESULT_FILE, Reporter
from graphnet_datasets.schema.sample_files import read_sample

from .filled import CACHES
from .stand_in import card_named, pretend, undecided_paddings

CARD_VARIABLE = "GRAPHNET_DATASETS_GPU_CACHE_CARD"
CPU = "cpu"
"""The name of the card for caches of this machine's processor."""
PHASES = ("load", "compile")


def prepare() -> Sequence[str]:
    """Import torch and the compiler with the stand-in for CUDA."""
    card = os.environ[CARD_VARIABLE]
    if card != CPU:
        pretend(card_named(card))
    from graphnet_datasets.benchmark.child import worker

    seldom = worker.prepare()
    if card != CPU:
        _warm_up()
    return seldom


def _warm_up() -> None:
    """Compile a graph before the first job, since the first compilation registers all patterns."""
    import torch

    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        compiler = ahead_of({})
        compiler.use_caches(Path(folder))
        compiler.compile(lambda x: x.softmax(-1) @ x, {"x": torch.ones(64, 64).to("cuda")})


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Compile one sample and write its cache entries to the job's result file, a tar archive."""
    import torch._inductor.codecache
    from torch._dynamo.utils import counters

    from graphnet_datasets.benchmark.child.setup import load_workload

    job = WorkerJob.from_payload(payload["job"])
    started_s = time.monotonic()
    workload = load_workload(job, directory, read_sample(Path(payload["folder"])))
    own = workload.for_candidate()
    loaded_s = time.monotonic()
    reporter.enter("compile")
    compiler = ahead_of(job.options)
    compiler.use_caches(directory / "cache")
    arguments = own.arguments(0)
    workload.runtime.seed(workload.seed)
    compiler.compile(own.module, arguments)
    compiled_s = time.monotonic()
    num_graphs = compiler.num_compilations()
    num_saved = counters["aot_autograd"]["autograd_cache_saved"]
    if undecided_paddings:
        raise CompilerError(
            f"A GPU would have to decide about the padding of {len(undecided_paddings)} matrix "
            "products. Compile this sample on the GPU itself."
        )
    if num_saved < num_graphs:
        reasons = "; ".join(_bypasses(counters)) or "it reports no reason"
        raise CompilerError(
            f"TorchInductor stores only {num_saved} of {num_graphs} graphs in its caches: "
            f"{reasons}. Compile this sample on the GPU itself."
        )
    _pack(directory / "cache" / "inductor", directory / RESULT_FILE)
    reporter.send(
        {
            "load_s": loaded_s - started_s,
            "compile_s": compiled_s - loaded_s,
            "num_graphs": num_graphs,
            "torch_key": torch._inductor.codecache.torch_key().hex(),
            "system_hash": torch._inductor.codecache.CacheBase.get_system()["hash"],
            "module_of_torch": module_of_torch(),
        }
    )


def ahead_of(options: Mapping[str, Any], *, is_running: bool = False) -> Any:
    """Return the `inductor` compiler, whose `compile` runs no graph unless `is_running`.

    In place of a call of a captured graph, tensors with the shapes of its outputs are returned.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._pytree import tree_map_only

    from graphnet_datasets.compilers.inductor import Inductor

    def zeros_like(fake: torch.Tensor) -> torch.Tensor:
        # Copied from the host: the stand-in does not run a kernel that fills memory.
        host = torch.empty_strided(fake.size(), fake.stride(), dtype=fake.dtype).zero_()
        return host.to(fake.device)

    class Ahead(Inductor):
        def uncompiled(self, graph: torch.fx.GraphModule) -> Callable[..., Any]:
            copied = super().uncompiled(graph)

            def run(*arguments: Any) -> Any:
                with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                    fakes = tree_map_only(torch.Tensor, mode.from_tensor, arguments)
                    outputs = copied(*fakes)
                return tree_map_only(torch.Tensor, zeros_like, outputs)

            return run

    return Inductor(options) if is_running else Ahead(options)


def hits_of(compiler: Any) -> str:
    """Return how many graphs of the last compilation came from the caches, in words."""
    from torch._dynamo.utils import counters

    hits = counters["inductor"]["fxgraph_cache_hit"]
    saved = counters["aot_autograd"]["autograd_cache_hit"]
    return f"{hits} of {compiler.num_compilations()} graphs hit ({saved} with AOTAutograd's)"


def module_of_torch() -> str:
    """Return the module under which torch's memory formats are pickled.

    The keys contain such pickles. `pickle` takes the first imported module that has a global
    `torch`, so torch must be imported before any other module that uses it.
    """
    import pickle

    import torch

    whichmodule: Any = vars(pickle)["whichmodule"]
    return whichmodule(torch.contiguous_format, "torch.contiguous_format")


def _bypasses(counters: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the counts of graphs that TorchInductor did not store, by reason."""
    return [
        f"{name} {count}"
        for group in ("aot_autograd", "inductor")
        for name, count in counters[group].items()
        if "bypass" in name and count
    ]


def _pack(cache: Path, archive: Path) -> None:
    with tarfile.open(archive, "w") as file:
        for name in CACHES:
            if (cache / name).is_dir():
                file.add(cache / name, name)

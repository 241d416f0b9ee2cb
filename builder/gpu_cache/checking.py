"""A check that a machine with a GPU uses compiled kernels from a cache filled without a GPU."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets.benchmark import Settings
from graphnet_datasets.benchmark.handover import COMPILERS_VARIABLE
from graphnet_datasets.benchmark.worker_job import WorkerJob
from graphnet_datasets.compilers.carrying import set_environment
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks import FRAMEWORK_VARIABLE
from graphnet_datasets.schema import sample_from_row
from graphnet_datasets.storage.selection import select_rows

from .cards import CARDS
from .filled import CHECK_NAME, MANIFEST_NAME
from .filling import ahead_of, hits_of, module_of_torch
from .stand_in import pretend


def check(directory: Path, card: str = "", num_samples: int = 1) -> bool:
    """Print the parts of the caches' keys and the hits of a few samples; return whether all agree.

    On a machine with a GPU the compiled samples also run, and their outputs are compared with
    those of eager. With `card`, a stand-in for the GPU is used and nothing runs.

    Raises:
        GraphNetError: The folder has no rows to check with, or torch was imported before.
    """
    rows = directory / CHECK_NAME
    if not rows.is_file():
        raise GraphNetError(
            f"`{directory}` has no `{CHECK_NAME}`. Choose a folder filled by `gpu-cache`."
        )
    set_environment(os.environ)
    os.environ |= {FRAMEWORK_VARIABLE: "torch", COMPILERS_VARIABLE: "inductor"}
    if card:
        pretend(CARDS[card])
    import torch

    from graphnet_datasets.benchmark.child.worker import prepare

    prepare()
    from torch._inductor import codecache

    manifest = json.loads((directory / MANIFEST_NAME).read_text())
    figures = {
        "torch_key": codecache.torch_key().hex(),
        "system_hash": codecache.CacheBase.get_system()["hash"],
    }
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name()}")
    print(f"system: {json.dumps(codecache.CacheBase.get_system(), sort_keys=True)}")
    agree = []
    for name, value in figures.items():
        agree.append(value == manifest[name])
        print(f"{name}: {value} ({'as filled' if agree[-1] else 'filled: ' + manifest[name]})")
    module = module_of_torch()
    agree.append(module == manifest["module_of_torch"])
    print(f"module of torch.contiguous_format: {module} (filled: {manifest['module_of_torch']})")
    for row in select_rows(str(rows.resolve()))[:num_samples]:
        agree.append(_check_sample(row, directory, is_pretending=bool(card)))
    print("All agree." if all(agree) else "The caches do not fit this machine.")
    return all(agree)


def _check_sample(row: Mapping[str, Any], directory: Path, *, is_pretending: bool) -> bool:
    import torch

    from graphnet_datasets.benchmark.child.setup import load_workload

    job = WorkerJob(
        kind="candidate",
        device="cuda",
        settings=Settings(num_threads=16),
        framework="torch",
        compiler="inductor",
    )
    with tempfile.TemporaryDirectory() as folder:
        workload = load_workload(job, Path(folder), sample_from_row(row))
        own = workload.for_candidate()
        compiler = ahead_of({}, is_running=not is_pretending)
        compiler.use_caches(Path(folder))
        compiler.carry_caches(directory.resolve(), Path(folder))
        started_s = time.monotonic()
        compiled = compiler.compile(own.module, own.arguments(0))
        compile_s = time.monotonic() - started_s
        hits = hits_of(compiler)
        print(f"{row['id']}: {hits} in {compile_s:.2f} s", *compiler.warnings)
        is_hit = not compiler.warnings
        if is_pretending:
            return is_hit
        workload.runtime.seed(0)
        expected = workload.module(**workload.arguments(0))
        workload.runtime.seed(0)
        outputs = compiled(**own.arguments(0))
        torch.cuda.synchronize()
    try:
        torch.testing.assert_close(outputs, expected, equal_nan=True, rtol=2e-2, atol=1e-3)
    except AssertionError as error:
        print(f"The outputs differ from eager's: {str(error)[:300]}")
        return False
    print("The outputs agree with eager's.")
    return is_hit


def main() -> int:
    """Run the check of `check-gpu-cache` and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--pretend", default="")
    options = parser.parse_args()
    try:
        return int(not check(options.directory, options.pretend, options.count))
    except GraphNetError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

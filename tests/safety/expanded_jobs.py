"""Jobs with operators on expanded operands under a memory limit, each in a separate process."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.errors import MemoryLimitError
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Arg, ListArg, Ref

LIMIT_BYTES = 2 * 2**20
SLACK_BYTES = 2 * 2**20
MAX_CPU_S = 4
"""Processor time after which an operator that computes within its memory is left alone."""

SIZE = 2048
"""Rows and columns of operands of 16 MiB that lie in four bytes."""

ONE, TWO, AXIS = (Ref(0),), (Ref(0), Ref(0)), (Ref(0), 0)
CALLS: dict[str, tuple[Arg, ...]] = {
    **dict.fromkeys(
        ("torch.max", "torch.min", "torch.sum", "torch.mean", "torch.std", "torch.var",
         "torch.prod", "torch.argmax", "torch.amax", "torch.logsumexp", "torch.median",
         "torch.mode", "torch.nanmedian", "torch.unique", "torch.count_nonzero",
         "torch.linalg.vector_norm",
         "torch.linalg.matrix_norm", "torch.trace", "torch.det", "torch.logdet", "torch.all",
         "torch.any", "torch.nansum", "torch.aminmax", "torch.corrcoef", "torch.histc",
         "torch.linalg.svdvals", "torch.linalg.matrix_rank", "torch.pdist", "torch.msort",
         "torch.bincount"),
        ONE,
    ),
    **dict.fromkeys(
        ("torch.mm", "torch.matmul", "operator.matmul", "torch.cdist", "torch.dist",
         "torch.nn.functional.mse_loss", "torch.nn.functional.l1_loss", "torch.allclose",
         "torch.nn.functional.linear", "torch.nn.functional.kl_div", "torch.isin",
         "torch.nn.functional.cosine_similarity", "torch.nn.functional.pairwise_distance",
         "torch.linalg.solve", "torch.tensordot"),
        TWO,
    ),
    **dict.fromkeys(
        ("torch.cumsum", "torch.sort", "torch.softmax", "torch.log_softmax", "torch.quantile",
         "torch.nanquantile", "torch.nn.functional.normalize", "torch.kthvalue", "torch.topk"),
        AXIS,
    ),
    "torch.mv": (Ref(0), Ref(2)),
    "torch.nn.functional.cross_entropy": (Ref(0), Ref(1)),
    "torch.nn.functional.nll_loss": (Ref(0), Ref(1)),
    "torch.nn.functional.embedding": (Ref(1), Ref(0)),
    "torch.index_select": (Ref(0), 0, Ref(1)),
    "torch.nn.functional.layer_norm": (Ref(0), ListArg((SIZE,))),
    "torch.ops.aten.max.dim": (Ref(0), 0),
    "torch.ops.aten.mode.default": (Ref(0), 0),
    "torch.ops.aten.mm.default": (Ref(0), Ref(0)),
}  # fmt: skip
INPUTS = (
    Input("input", Value("float32", (SIZE, SIZE), (0, 0))),
    Input("input", Value("int64", (SIZE,), (0,))),
    Input("input", Value("float32", (SIZE,), (0,))),
)


def run(target: str) -> str:
    """Materialize and run an operator: "refused", "ran", or the error of the allocator or torch."""
    sample = Sample("example/wide", "torch", "other", INPUTS, (Op(target, CALLS[target]),), ())
    try:
        module = materialize(sample, memory_limit_bytes=LIMIT_BYTES)
        inputs = make_inputs(sample, memory_limit_bytes=LIMIT_BYTES)
    except MemoryLimitError:
        return "refused"
    limit = _data_bytes() + int(1.2 * LIMIT_BYTES) + SLACK_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
    try:
        module(**inputs)
    except Exception as error:
        return str(error)[:200]
    return "ran"


def _data_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmData:"))


def main() -> None:
    """Print what became of each operator, as one JSON object."""
    torch.set_num_threads(1)
    endings: dict[str, Any] = {}
    for target in CALLS:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(write, run(target).encode())
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        os.close(write)
        is_slow = status == signal.SIGXCPU
        endings[target] = os.read(read, 1000).decode() or ("slow" if is_slow else f"ended {status}")
        os.close(read)
    sys.stdout.write(json.dumps(endings) + "\n")


if __name__ == "__main__":
    main()

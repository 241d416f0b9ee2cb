"""`python -m builder gpu-queue`, `gpu-folder` and `gpu-merge`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from ..capturing import EMBEDDED

QUEUE = Path("build/gpu_queue")


def add_gpu_records(commands: Any) -> None:
    """Declare the three commands."""
    queue = commands.add_parser("gpu-queue", help="choose the rows to run on a GPU")
    queue.set_defaults(run=_queue)
    queue.add_argument("--dataset", type=Path, default=EMBEDDED)
    queue.add_argument("--seed", type=int, default=0)
    folder = commands.add_parser("gpu-folder", help="pack a folder for a machine with a GPU")
    folder.set_defaults(run=_folder)
    folder.add_argument("out", type=Path, nargs="?", default=QUEUE / "folder")
    folder.add_argument(
        "--wheels", type=Path, help="directory of wheels; missing ones are downloaded into it"
    )
    folder.add_argument(
        "--caches", type=Path, action="append", default=[],
        help="caches of `gpu-cache` for one card (repeatable)",
    )  # fmt: skip
    folder.add_argument("--rows", type=int, help="number of first rows of each file to use")
    merge = commands.add_parser("gpu-merge", help="add the records that a machine sent back")
    merge.set_defaults(run=_merge)
    merge.add_argument("records", type=Path, nargs="+", help="files or directories of records")
    for parser in (queue, folder, merge):
        parser.add_argument("--queue", type=Path, default=QUEUE, help="directory of the queue")


def _queue(options: argparse.Namespace) -> int:
    from .queue import write_queue

    for name, number in write_queue(options.dataset, options.queue, options.seed).items():
        print(f"{number} rows in {options.queue / name}")
    return 0


def _folder(options: argparse.Namespace) -> int:
    from .folder import SCRIPT, pack

    wheels = options.wheels or options.queue / "wheels"
    for line in pack(
        options.queue, options.out, wheels, caches=options.caches, num_rows=options.rows
    ):
        print(line)
    script = shlex.quote(str(options.out / SCRIPT))
    print(f"On the machine with the GPU: python3 {script} --seconds 480 --out records")
    return 0


def _merge(options: argparse.Namespace) -> int:
    from .folder import merge, remaining

    table = merge(options.queue, options.records)
    print(f"{table.num_rows} records in {options.queue}")
    for line in remaining(options.queue):
        print(line)
    return 0

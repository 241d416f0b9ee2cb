"""Hidden test sets: problems at sizes that follow from a secret seed.

Whoever runs a contest keeps the seed until the end. Published afterwards, it lets everyone rebuild
the set.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.analysis.splits import split_of
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.schema.tables import SUBGRAPHS
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.shards import write_shards
from graphnet_datasets.storage.table import to_arrow
from graphnet_datasets.terminal import counted
from graphnet_datasets.transforms import reify, symbolise
from graphnet_datasets.transforms.subgraphs import subgraph_hash

from .problems import (
    MAX_FLOPS,
    MAX_INPUT_BYTES,
    MIN_WORKLOADS,
    Problem,
    Workload,
    build,
    find_problems,
    problem_name,
    split_group_of,
)

CONFIG = "typical"
"""The config that contains the parts of a hidden set."""
_ATTEMPTS = 8
"""Maximum number of draws: sizes may violate a constraint, exceed a limit, or be known."""


def hide(
    dataset: Path, out: Path, build_directory: Path, jobs: int, *, seed: str, split: str = "test"
) -> list[str]:
    """Write problems of a split at new sizes into a new dataset directory, and return their ids.

    Each size of the data inputs that may vary is drawn between half and twice that of a public
    workload. Weights keep their sizes. The problems keep their ids, so that solutions need no
    change. The same seed, dataset and version of the library produce the same set.

    Args:
        dataset: the dataset with the parts of the public problems.
        out: the new directory.
        build_directory: the directory for finished work.
        jobs: the number of worker processes.
        seed: any text.
        split: `train`, `validation` or `test`.

    Raises:
        GraphNetError: `out` contains a dataset, or no size can vary.
    """
    if (out / CONFIG).exists():
        raise GraphNetError(f"`{out}` contains a dataset already. Choose another directory.")
    rows, num_fixed = [], 0
    for problem in find_problems(dataset):
        is_chosen = split_of(split_group_of(problem.operators)) == split
        if len(problem.workloads) < MIN_WORKLOADS or not is_chosen:
            continue
        resized = list(resized_workloads(problem, seed))
        num_fixed += len(resized) < MIN_WORKLOADS
        rows += resized if len(resized) >= MIN_WORKLOADS else []
    print(f"{counted(num_fixed, 'problem')} whose sizes cannot vary", flush=True)
    if not rows:
        raise GraphNetError(f"The sizes of no problem of the split `{split}` can vary.")
    write_shards([to_arrow(rows, SUBGRAPHS)], out / CONFIG, "test", table=SUBGRAPHS)
    write_readme(out)
    return [row["problem_id"] for row in build(out, build_directory, jobs)]


def resized_workloads(problem: Problem, seed: str) -> Iterator[dict[str, Any]]:
    """Yield rows of the first workloads of a problem at new sizes."""
    name = problem_name(problem.operators, problem.form)
    num_rows = 0
    sizes_so_far = {_sizes(Sample.from_row(workload.row)) for workload in problem.workloads}
    for place in range(_ATTEMPTS * MIN_WORKLOADS):
        workload = problem.workloads[place % len(problem.workloads)]
        sample = _resize(workload, random.Random(f"{seed} {name} {place}"))  # noqa: S311 - reproducible
        if sample is None or _sizes(sample) in sizes_so_far:
            continue
        sizes_so_far.add(_sizes(sample))
        num_rows += 1
        renamed = dataclasses.replace(sample, id=f"hidden/{name}/{num_rows}")
        yield {
            **workload.row,
            **sample_to_row(renamed),
            **derived_columns(renamed),
            "subgraph_hash": subgraph_hash(renamed),
            "splits": ["test"],
        }
        if num_rows == MIN_WORKLOADS:
            return


def _resize(workload: Workload, generator: random.Random) -> Sample | None:
    """Return the graph of a workload at sizes drawn from `generator`, or None."""
    try:
        symbolic = symbolise(Sample.from_row(workload.row)).sample
    except GraphNetError:
        return None
    for _ in range(_ATTEMPTS):
        sizes = {
            symbol.name: generator.randint(max(1, symbol.hint // 2), 2 * symbol.hint)
            for symbol in symbolic.symbols
        }
        try:
            sample = reify(symbolic, sizes, memory_limit_bytes=MAX_INPUT_BYTES)
            columns = derived_columns(sample)
        except GraphNetError:
            continue
        if (columns["flops"] or 0) <= MAX_FLOPS:
            return sample
    return None


def _sizes(sample: Sample) -> tuple[object, ...]:
    return tuple((item.value.dtype, item.value.shape) for item in sample.inputs)

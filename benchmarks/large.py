"""A table of many graphs: built, listed, filtered and streamed, with the memory of each step.

    python benchmarks/large.py [ROWS] [--keep DIRECTORY]

The graphs are perturbed copies of the embedded ones: each is cut after some operator and receives
its own name, family, and a number of parameters up to twice its model's. Rows are spooled in
arbitrary order and assembled into sorted shards by the code that imports GraphNet trees. Prints one
JSON object per step, each measured in a separate process: wall seconds, processor seconds, and the
largest peak memory of its processes.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

DEFAULT_ROWS = 100_000
PART_ROWS = 256
CHECKED_ROWS = 200
FILTERS = [("task", "==", "nlp"), ("num_ops", "<", 20)]
STEPS = ("build", "list", "filter", "stream")


def bases() -> list[pa.Table]:
    """Return the embedded graphs, a table of one row each, in the columns of this format."""
    from graphnet_datasets.sample.vocabulary import TASKS
    from graphnet_datasets.schema import GRAPHS_SCHEMA
    from graphnet_datasets.storage.loading import STARTER

    tables = []
    for path in sorted(path for task in TASKS for path in STARTER.glob(f"{task}/*.parquet")):
        table = pq.read_table(path)
        for name in set(GRAPHS_SCHEMA.names) - set(table.schema.names):
            nothing = pa.nulls(table.num_rows, GRAPHS_SCHEMA.field(name).type)
            table = table.append_column(name, nothing)
        table = table.select(GRAPHS_SCHEMA.names).cast(GRAPHS_SCHEMA.remove_metadata())
        tables += [table.slice(row, 1).combine_chunks() for row in range(table.num_rows)]
    return tables


def perturbed(
    base: pa.Table, number: int, rng: random.Random, num_noise_bytes: int = 0
) -> tuple[pa.Table, dict[str, Any]]:
    """Return a copy of a graph that ends earlier, and what an assembly has to know of it.

    Copies of a few graphs compress far better than graphs of so many models; so many bytes of noise
    in their metadata make up for that.
    """
    from graphnet_datasets.analysis.splits import split_of

    ops = base["ops"].chunk(0).values
    inputs = base["num_inputs"][0].as_py()
    length = rng.randint(1, max(1, base["num_ops"][0].as_py()))
    name = f"{base['id'][0].as_py()}-{number}"
    digest = hashlib.sha256(name.encode()).hexdigest()
    family = hashlib.sha256(f"{base['id'][0]} {length // 8}".encode()).hexdigest()[:32]
    changes: dict[str, Any] = {
        "id": name,
        "num_ops": length,
        "num_outputs": 1,
        "num_params": rng.randint(0, 2 * base["num_params"][0].as_py()),
        "family": family,
        "structure_hash": digest[:32],
        "signature_hash": digest[32:],
        "outputs": {"operands": [inputs + length - 1], "structure": "[{}]"},
        "op_histogram": None,
    }
    if num_noise_bytes:
        noise = json.dumps({"noise": rng.randbytes(num_noise_bytes).hex()})
        changes["provenance"] = base["provenance"][0].as_py() | {"metadata": noise}
    table = base
    for column, value in changes.items():
        index = table.schema.get_field_index(column)
        new = pa.array([value], table.schema.field(column).type)
        table = table.set_column(index, table.schema.field(column), new)
    cut = pa.ListArray.from_arrays([0, length], ops.slice(base["ops"].chunk(0).offsets[0].as_py()))
    index = table.schema.get_field_index("ops")
    table = table.set_column(
        index, table.schema.field("ops"), cut.cast(table.schema.field("ops").type)
    )
    place = [base["task"][0].as_py(), split_of(family)]
    return table, {"place": place, "id": name, "num_ops": length, "signature_hash": digest[32:]}


def build(root: Path, num_rows: int, num_noise_bytes: int = 0) -> dict[str, Any]:
    """Spool perturbed copies and assemble them; return figures of the dataset."""
    from graphnet_datasets.isolation import LocalPool, Work, num_processors
    from graphnet_datasets.sample import Sample
    from graphnet_datasets.storage.importing.assembly import Assembly, assemble
    from graphnet_datasets.storage.importing.importer import LIMITS
    from graphnet_datasets.storage.importing.reading import PHASES
    from graphnet_datasets.storage.layout import read_layout, write_readme
    from graphnet_datasets.storage.mapping import Result
    from graphnet_datasets.storage.parts import encode_part, save_part

    rng, originals = random.Random(0), bases()  # noqa: S311 - for copies, not for secrets
    assembly = Assembly(keeps_duplicates=False)
    parts = root / "parts"
    parts.mkdir()
    for start in range(0, num_rows, PART_ROWS):
        rows, notes = [], []
        for number in range(start, min(start + PART_ROWS, num_rows)):
            table, note = perturbed(
                originals[number % len(originals)], number, rng, num_noise_bytes
            )
            if number < CHECKED_ROWS:
                Sample.from_row(table.to_pylist()[0])
            rows.append(table)
            notes.append(note)
        path = save_part(encode_part(rows, {}), parts)
        for index, note in enumerate(notes):
            assembly.add(note["id"], Result(note["id"], note, path, index, 1))
    spooled = sum(path.stat().st_size for path in parts.iterdir())
    out = root / "dataset"
    work = Work("graphnet_datasets.storage.importing.reading", PHASES, LIMITS)
    with contextlib.closing(LocalPool(work, num_processors())) as pool:
        assemble(assembly, out, False, root, pool)
    shutil.rmtree(parts)
    write_readme(out)
    files = {path for files in read_layout(out).configs["all"].values() for path in files}
    return {
        "rows": sum(pq.read_metadata(path).num_rows for path in files),
        "shards": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "footer_bytes": sum(pq.read_metadata(path).serialized_size for path in files),
        "spooled_bytes": spooled,
    }


def list_rows(root: Path, num_rows: int) -> dict[str, Any]:
    """List all graphs as `graphnet list` does."""
    del num_rows
    program = [sys.executable, "-m", "graphnet_datasets", "list", "--limit", "5"]
    printed = subprocess.run(  # noqa: S603 - this library
        [*program, "--dataset", str(root / "dataset")], check=True, capture_output=True, text=True
    )
    return {"printed": printed.stdout.splitlines()[-1]}


def filter_rows(root: Path, num_rows: int) -> dict[str, Any]:
    """Load the graphs of one task below a size."""
    del num_rows
    from graphnet_datasets import load_dataset

    splits: Any = load_dataset(root / "dataset", split=None, filters=FILTERS)
    found = [row["num_ops"] for split in splits.values() for row in split.select_columns("num_ops")]
    return {"filters": str(FILTERS), "rows": len(found), "largest": max(found, default=None)}


def stream(root: Path, num_rows: int) -> dict[str, Any]:
    """Stream every row, whole."""
    del num_rows
    from graphnet_datasets import load_dataset

    splits: Any = load_dataset(root / "dataset", split=None, streaming=True)
    rows = ops = 0
    for split in splits.values():
        for row in split:
            rows += 1
            ops += len(row["ops"])
    return {"rows": rows, "operators": ops}


def measure(step: str, root: Path, num_rows: int) -> None:
    """Run one step in this process and print its figures."""
    functions = {"build": build, "list": list_rows, "filter": filter_rows, "stream": stream}
    start = time.perf_counter()
    figures = functions[step](root, num_rows)
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(
        json.dumps(
            {
                "step": step,
                **figures,
                "wall_s": round(time.perf_counter() - start, 2),
                "cpu_s": round(sum(each.ru_utime + each.ru_stime for each in both), 2),
                "peak_memory_bytes": max(each.ru_maxrss for each in both) * 1024,
            }
        ),
        flush=True,
    )


@contextlib.contextmanager
def place(kept: Path | None) -> Iterator[Path]:
    """Give a directory, which goes afterwards unless it is to be kept."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
    else:
        with tempfile.TemporaryDirectory(prefix="graphnet-benchmark-") as directory:
            yield Path(directory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=DEFAULT_ROWS)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--step", choices=STEPS)
    options = parser.parse_args()
    if options.step:
        measure(options.step, options.keep, options.rows)
        return
    with place(options.keep) as root:
        environment = {
            **os.environ,
            "HF_HOME": str(root / "cache"),
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        }
        for step in STEPS:
            subprocess.run(  # noqa: S603 - this script
                [sys.executable, __file__, str(options.rows), "--step", step, "--keep", str(root)],
                check=True,
                env=environment,
            )


if __name__ == "__main__":
    main()

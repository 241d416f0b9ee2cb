"""Builds the embedded dataset out of its catalog: capture, check, write.

Each entry is captured in a process of its own and kept as a table of one row under the build
directory, under a key of all that decides its content, so that a build that is stopped goes on
where it was and one change captures again only what it touches.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import os
import queue
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import graphnet_datasets
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.isolation import Ending, ForkServer, Limits
from graphnet_datasets.layout import write_readme
from graphnet_datasets.sample import Sample
from graphnet_datasets.table import read_table, write_table
from graphnet_datasets.vocabulary import TASKS

from .catalog import Entry

PACKAGE = Path(graphnet_datasets.__file__).parent
BUILDER = Path(__file__).parent
CAPTURE = (
    *(PACKAGE / "frameworks" / "torch" / f"{name}.py" for name in (
        "convert", "dynamo", "extract", "fake_weights", "statistics", "symbolic",
    )),
    *sorted((PACKAGE / "frameworks" / "torch").glob("operators*.py")),
    PACKAGE / "inputs" / "defaults.py",
    PACKAGE / "sample.py",
    PACKAGE / "schema",
)  # fmt: skip
SHARED = ("catalog.py", "examples.py", "models.py", "worker.py")
"""The parts of the program that decide what a captured row is."""

PHASES = ("build", "capture", "write")
LIMITS = Limits(
    phase_timeouts_s={"build": 120.0, "capture": 300.0, "write": 60.0},
    memory_bytes=4 * 2**30,
    is_memory_enforced=False,  # modules are built one layer at a time out of untouched memory
)

MAX_BYTES = 4 * 2**20
"""What the embedded dataset may take in the wheel."""


@dataclasses.dataclass(frozen=True)
class Capture:
    """How the capture of one entry ended: its table, or why there is none."""

    entry: Entry
    path: Path | None
    reason: str = ""


def capture_all(entries: Iterable[Entry], build: Path, jobs: int = 1) -> Iterator[Capture]:
    """Capture entries in worker processes and yield each as it ends, from the cache if it can."""
    build.mkdir(parents=True, exist_ok=True)
    waiting: queue.SimpleQueue[Entry] = queue.SimpleQueue()
    ended: queue.SimpleQueue[Capture | BaseException | None] = queue.SimpleQueue()
    keys = Keys()
    num_waiting = 0
    for entry in entries:
        path = build / f"{keys.of(entry)}.parquet"
        if path.is_file():
            yield Capture(entry, path)
        else:
            waiting.put(entry)
            num_waiting += 1

    def work() -> None:
        try:
            with ForkServer("builder.worker") as server:
                while not waiting.empty():
                    entry = waiting.get()
                    ended.put(_capture(server, entry, build / f"{keys.of(entry)}.parquet"))
        except BaseException as error:  # what ends a thread must not be lost with it
            ended.put(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs, num_waiting))]
    for thread in threads:
        thread.start()
    for _ in range(num_waiting):
        result = ended.get()
        if isinstance(result, BaseException):
            raise result
        if result is not None:
            yield result


def _capture(server: ForkServer, entry: Entry, path: Path) -> Capture:
    with server.directory() as directory:
        row = directory / "row.parquet"
        outcome = server.run(
            {"line": entry.line, "out": str(row)}, directory, phases=PHASES, limits=LIMITS
        )
        if outcome.ending is Ending.FINISHED and row.is_file():
            temporary = path.with_suffix(".partial")
            temporary.write_bytes(row.read_bytes())
            temporary.replace(path)
            return Capture(entry, path)
    message = (outcome.error or {}).get("message", "") or outcome.log[-300:].strip()
    kind = (outcome.error or {}).get("type", "")
    return Capture(entry, None, f"{outcome.ending} in {outcome.phase}: {kind} {message}".strip())


class Keys:
    """Keys of cached rows: hashes over the entry, the program and the libraries."""

    def __init__(self) -> None:
        shared = [*CAPTURE, *(BUILDER / name for name in SHARED)]
        self._shared = _digest(shared) + version("torch").partition("+")[0]
        self._transformers = version("transformers")
        self._files = {path.stem: path for path in (BUILDER / "architectures").glob("*.py")}
        self._sources = {
            name: stem for stem, path in self._files.items() for name in _builders(path)
        }

    def of(self, entry: Entry) -> str:
        """Return the key of an entry: letters and digits."""
        library = self._transformers
        if entry.library == "torch":
            library = _digest(self._files[stem] for stem in self._reached(entry.builder))
        text = "\0".join((entry.line, self._shared, library))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _reached(self, builder: str) -> list[str]:
        """Return the modules of architectures that a builder's module imports, itself included."""
        pending, reached = [self._sources.get(builder, "__init__")], set()
        while pending:
            stem = pending.pop()
            if stem not in reached:
                reached.add(stem)
                pending += _siblings(self._files[stem]) & self._files.keys()
        return sorted(reached)


def _builders(path: Path) -> Iterator[str]:
    """Yield the keys of `ARCHITECTURES` in a module, which is read and not imported."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            for key in node.value.keys:
                if isinstance(key, ast.Constant):
                    yield str(key.value)


def _siblings(path: Path) -> set[str]:
    return {
        str(node.module)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
    }


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def write_dataset(captures: Iterable[Capture], out: Path) -> dict[str, int]:
    """Write a table per task and the README; return the number of graphs of each task.

    Rows are sorted by number of operators, then by id.

    Raises:
        GraphNetError: the dataset is larger than `MAX_BYTES`.
    """
    samples = [
        Sample.from_row(row)
        for capture in captures
        if capture.path is not None
        for row in read_table(capture.path).to_pylist()
    ]
    samples.sort(key=lambda sample: (sample.num_ops, sample.id))
    for task in TASKS:
        chosen = [sample for sample in samples if sample.task == task]
        if chosen:  # derived columns are those of today, whenever the row was captured
            write_table(chosen, out / task / "train-0000.parquet")
    counts = Counter(sample.task for sample in samples)
    write_readme(out, _body(samples))
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    if size > MAX_BYTES:
        raise GraphNetError(
            f"The dataset in `{out}` takes {size} bytes; at most {MAX_BYTES} may be embedded. "
            "Take large graphs out of the catalog."
        )
    return dict(counts)


def write_failures(captures: Iterable[Capture], path: Path) -> int:
    """Write the names of what was not captured with the reasons, and return how many there are."""
    failures = {each.entry.name: each.reason for each in captures if each.path is None}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(failures, indent=2, sort_keys=True) + "\n")
    return len(failures)


def _body(samples: list[Sample]) -> str:
    lines = []
    for task in TASKS:
        sizes = [sample.num_ops for sample in samples if sample.task == task]
        if sizes:
            lines.append(f"| {task} | {len(sizes)} | {min(sizes)} to {max(sizes)} |")
    table = "\n".join(lines)
    return f"""# GraphNet Datasets: starter

{len(samples)} computational graphs, captured from models built from configs: architectures of
transformers and of plain torch, at their usual sizes and at sizes for a CPU. One row is one graph;
weights are not stored, their shapes and statistics are.

| task | graphs | operators |
|---|---|---|
{table}

Graphs with the tag `small` run in milliseconds on one CPU core. `builder/starter.txt` in the source
repository is the catalog, and `python -m builder starter` makes these files from it.

```python
from graphnet_datasets import Sample, load_dataset, materialize

row = load_dataset("graphnet", "cv")[0]
module = materialize(Sample.from_row(row), weights="parameters")
```
"""


def default_jobs() -> int:
    """Return how many workers fit: one per two cores, since capture is one busy thread each."""
    return max(1, (os.cpu_count() or 1) // 2)

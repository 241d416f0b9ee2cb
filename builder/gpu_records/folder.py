"""The folder to copy to a bare machine with a GPU, and the records from that machine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphnet_datasets.atomic import (
    replaced_directory,
    temporary_directory,
    write_bytes,
    write_text,
)
from graphnet_datasets.benchmark import read_runs, write_runs
from graphnet_datasets.benchmark.records.records import TABLE_NAME, sample_digest
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample import Sample
from graphnet_datasets.storage.table import read_table
from graphnet_datasets.terminal import counted

from ..capturing import BUILDER
from ..gpu_cache.filled import SAMPLES_NAME
from .queue import FILES, GRAPHS_FILE, HALF_FILE, PARTS_FILE
from .script import CACHES, PLAN, WHEELS, Arm

MAX_FOLDER_BYTES = 45 * 10**6
RUNS = "runs"
"""Subdirectory of a queue with the records so far."""

SCRIPT = "records.py"
STARTER = "graphnet_datasets/starter"
"""The part of the package that the folder omits, since it contains the rows itself."""

CARRIED = (
    "datasets", "huggingface_hub", "httpx2", "httpcore2", "truststore", "dill", "multiprocess",
    "pydantic", "pydantic_core", "annotated-types", "typing-inspection", "islpy",
)  # fmt: skip
"""Packages that the machine lacks or has in an older version."""

PYTHON = "3.12"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")

_SAMPLES_PER_ARCHIVE = 12
_XZ_PRESET = 3

_THREADS = {"num_threads": 2}
"""With many samples in parallel, more threads would only wait for processors."""
_PARTS: Mapping[str, Any] = {**_THREADS, "phase_timeouts_s": {"compile": 90.0, "run": 60.0}}
_WHOLE: Mapping[str, Any] = {**_THREADS, "phase_timeouts_s": {"compile": 180.0, "run": 60.0}}
_STREAM = "stream"
_CAPTURED = {"launch_mode": "cuda_graph"}

ARMS = (
    Arm("parts-inductor", "parts", PARTS_FILE, "inductor", {}, _PARTS, 48),
    Arm("parts-cuda-graph", "parts", PARTS_FILE, "inductor", {}, {**_PARTS, **_CAPTURED}, 48),
    Arm("parts-aotinductor", "parts", PARTS_FILE, "aotinductor", {}, _PARTS, 48),
    Arm("graphs-eager", "graphs", GRAPHS_FILE, "eager", {}, _WHOLE, 18),
    Arm("graphs-inductor", "graphs", GRAPHS_FILE, "inductor", {}, _WHOLE, 18),
    Arm("half-eager", "graphs", HALF_FILE, "eager", {}, _WHOLE, 18),
    Arm("half-inductor", "graphs", HALF_FILE, "inductor", {}, _WHOLE, 18),
    Arm("graphs-cuda-graph", "more", GRAPHS_FILE, "inductor", {}, {**_WHOLE, **_CAPTURED}, 18),
    Arm(
        "graphs-max-autotune", "more", GRAPHS_FILE, "inductor", {"mode": "max-autotune"}, _WHOLE, 18
    ),
    Arm("graphs-aotinductor", "more", GRAPHS_FILE, "aotinductor", {}, _WHOLE, 18),
    Arm(
        "parts-reduce-overhead", "more", PARTS_FILE, "inductor", {"mode": "reduce-overhead"},
        _PARTS, 48,
    ),
)  # fmt: skip
"""The arms in the order of their stages. `cuda-graph` captures both eager and the compiled graph,
so that neither pays for launches; `reduce-overhead` compares with eager as it is."""


def pack(
    queue: Path,
    out: Path,
    wheels: Path,
    *,
    caches: Sequence[Path] = (),
    num_rows: int | None = None,
) -> Iterator[str]:
    """Write the folder for one call on a machine with a GPU, and yield lines about it.

    It holds wheels, among them one of this library without its dataset, the rows of the queue, a
    plan that lists the missing records, and the script. Compile caches fill the space that is
    left, in the order of the queue.

    Args:
        queue: directory that `write_queue` and `merge` wrote.
        wheels: directory of wheels; those that it lacks are downloaded into it.
        caches: directories that `gpu-cache` wrote for the card.
        num_rows: number of first rows of each file; None for all.

    Raises:
        GraphNetError: `out` is another kind of folder, the queue is incomplete, a wheel cannot be
            built, or the result is larger than `MAX_FOLDER_BYTES`.
    """
    if out.exists() and not (out / PLAN).is_file():
        raise GraphNetError(
            f"`{out}` exists and is not a folder for a GPU machine. Choose another place."
        )
    digests = {name: read_digests(queue / name) for name in FILES}
    ids = {name: list(of_file)[:num_rows] for name, of_file in digests.items()}
    plan = make_plan(ids, read_done(queue, digests))
    with replaced_directory(out) as folder:
        shutil.copyfile(Path(__file__).with_name("script.py"), folder / SCRIPT)
        for name in ids:
            shutil.copyfile(queue / name, folder / name)
        write_text(folder / PLAN, json.dumps(plan))
        (folder / WHEELS).mkdir()
        size = _size(folder)
        for wheel in (*download(wheels), None):
            path = wheel or build_library(BUILDER.parent, wheels)
            shutil.copyfile(path, folder / WHEELS / path.name)
            size += path.stat().st_size
            if size > MAX_FOLDER_BYTES:
                raise GraphNetError(
                    f"The folder takes {size} bytes without caches, but at most {MAX_FOLDER_BYTES} "
                    "can be copied to the machine. Write a queue of fewer rows."
                )
        if caches:
            wanted = dict.fromkeys(name for of_file in ids.values() for name in of_file)
            added, num_packed = pack_caches(
                caches, folder / CACHES, wanted, MAX_FOLDER_BYTES - size
            )
            size += added
            yield f"compile caches of {counted(num_packed, 'sample')}, {added / 1e6:.1f} MB"
    yield f"{size / 1e6:.1f} MB in `{out}`"


def read_digests(path: Path) -> dict[str, str]:
    """Return the digests of the samples of a file by their ids, in the order of the file.

    Raises:
        GraphNetError: the file does not exist.
    """
    if not path.is_file():
        raise GraphNetError(f"`{path}` is missing. Write it with `python -m builder gpu-queue`.")
    return {row["id"]: sample_digest(Sample.from_row(row)) for row in read_table(path).to_pylist()}


def make_plan(
    rows: Mapping[str, Sequence[str]], done: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, Any]:
    """Return the plan that the script reads: arms with their rows, and records by device.

    Args:
        rows: ids of samples by file, in the order of the queue.
        done: ids of samples by name of a device and of an arm.
    """
    arms = [{**asdict(arm), "rows": list(enumerate(rows[arm.file]))} for arm in ARMS]
    return {"arms": arms, "done": done}


def merge(queue: Path, records: Iterable[Path]) -> pa.Table:
    """Add files or directories of records to those of a queue, and return all of them.

    Raises:
        DatasetNotFoundError: a path has no records.
        SchemaError: a file is damaged or has other columns.
    """
    paths = [path for path in (queue / RUNS / TABLE_NAME,) if path.is_file()]
    with temporary_directory("graphnet-merge-") as folder:
        for number, path in enumerate((*paths, *records)):
            write_runs(read_runs(path), folder / f"{number}.parquet")
        table = read_runs(folder)
    (queue / RUNS).mkdir(parents=True, exist_ok=True)
    write_runs(table, queue / RUNS / TABLE_NAME)
    return table


def remaining(queue: Path) -> Iterator[str]:
    """Yield a line for each device and arm with the numbers of records and of missing records."""
    digests = {name: read_digests(queue / name) for name in FILES}
    for device, done in read_done(queue, digests).items():
        for arm in ARMS:
            total, number = len(digests[arm.file]), len(done.get(arm.name, ()))
            yield f"{device}, {arm.name}: {number} of {total}, {total - number} left"


def read_done(
    queue: Path, digests: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, list[str]]]:
    """Return the ids of samples that have a record, by name of the device and of the arm.

    A failure counts as a record; a record of a row that has changed since does not. Records of
    different cards are separate, because their times do not belong in one table.

    Args:
        queue: directory with the records that `merge` wrote.
        digests: `sample_digest` by file and id.
    """
    path = queue / RUNS / TABLE_NAME
    if not path.is_file():
        return {}
    columns = [
        "sample_id",
        "sample_digest",
        "compiler",
        "compiler_options",
        "settings",
        "device",
        "environment",
    ]
    done: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for record in read_runs(path).select(columns).to_pylist():
        arm = arm_of(record, digests)
        if arm is not None:
            done[_device_of(record)][arm.name].append(record["sample_id"])
    return {device: dict(arms) for device, arms in done.items()}


def arm_of(record: Mapping[str, Any], digests: Mapping[str, Mapping[str, str]]) -> Arm | None:
    """Return the matching arm of a record that has most options.

    The requested launch mode is in the settings; the column has another mode if a graph could not
    be captured.
    """
    options = json.loads(record["compiler_options"] or "{}")
    launch_mode = json.loads(record["settings"] or "{}").get("launch_mode", _STREAM)
    fitting = [
        arm
        for arm in ARMS
        if arm.compiler == record["compiler"]
        and arm.options.items() <= options.items()
        and arm.settings.get("launch_mode", _STREAM) == launch_mode
        and digests[arm.file].get(record["sample_id"]) == record["sample_digest"]
    ]
    return max(fitting, key=lambda arm: len(arm.options), default=None)


def download(wheels: Path) -> list[Path]:
    """Return the wheels of `CARRIED` in a directory, after downloading those that it lacks.

    Raises:
        GraphNetError: a version is not in `constraints.txt`, or pip cannot download a wheel.
    """
    wheels.mkdir(parents=True, exist_ok=True)
    constraints = (BUILDER.parent / "constraints.txt").read_text()
    paths = []
    for name in CARRIED:
        pin = re.search(rf"^{re.escape(name)}==(\S+)$", constraints, re.MULTILINE)
        if pin is None:
            raise GraphNetError(f"`constraints.txt` has no version of `{name}`. Add it.")
        stem = name.replace("-", "_")
        if not any(wheels.glob(f"{stem}-{pin[1]}-*.whl")):
            _pip(
                "download", "--no-deps", "--only-binary=:all:", f"--python-version={PYTHON}",
                "--implementation=cp", *(f"--platform={name}" for name in PLATFORMS),
                f"--dest={wheels}", pin[0],
            )  # fmt: skip
        paths += wheels.glob(f"{stem}-{pin[1]}-*.whl")
    return paths


def build_library(checkout: Path, out: Path) -> Path:
    """Build a wheel of this library without the embedded dataset, and return its path."""
    with temporary_directory("graphnet-wheel-") as folder:
        source = folder / "source"
        shutil.copytree(
            checkout, source,
            ignore=lambda place, names: [
                name for name in names if _stays_behind(Path(place, name).relative_to(checkout))
            ],
        )  # fmt: skip
        _pip("wheel", "--no-deps", f"--wheel-dir={folder}", str(source))
        (built,) = folder.glob("graphnet_datasets-*.whl")
        return write_bytes(out / built.name, built.read_bytes())


def _stays_behind(path: Path) -> bool:
    """Return whether a file of the checkout is excluded from the wheel."""
    names = ("graphnet_datasets", "metrics", "setup.py", "setup.cfg", "pyproject.toml", "README.md",
            "LICENSE")  # fmt: skip
    return path.parts[0] not in names or path == Path(STARTER) or path.name == "__pycache__"


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    result = subprocess.run(command, capture_output=True, text=True)  # noqa: S603 (no shell)
    if result.returncode:
        raise GraphNetError(f"`pip {arguments[0]}` failed: {result.stderr.strip()[-1000:]}")


def pack_caches(
    caches: Sequence[Path], out: Path, ids: Iterable[str], max_bytes: int
) -> tuple[int, int]:
    """Pack the compile caches of samples, in their order, into at most `max_bytes`.

    Return the number of bytes and of samples.

    Raises:
        GraphNetError: a directory has no list of its samples.
    """
    entries = {name: paths for directory in caches for name, paths in _entries(directory).items()}
    names = [name for name in ids if name in entries]
    out.mkdir()
    size = num_packed = 0
    packed: set[str] = set()
    for start in range(0, len(names), _SAMPLES_PER_ARCHIVE):
        some = names[start : start + _SAMPLES_PER_ARCHIVE]
        files = {place: path for name in some for place, path in entries[name].items()}
        path = out / f"{start:04}.tar.xz"
        with tarfile.open(path, "w:xz", preset=_XZ_PRESET) as archive:
            for entry in sorted(files.keys() - packed):
                archive.add(files[entry], entry)
        if size + path.stat().st_size > max_bytes:
            path.unlink()
            break
        size += path.stat().st_size
        packed.update(files)
        num_packed += len(some)
    return size, num_packed


def _entries(caches: Path) -> dict[str, dict[str, Path]]:
    """Return the files of each sample of a directory, by their places in it."""
    path = caches / SAMPLES_NAME
    if not path.is_file():
        raise GraphNetError(
            f"`{caches}` has no `{SAMPLES_NAME}`. Choose a directory that "
            "`python -m builder gpu-cache` wrote."
        )
    return {
        record["id"]: {place: caches / place for place in record["entries"]}
        for record in read_journal(path)
        if record.get("entries")
    }


def _device_of(record: Mapping[str, Any]) -> str:
    """Return the name of the card of a record, or `cpu`."""
    if record["device"] == "cpu":
        return "cpu"
    return (json.loads(record["environment"]).get("gpu") or {}).get("name", "")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

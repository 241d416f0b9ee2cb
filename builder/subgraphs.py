"""Tables of subgraphs beside the embedded dataset, and their coverage."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from graphnet_datasets.analysis.splits import SPLITS
from graphnet_datasets.atomic import file_sha256, replaced_directory
from graphnet_datasets.errors import GraphNetError, MaterializeError, SampleError
from graphnet_datasets.report.coverage import plot_coverage
from graphnet_datasets.sample import Sample
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.schema import CONFIGS
from graphnet_datasets.schema.tables import SUBGRAPHS, TRUNCATED
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.selection import Filters, select_rows
from graphnet_datasets.storage.shards import write_shards
from graphnet_datasets.storage.table import read_table, write_arrow
from graphnet_datasets.storage.transforming import (
    TRANSFORM_LIMITS,
    TransformReport,
    transform_dataset,
)
from graphnet_datasets.terminal import counted
from graphnet_datasets.transforms.cut import Cutter
from graphnet_datasets.transforms.registry import Step
from graphnet_datasets.transforms.repeats import trace
from graphnet_datasets.transforms.subgraphs import subgraph_hash
from graphnet_datasets.version import __version__

from .canonical import canonical_form
from .pages import write_between, write_picture
from .placing import stored_groups

pc: Any = pyarrow.compute

PARENTS = (*TASKS, TRUNCATED)
"""The configs of graphs that are cut."""

NAMES = tuple(name for name, config in CONFIGS.items() if config.table is SUBGRAPHS)
MAX_BYTES = 25 * 2**20
"""Size limit of all tables of subgraphs in the wheel."""

MAX_INPUT_BYTES = 2**28
"""Graphs with larger inputs are cut without a run, since drawing them takes many seconds."""

MAX_FLOPS = 2e10
"""Graphs with more operations, a second on one core, are cut without a run."""

MAX_SIZES: Mapping[str, int] = {"sole_op": 12, "fusible": 6, "typical": 5}
"""Maximum number of parts with the same canonical form that a split of a table keeps.

Of a form with fewer than `FEW_SIZES` parts, each in a single family, a split keeps one part."""

FEW_SIZES = 5

INDUCTOR_MAX_OPS = 100
"""Graphs with more operators are not fused by TorchInductor, which takes 25 ms per operator.

All other graphs that it compiles are fused."""

LIMITS = dataclasses.replace(TRANSFORM_LIMITS, memory_bytes=4 * 2**30)

_AT_ONCE = 50
"""Number of graphs read for each pass over a file, which limits memory."""

OPTIONS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    **{name: ({"config": name},) for name in NAMES},
    "fusible": (
        {"config": "fusible", "method": "rules"},
        {"config": "fusible", "method": "inductor", "max_ops": INDUCTOR_MAX_OPS},
    ),
}
"""Options of each table, such as the methods by which parts are found."""


def stale_parents(dataset: Path) -> set[str]:
    """Return the graphs that no longer contain their parts in the tables of a dataset.

    They were removed, moved to another split, or changed after their parts were cut: each part is
    cut again and compared. The hash of a graph is not sufficient, since it excludes properties of
    parts such as strides.
    """
    parts: dict[str, list[dict[str, Any]]] = {}
    columns = ["parent_id", "parent_ops", "subgraph_hash", "splits"]
    for path in _tables(dataset, NAMES):
        for row in read_table(path, columns).to_pylist():
            parts.setdefault(row["parent_id"], []).append(row)
    stale = set(parts)
    for path in _tables(dataset, PARENTS):
        names = [
            sample_id
            for sample_id in read_table(path, ["id"])["id"].to_pylist()
            if sample_id in parts
        ]
        for first in range(0, len(names), _AT_ONCE):
            some = read_table(path, filters=[("id", "in", names[first : first + _AT_ONCE])])
            for sample in map(Sample.from_row, some.to_pylist()):
                if _gives(sample, _split_of(path), parts[sample.id]):
                    stale.remove(sample.id)
    return stale


def drop_parts(dataset: Path, parents: Collection[str]) -> int:
    """Remove the parts of graphs from the tables of a dataset; return their number."""
    num_dropped = 0
    names = pa.array(sorted(parents), pa.string())  # typed, for none of them as well
    for path in _tables(dataset, NAMES):
        groups = stored_groups(path, SUBGRAPHS)
        remaining = [group.filter(~pc.field("parent_id").isin(names)) for group in groups]
        dropped = sum(group.num_rows for group in groups) - sum(
            group.num_rows for group in remaining
        )
        if dropped:
            write_arrow(remaining, path, SUBGRAPHS)
        num_dropped += dropped
    return num_dropped


@dataclasses.dataclass(frozen=True)
class Coverage:
    """The coverage of a dataset by the rows of a table."""

    num_rows: int
    num_occurrences: int
    num_covered: int
    num_ops: int
    num_without_statistics: int
    num_in_several_splits: int

    def __str__(self) -> str:
        share = self.num_covered / self.num_ops if self.num_ops else 0.0
        return (
            f"{counted(self.num_rows, 'row')} for {self.num_occurrences} places, which cover "
            f"{share:.1%} of {self.num_ops} operators; {self.num_without_statistics} without "
            f"statistics of all inputs, {self.num_in_several_splits} in families of several splits"
        )


def build(
    dataset: Path,
    build_directory: Path,
    names: list[str],
    jobs: int,
    max_ops: int | None = None,
) -> None:
    """Write tables of subgraphs into a dataset directory, and print a summary.

    Graphs with more than `max_ops` operators are omitted. Of the parts of a split with the same
    canonical form, up to `MAX_SIZES` that occur in the most families are kept. Progress is stored
    below `build_directory`, in a directory for these graphs and this release, from which an
    interrupted build continues. Equal graphs result in equal files. The README is updated.

    Raises:
        GraphNetError: there is no such table, a table is empty, or they are too large together.
    """
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise GraphNetError(f"There is no table `{unknown[0]}`. Choose one of {', '.join(NAMES)}.")
    build_directory = build_directory / _digest(dataset)
    num_ops = sum(row["num_ops"] for row in select_rows("all", dataset=dataset))
    place = build_directory / "-".join(names)
    if not place.exists():
        print(_transform(dataset, names, place, jobs, max_ops).summary(), flush=True)
    for name in names:
        num_parts, num_kept = _put(place / name, dataset / name)
        print(f"{name}: {num_kept} of {counted(num_parts, 'part')} are kept", flush=True)
        for method, coverage in measure_coverage(dataset / name, num_ops).items():
            print(f"{name}, by {method}: {coverage}", flush=True)
    write_readme(dataset)
    size = sum(path.stat().st_size for path in _tables(dataset, NAMES))
    print(f"{counted(len(names), 'table')}; all tables of subgraphs take {size} bytes")
    if size > MAX_BYTES:
        raise GraphNetError(f"The tables take {size} bytes; at most {MAX_BYTES} may be embedded.")


def measure_coverage(folder: Path, num_ops: int) -> dict[str, Coverage]:
    """Return the coverage of a dataset of `num_ops` operators by a folder of tables, by method."""
    columns = ["num_ops", "num_occurrences", "has_statistics", "splits", "method"]
    paths = [path for split in SPLITS for path in sorted(folder.glob(f"{split}-*.parquet"))]
    by_method: dict[str, list[dict[str, Any]]] = {}
    for row in pa.concat_tables(read_table(path, columns) for path in paths).to_pylist():
        by_method.setdefault(row["method"], []).append(row)
    return {
        method: Coverage(
            num_rows=len(rows),
            num_occurrences=sum(row["num_occurrences"] for row in rows),
            num_covered=sum(row["num_occurrences"] * row["num_ops"] for row in rows),
            num_ops=num_ops,
            num_without_statistics=sum(not row["has_statistics"] for row in rows),
            num_in_several_splits=sum(len(row["splits"]) > 1 for row in rows),
        )
        for method, rows in sorted(by_method.items(), reverse=True)
    }


BEGIN, END = "<!-- subgraphs: make subgraphs -->", "<!-- end of subgraphs -->"


def write_coverage(dataset: Path, path: Path, max_ops: int | None = None) -> None:
    """Replace the text between the markers of a page by a summary of the tables of a dataset.

    `max_ops` is that of `build`: graphs with more operators were not cut.

    Raises:
        GraphNetError: the text has no markers.
    """
    graphs = select_rows("all", dataset=dataset)
    num_ops = sum(row["num_ops"] for row in graphs)
    lines = [
        "| config | method | rows | places | operators covered | rows in families of several "
        "splits | without statistics of all inputs | Parquet |",
        "|---" * 8 + "|",
    ]
    for name in NAMES:
        files = sorted((dataset / name).glob("*.parquet"))
        size = f"{sum(file.stat().st_size for file in files) / 1e6:.1f} MB"
        for method, coverage in measure_coverage(dataset / name, num_ops).items() if files else ():
            cells = [
                f"`{name}`",
                f"`{method}`",
                f"{coverage.num_rows:,}",
                f"{coverage.num_occurrences:,}",
                f"{coverage.num_covered / num_ops:.1%}",
                f"{coverage.num_in_several_splits:,}",
                f"{coverage.num_without_statistics:,}",
                size,
            ]
            lines.append("| " + " | ".join(cells) + " |")
            size = ""  # of all methods together
    rows = [row for row in graphs if max_ops is None or row["num_ops"] <= max_ops]
    is_large = [
        row["input_bytes"] > MAX_INPUT_BYTES or (row["flops"] or 0) > MAX_FLOPS for row in rows
    ]
    is_small = [row["framework"] == "torch" and row["num_ops"] <= INDUCTOR_MAX_OPS for row in rows]
    sentence = (
        f"Of {len(rows):,} graphs with {sum(row['num_ops'] for row in rows):,} operators "
        f"{sum(is_large)} were cut without a run. TorchInductor fused the {sum(is_small)} torch "
        f"graphs with up to {INDUCTOR_MAX_OPS} operators."
    )
    if len(rows) < len(graphs):
        sentence += (
            f" {len(graphs) - len(rows):,} graphs with more than {max_ops:,} operators were not "
            "cut; the shares are of the operators of all graphs."
        )
    lines += ["", sentence]
    write_between(path, BEGIN, END, lines)


def draw_coverage(dataset: Path, directory: Path) -> Path:
    """Draw the coverage of a dataset by its first typical parts, and return the path.

    One line is for rows, the other for sequences of operators with any shapes.
    """
    num_ops = sum(row["num_ops"] for row in select_rows("all", dataset=dataset))
    rows: list[int] = []
    sequences: collections.Counter[object] = collections.Counter()
    for path in sorted((dataset / "typical").glob("*.parquet")):
        for row in read_table(path).to_pylist():
            covered = row["num_occurrences"] * row["num_ops"]
            rows.append(covered)
            traced = trace(Sample.from_row(row))
            sequences[traced.targets, traced.edges.tobytes()] += covered
    figure = plot_coverage(
        {"sequences of operators": list(sequences.values()), "with their shapes": rows}, num_ops
    )
    return write_picture(figure, directory / "typical-coverage.svg")


def _tables(dataset: Path, configs: Collection[str]) -> list[Path]:
    return [path for name in configs for path in sorted((dataset / name).glob("*.parquet"))]


def _split_of(path: Path) -> str:
    return path.name.partition("-")[0]


def _gives(parent: Sample, split: str, parts: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether cutting a graph of a split again yields all these rows."""
    try:
        cutter = Cutter(parent)
        return all(
            split in part["splits"]
            and subgraph_hash(cutter.cut(part["parent_ops"]).sample) == part["subgraph_hash"]
            for part in parts
        )
    except (SampleError, MaterializeError):
        return False  # its operators have changed


def _digest(dataset: Path) -> str:
    """Return a hash of the graphs of a dataset and of the release that cuts them."""
    digest = hashlib.sha256(__version__.encode())
    for path in sorted(dataset.glob("*/*.parquet")):
        if path.parent.name not in NAMES:
            digest.update(f"{path.relative_to(dataset)} {file_sha256(path)}".encode())
    return digest.hexdigest()[:16]


def _transform(
    dataset: Path, names: list[str], place: Path, jobs: int, max_ops: int | None
) -> TransformReport:
    from rich.progress import Progress

    with Progress() as progress:
        task = progress.add_task("graphs", total=None)
        return transform_dataset(
            "all",
            [Step("parts", options) for name in names for options in OPTIONS[name]],
            place,
            dataset=dataset,
            filters=Filters(max_ops=max_ops),
            jobs=jobs,
            max_input_bytes=MAX_INPUT_BYTES,
            max_flops=MAX_FLOPS,
            limits=LIMITS,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )


def _put(source: Path, target: Path) -> tuple[int, int]:
    """Replace a folder by the most frequent parts of another, and return the sizes of both.

    Sizes are numbers of parts, of `source` first.
    """
    if not source.is_dir():
        raise GraphNetError(f"No part was found for `{target.name}`. Choose other options.")
    num_parts = num_kept = 0
    with replaced_directory(target) as place:
        for split in SPLITS:
            tables = [read_table(path) for path in sorted(source.glob(f"{split}-*.parquet"))]
            if not tables:
                continue
            table = pa.concat_tables(tables)
            hashes = _most_frequent(table, MAX_SIZES[target.name])
            chosen = table.filter(pc.field("subgraph_hash").isin(hashes))
            num_parts, num_kept = num_parts + table.num_rows, num_kept + chosen.num_rows
            write_shards([chosen], place, split, table=SUBGRAPHS)
    return num_parts, num_kept


def _most_frequent(table: pa.Table, max_sizes: int) -> pa.Array:
    """Return the hashes of the parts to keep: one or `max_sizes` of each canonical form."""
    ranked: dict[str, list[tuple[int, int, str]]] = {}
    for batch in table.to_batches(max_chunksize=1000):
        for row in batch.to_pylist():
            form = canonical_form(Sample.from_row(row)).digest
            rank = (-row["num_families"], -row["num_occurrences"], row["subgraph_hash"])
            ranked.setdefault(form, []).append(rank)
    hashes: set[str] = set()
    for ranks in map(sorted, ranked.values()):
        num_families = -ranks[0][0]
        is_rare = len(ranks) < FEW_SIZES and num_families < 2
        hashes.update(rank[-1] for rank in ranks[: 1 if is_rare else max_sizes])
    return pa.array(sorted(hashes), pa.string())

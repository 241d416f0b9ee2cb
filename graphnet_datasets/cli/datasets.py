"""`graphnet list`, `show`, `export` and `import`: what is in a dataset, and the ways in and out."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DatasetExistsError, DatasetNotFoundError, GraphNetError, SampleError

if TYPE_CHECKING:
    import pyarrow.dataset

    from ..sample import Sample

app = typer.Typer()

Dataset = Annotated[
    str, typer.Option(help="`graphnet`, `org/name` on the Hub, or a path that starts with `./`.")
]

LISTED = ("id", "framework", "task", "source", "family", "num_ops", "num_params", "dtype")
FAMILY_LENGTH = 8
"""Characters of a family's hash that are shown; `--family` takes as many as it is given."""


@app.command("list", epilog="Example: graphnet list cv --max-ops 200 --source timm")
def print_rows(
    config: Annotated[str, typer.Argument(help="A task, or `all`.")] = "all",
    dataset: Dataset = "graphnet",
    task: Annotated[list[str] | None, typer.Option(help="Only this task (repeatable).")] = None,
    framework: Annotated[str | None, typer.Option(help="torch or paddle.")] = None,
    source: Annotated[list[str] | None, typer.Option(help="Only this source (repeatable).")] = None,
    family: Annotated[str | None, typer.Option(help="A family's hash or its beginning.")] = None,
    min_ops: Annotated[int | None, typer.Option(help="At least this many operators.")] = None,
    max_ops: Annotated[int | None, typer.Option(help="At most this many operators.")] = None,
    max_params: Annotated[int | None, typer.Option(help="At most this many parameters.")] = None,
    limit: Annotated[int | None, typer.Option(help="Print this many at most.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List the graphs of a dataset by size, with what one filters by."""
    import pyarrow.dataset

    from ..loading import load_dataset, locate

    column = pyarrow.dataset.field
    conditions = []
    if task:
        conditions.append(column("task").isin(task))
    if framework is not None:
        conditions.append(column("framework") == framework)
    if source:
        conditions.append(column("source").isin(source))
    if family is not None:
        conditions.append(_starts_with(column("family"), family))
    if min_ops is not None:
        conditions.append(column("num_ops") >= min_ops)
    if max_ops is not None:
        conditions.append(column("num_ops") <= max_ops)
    if max_params is not None:
        conditions.append(column("num_params") <= max_params)
    filters = None
    for condition in conditions:
        filters = condition if filters is None else filters & condition
    # From the Hub a stream fetches these columns alone; a local one would cost the import of torch.
    is_remote = not isinstance(locate(dataset), Path)
    splits: Any = load_dataset(
        dataset, config, None, filters=filters, columns=LISTED, streaming=is_remote
    )
    rows = [{name: row[name] for name in LISTED} for split in splits.values() for row in split]
    rows.sort(key=lambda row: (row["num_ops"], row["id"]))
    shown = rows if limit is None else rows[:limit]
    if as_json:
        for row in shown:
            typer.echo(json.dumps(row))
        return
    _print_table(shown)
    hidden = len(rows) - len(shown)
    typer.echo(f"{len(rows)} graphs" + (f", {hidden} not shown" if hidden else ""))


@app.command("show", epilog="Example: graphnet show torchvision/resnet18")
def print_sample(
    what: Annotated[str, typer.Argument(help="A sample's id, or a path with one sample.")],
    dataset: Dataset = "graphnet",
    names: Annotated[
        str, typer.Option(help="Names of the arguments: canonical, or those of the source.")
    ] = "canonical",
) -> None:
    """Print a graph: what is known of it, its inputs, and its operators as Python text."""
    from ..benchmark.selection import select_rows
    from ..frameworks import print_source
    from ..sample import Sample

    if names not in ("canonical", "source"):
        raise typer.BadParameter("it is `canonical` or `source`", param_hint="--names")
    rows = select_rows(what, dataset=dataset)
    if len(rows) != 1:
        listed = ", ".join(f"`{row['id']}`" for row in rows[:5])
        raise DatasetNotFoundError(
            f"`{what}` is {len(rows)} samples. Show one of them by its id: {listed} …"
        )
    (row,) = rows
    for name in (*LISTED, "is_dynamic", "mode", "license", "structure_hash", "signature_hash"):
        typer.echo(f"{name:<16}{row[name]}")
    sample = Sample.from_row(row)
    typer.echo("")
    for line in _describe_inputs(sample):
        typer.echo(line)
    typer.echo("")
    typer.echo(print_source(sample, names=names))


@app.command("export", epilog="Example: graphnet export graphnet")
def export(
    directory: Annotated[Path, typer.Argument(help="What to write; it must not exist.")],
    dataset: Dataset = "graphnet",
    form: Annotated[
        str,
        typer.Option(
            "--format", help="`parquet` for `datasets`, `graphnet` for a directory per sample."
        ),
    ] = "parquet",
) -> None:
    """Write a dataset as a directory.

    Beside a directory `graphnet`, `datasets.load_dataset("graphnet", "cv")` loads it.
    """
    if form == "parquet":
        from ..export import export_dataset

        export_dataset(directory, dataset)
        typer.echo(f"{dataset} written to {directory}")
    elif form == "graphnet":
        count = _export_directories(directory, dataset)
        typer.echo(f"{count} sample directories written to {directory}")
    else:
        raise typer.BadParameter("it is `parquet` or `graphnet`", param_hint="--format")


@app.command("import", epilog="Example: graphnet import samples/ --out mine.parquet")
def import_directories(
    directories: Annotated[
        list[Path], typer.Argument(help="GraphNet sample directories, or trees of them.")
    ],
    out: Annotated[Path, typer.Option(help="The Parquet file to write.")],
) -> None:
    """Read GraphNet sample directories into one table.

    What cannot be read is listed with its reason, the rest is written, and the exit status is 1.
    """
    from ..table import write_table

    if out.exists():
        raise DatasetExistsError(f"`{out}` exists. Choose another file, or delete it.")
    found = [path for each in directories for path in _find_sample_directories(each)]
    reader = _Reader(found)
    samples = iter(reader)
    first = next(samples, None)
    if first is not None:
        write_table(itertools.chain([first], samples), out)
        typer.echo(f"{len(reader.ids)} samples of {len(found)} directories written to {out}")
    for failure in reader.failures:
        typer.echo(failure, err=True)
    if reader.failures:
        typer.echo(f"{len(reader.failures)} of {len(found)} directories were left out", err=True)
        raise typer.Exit(1)


def _starts_with(column: pyarrow.dataset.Expression, prefix: str) -> pyarrow.dataset.Expression:
    import pyarrow.compute

    return pyarrow.compute.starts_with(column, prefix)  # pyright: ignore[reportAttributeAccessIssue]


def _print_table(rows: Iterable[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in LISTED:
        is_number = name.startswith("num_")
        table.add_column(
            name.removeprefix("num_"), justify="right" if is_number else "left", no_wrap=True
        )
    for row in rows:
        cells = {**row, "family": (row["family"] or "")[:FAMILY_LENGTH]}
        table.add_row(
            *(
                f"{cell:,}" if isinstance(cell, int) else escape(str(cell or ""))
                for cell in cells.values()
            )
        )
    # Into a pipe a line is as long as it is; rich would cut it at 80 columns.
    Console(width=None if sys.stdout.isatty() else 10_000).print(table)


def _describe_inputs(sample: Sample) -> Iterator[str]:
    for name, each in zip(sample.input_names, sample.inputs, strict=True):
        dims = "" if each.value.shape is None else ", ".join(map(str, each.value.shape))
        kind = each.source_name if each.role == "symbol" else f"{each.value.dtype}[{dims}]"
        note = "" if each.statistics is None else _describe_statistics(each.statistics)
        yield f"{name:<16}{kind:<32}{note}".rstrip()


def _describe_statistics(statistics: Any) -> str:
    parts = [
        f"{name} {value:g}"
        for name in ("mean", "std", "min", "max")
        if (value := getattr(statistics, name)) is not None
    ]
    return ", ".join(parts) + ("" if statistics.is_measured else " (by role)")


def _export_directories(directory: Path, dataset: str) -> int:
    from ..directory import write_directory
    from ..loading import load_dataset
    from ..sample import Sample

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise DatasetExistsError(f"`{directory}` exists. Choose another, or delete it.")
    count = 0
    for row in load_dataset(dataset, streaming=True):
        sample = Sample.from_row(row)
        write_directory(sample, directory / sample.id)
        count += 1
    return count


def _find_sample_directories(root: Path) -> list[Path]:
    """Return the topmost directories that are samples: their subgraphs belong to them."""
    if not root.is_dir():
        raise DatasetNotFoundError(f"There is no directory `{root}`.")
    found = sorted({path.parent for path in root.rglob("graph_net.json")})
    if not found:
        raise DatasetNotFoundError(f"`{root}` holds no GraphNet sample (`graph_net.json`).")
    return [path for path in found if not any(above in path.parents for above in found)]


class _Reader:
    """Reads sample directories one by one and keeps account of those that cannot be read."""

    def __init__(self, directories: list[Path]) -> None:
        self.directories = directories
        self.ids: set[str] = set()
        self.failures: list[str] = []

    def __iter__(self) -> Iterator[Sample]:
        from datasets.utils import tqdm

        from ..directory import read_directory

        for path in tqdm(self.directories, desc="Reading", unit="directory"):
            try:
                samples = read_directory(path)
                for sample in samples:
                    if sample.id in self.ids:
                        raise SampleError(f"There is a sample `{sample.id}` already.")
            except GraphNetError as error:
                self.failures.append(f"{path}: {error}")
                continue
            self.ids.update(sample.id for sample in samples)
            yield from samples

"""`graphnet push`: add graphs, or rows of any other table, to a repository on the Hub."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DatasetNotFoundError, SampleError, SchemaError
from ..terminal import counted
from .counting import PARTLY, show_count
from .terminal import echo

if TYPE_CHECKING:
    import pyarrow as pa

    from ..hub import Pushed
    from ..sample import Sample
    from ..schema import Table
    from ..storage.importing import FolderOutcome, ImportReport

app = typer.Typer()

MAX_REASONS = 20
"""Items left out that are named one by one; `--verbose` names all."""


@app.command("push", epilog="Example: graphnet push samples/ my-org/my-graphs")
def push(
    path: Annotated[
        Path,
        typer.Argument(
            help="A Parquet file, a dataset directory, GraphNet sample directories, or RUNS."
        ),
    ],
    repository: Annotated[str, typer.Argument(help="`org/name` on the Hub; made if missing.")],
    config: Annotated[str | None, typer.Option(help="By default each sample's task.")] = None,
    split: Annotated[str | None, typer.Option(help="By default that of its family.")] = None,
    create_pr: Annotated[
        bool, typer.Option("--create-pr", help="Open a pull request instead of committing.")
    ] = False,
    revision: Annotated[str | None, typer.Option(help="A branch; by default the main one.")] = None,
    skip_validation: Annotated[
        str | None,
        typer.Option(help="Push without checking, for this reason, which is recorded."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Name every item that was left out.")
    ] = False,
) -> None:
    """Add graphs, records of timed runs or other rows that a repository does not hold yet.

    You are who `hf auth login` or HF_TOKEN says. What is there already is left out, and so is what
    fails a check (`graphnet validate`); several people may push at once. It exits 3 where sample
    directories could not be read and the others were pushed.
    """
    from ..hub import push_rows, push_samples
    from ..schema.tables import CONFIGS, GRAPHS

    if not path.exists():
        raise DatasetNotFoundError(f"There is no file or directory `{path}`.")
    where: dict[str, Any] = {"create_pr": create_pr, "revision": revision}
    table = _table_of(path)
    if table is not GRAPHS:
        (own, *_) = (each.name for each in CONFIGS.values() if each.table is table)
        if config or split or skip_validation:
            raise typer.BadParameter(
                f"{table.rows} go to the config `{own}`, split `train`, without checks"
            )
        _report(push_rows(_rows_of(path, table), repository, own, **where), repository, verbose)
        return
    failures: list[FolderOutcome] = []
    with contextlib.ExitStack() as stack:
        source = path
        if _holds_directories(path):
            read = stack.enter_context(_read_directories(path))
            failures = read.failures
            if read.out is None:
                raise SampleError(
                    f"None of the {len(failures)} sample directories in `{path}` can be read. The "
                    f"first, `{failures[0].path}`: {failures[0].reason}"
                )
            source = read.out
        pushed = push_samples(
            _samples(source), repository, config, split, skip_validation=skip_validation, **where
        )
    _report(pushed, repository, verbose)
    for each in failures if verbose else failures[:MAX_REASONS]:
        echo(f"{each.path}: {each.reason}", err=True)
    if failures:
        echo(f"{counted(len(failures), 'directory', 'directories')} could not be read", err=True)
        raise typer.Exit(PARTLY)


def _report(pushed: Pushed, repository: str, is_verbose: bool) -> None:
    left_out = pushed.skipped if is_verbose else pushed.skipped[:MAX_REASONS]
    for each in left_out:
        echo(f"{each.id}: {each.reason}", err=True)
    if len(left_out) < len(pushed.skipped):
        echo(f"… and {len(pushed.skipped) - len(left_out)} more (--verbose)", err=True)
    echo(f"{pushed.num_added} added to {repository}, {len(pushed.skipped)} left out")
    address = pushed.pull_request_url or pushed.commit_url
    if address:
        echo(address)


def _table_of(path: Path) -> Table:
    """Return what the rows of a file or directory are; of a dataset that holds graphs, these.

    Raises:
        SchemaError: a directory holds rows of several other kinds.
    """
    from ..benchmark.records.records import PARTS_NAME, TABLE_NAME
    from ..schema.tables import GRAPHS, RUNS, table_of_schema
    from ..storage.table import check_file

    if (path / TABLE_NAME).is_file() or (path / PARTS_NAME).is_dir():
        return RUNS
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    tables = {table.name: table for table in (table_of_schema(check_file(each)) for each in files)}
    if not tables or GRAPHS.name in tables:
        return GRAPHS
    if len(tables) > 1:
        raise SchemaError(
            f"`{path}` holds {' and '.join(table.rows for table in tables.values())}. Push one "
            "kind after another."
        )
    (table,) = tables.values()
    return table


def _rows_of(path: Path, table: Table) -> pa.Table:
    """Return the rows of a file or directory that holds one table other than `graphs`."""
    import pyarrow as pa

    from ..benchmark.records.records import read_runs
    from ..schema.tables import RUNS
    from ..storage.table import read_table

    if table is RUNS:
        return read_runs(path)
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    return pa.concat_tables([read_table(each) for each in files])


def _holds_directories(path: Path) -> bool:
    return path.is_dir() and next(path.rglob("graph_net.json"), None) is not None


def _samples(path: Path) -> Iterator[Sample | Mapping[str, Any]]:
    from datasets.utils import tqdm

    if path.is_file():
        yield from tqdm(_rows(path), desc="Reading", unit="graph")
    else:
        from ..schema import ALL
        from ..storage.layout import read_layout

        splits_by_config = read_layout(path).configs
        splits = splits_by_config.get(ALL) or next(iter(splits_by_config.values()))
        for file in (file for files in splits.values() for file in files):
            yield from tqdm(_rows(file), desc=f"Reading {file.name}", unit="graph")


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ..storage.table import check_file, unreadable

    check_file(path)
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=20):
                yield from batch.to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise unreadable(path, error) from error


@contextlib.contextmanager
def _read_directories(root: Path) -> Iterator[ImportReport]:
    """Read GraphNet directories into a table that is there within the block."""
    from ..storage.importing import import_directories

    with (
        tempfile.TemporaryDirectory(prefix="graphnet-push-") as directory,
        show_count("Reading", "directories") as count,
    ):
        out = Path(directory) / "graphs.parquet"
        # What is there twice, `push_samples` itself names and leaves out.
        yield import_directories(root, out, keeps_duplicates=True, on_progress=count)

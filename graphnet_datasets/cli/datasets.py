"""`graphnet list` and `show`: the contents of a dataset."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DiskError, RunError
from ..terminal import counted, printable_line
from .disk import new_output
from .groups import with_groups
from .selection import Dataset, SelectionOptions
from .terminal import GAP, echo, width

if TYPE_CHECKING:
    from ..frameworks.dispatch import Names
    from ..sample import Sample

app = typer.Typer()

LISTED = (
    *("id", "framework", "task", "source", "kind", "family", "num_ops", "num_params", "flops"),
    *("dtype", "is_dynamic", "license"),
)
BY_IMPORTANCE = (
    *("id", "num_ops", "num_occurrences", "num_families", "num_params", "task", "framework"),
    *("flops", "dtype", "kind", "is_dynamic", "method", "family", "source", "license"),
)
"""Columns of a listing. A narrow terminal omits the last ones."""
NUMBERS = frozenset({"num_ops", "num_params", "flops", "num_occurrences", "num_families"})
PART_FILTERS = ("method", "min_occurrences")
"""Filters by columns that only parts of graphs have."""
PART_COLUMNS = (
    *("parent_id", "parent_ops", "num_occurrences", "num_families", "tasks", "splits", "method"),
)
"""Additional columns that `show` prints for graphs that were made from another graph."""
FAMILY_LENGTH = 8
"""Printed characters of a family's hash; `--family` accepts a prefix of any length."""
HASH_LENGTH = 32
"""Characters of the whole hash; families of tuning tasks are words."""


@app.command("list", epilog="Example: graphnet list cv --name resnet --max-ops 200")
@with_groups
def print_rows(
    listed: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="names",
            help="Tasks, `all`, `excluded` (what failed a check), parts of graphs (`sole_op`, "
            "`fusible`, `typical`), ids, or paths. Default: all graphs.",
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    selection: SelectionOptions,
) -> None:
    """List the graphs of a dataset by size, with the columns that filters use.

    `--limit` prints the first rows only. If no row matches, the nearest filters with rows are
    printed on standard error.
    """
    import dataclasses

    from ..schema.tables import ALL, GRAPHS, config_named
    from ..storage.filters import nearest_choices
    from ..storage.selection import LIST, choose, is_path, list_rows

    filters = dataclasses.replace(selection.filters(), limit=None)
    names = listed or [ALL]
    are_configs = not any(is_path(name) or name.startswith(LIST) or "/" in name for name in names)
    tables = {config_named(name).table for name in names} if are_configs else set()
    is_one_table = len(tables) == 1
    table = tables.pop() if is_one_table else GRAPHS
    for name, column in filters.columns().items():
        if column not in table.schema.names:
            hint = "`sole_op`, `fusible` or `typical`" if name in PART_FILTERS else "graphs, `all`"
            raise RunError(
                f"`{filters.describe([name])}` filters by `{column}`, which {table.rows} do not "
                f"have. Remove the filter, or list a config of {hint}."
            )
    columns = LISTED if table is GRAPHS else table.listed
    compared = dict.fromkeys((*columns, *filters.columns().values()))
    dataset = selection.dataset
    if is_one_table:
        of_configs = (list_rows(dataset, name, list(compared)) for name in listed or [None])
        entries = [*itertools.chain.from_iterable(of_configs)]
    else:
        entries = [*choose(names, dataset=dataset).stream(list(compared))]
    if len(names) > 1:
        entries = [*{tuple(map(str, row.values())): row for row in entries}.values()]
    rows = [{name: row.get(name) for name in columns} for row in entries if filters.keeps(row)]
    if table.holds_samples:
        rows.sort(key=lambda row: (row["num_ops"], row["id"]))
    shown = rows[: selection.limit]
    if entries and not rows:
        named = table.rows.partition(" ")[0] if table.holds_samples else "rows"
        echo(nearest_choices(filters, entries, named), err=True)
    if as_json:
        for row in shown:
            echo(json.dumps(row, default=str))  # for times
        return
    _print_table(shown, columns)
    hidden = len(rows) - len(shown)
    noun = "graph" if table.holds_samples else "row"
    echo(counted(len(rows), noun) + (f", {hidden} not shown" if hidden else ""))


@app.command("show", epilog="Example: graphnet show torchvision/resnet18")
def print_sample(
    sample_id: Annotated[
        str, typer.Argument(metavar="SAMPLE", help="A sample's id, or a path with one sample.")
    ],
    dataset: Dataset = "graphnet",
    names: Annotated[
        str, typer.Option(help="Names of the arguments: canonical, or source (those of the model).")
    ] = "canonical",
    svg: Annotated[
        Path | None, typer.Option(help="Draw the graph to this file instead of printing all of it.")
    ] = None,
    max_boxes: Annotated[
        int,
        typer.Option(min=4, help="Maximum number of boxes; larger graphs are folded by module."),
    ] = 40,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: columns, inputs and source.")
    ] = False,
) -> None:
    """Print the properties of a graph, its inputs, and its operators as Python source.

    `--svg` also draws the graph: modules, repeated blocks and operators are boxes with shapes.
    """
    if names not in ("canonical", "source"):
        raise typer.BadParameter(
            f"Expected `canonical` or `source`, got `{printable_line(names)}`.",
            param_hint="--names",
        )
    if svg is not None and not svg.absolute().parent.is_dir():
        raise DiskError(
            f"The directory `{svg.parent}` of the picture does not exist. Create it, or choose "
            "another path."
        )
    if svg is not None and svg.suffix.lower() != ".svg":
        raise typer.BadParameter(
            f"The picture is an SVG file. Expected a path that ends in `.svg`, got `{svg}`.",
            param_hint="--svg",
        )
    with new_output(svg, kind="file"):
        _show(sample_id, dataset, names, svg, max_boxes, as_json)


def _show(
    sample_id: str, dataset: str, names: Names, svg: Path | None, max_boxes: int, as_json: bool
) -> None:
    from ..frameworks import print_source
    from ..sample import Sample
    from ..storage.selection import select_one

    row = select_one(sample_id, dataset=dataset)
    shown = (*LISTED, "mode", "structure_hash", "signature_hash", "why_excluded")
    columns = {name: row.get(name) for name in shown}
    columns |= {name: row[name] for name in PART_COLUMNS if row.get(name) is not None}
    sample = Sample.from_row(row)
    if as_json:
        inputs = [
            {"name": name, "dtype": input_.value.dtype, "shape": input_.value.shape}
            for name, input_ in zip(sample.input_names, sample.inputs, strict=True)
        ]
        source = print_source(sample, names=names)
        echo(json.dumps({**columns, "inputs": inputs, "code": source}, default=str))
        return
    for name, value in columns.items():
        echo(f"{name:<16}{value}")
    if svg is not None:
        from ..report.graph_picture import write_graph

        echo(f"\nThe picture is `{write_graph(sample, svg, max_boxes)}`.")
        return
    echo("")
    for line in _describe_inputs(sample):
        echo(line)
    echo("")
    echo(print_source(sample, names=names))


def _print_table(rows: list[dict[str, Any]], columns: Sequence[str]) -> None:
    heads = {name: name.removeprefix("num_").removeprefix("is_") for name in columns}
    cells = [
        {name: printable_line(_cell(name, value)) for name, value in row.items()} for row in rows
    ]
    widths = {
        name: max(map(len, (heads[name], *(cell[name] for cell in cells)))) for name in columns
    }
    shown = set(fitting_columns(widths, width()))
    for line in (heads, *cells):
        parts = (
            line[name].rjust(widths[name]) if name in NUMBERS else line[name].ljust(widths[name])
            for name in columns
            if name in shown
        )
        echo(GAP.join(parts).rstrip())


def fitting_columns(widths: Mapping[str, int], available: int) -> list[str]:
    """Return the most important columns that fit on a line, at least the first.

    Values are not truncated: a column that does not fit is omitted with all less important ones.

    >>> fitting_columns({"id": 20, "num_ops": 4, "num_params": 9, "task": 5}, 40)
    ['id', 'num_ops', 'num_params']
    """
    chosen: list[str] = []
    room = available
    for name in dict.fromkeys((*(name for name in BY_IMPORTANCE if name in widths), *widths)):
        room -= widths[name] + (len(GAP) if chosen else 0)
        if chosen and room < 0:
            break
        chosen.append(name)
    return chosen


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "family" and len(value) == HASH_LENGTH:
        return value[:FAMILY_LENGTH]
    if name == "is_dynamic":
        return "yes" if value else "no"
    return f"{value:,}" if name in NUMBERS else str(value)


def _describe_inputs(sample: Sample) -> Iterator[str]:
    for name, graph_input in zip(sample.input_names, sample.inputs, strict=True):
        dims = (
            "" if graph_input.value.shape is None else ", ".join(map(str, graph_input.value.shape))
        )
        kind = (
            graph_input.source_name
            if graph_input.role == "symbol"
            else f"{graph_input.value.dtype}[{dims}]"
        )
        note = (
            "" if graph_input.statistics is None else _describe_statistics(graph_input.statistics)
        )
        yield f"{name:<16}{kind:<32}{note}".rstrip()


def _describe_statistics(statistics: Any) -> str:
    parts = [
        f"{name} {value:g}"
        for name in ("mean", "std", "min", "max")
        if (value := getattr(statistics, name)) is not None
    ]
    return ", ".join(parts) + ("" if statistics.is_measured else " (by role)")

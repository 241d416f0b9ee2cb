"""`graphnet select`: representative subsets of a dataset."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .disk import new_output
from .groups import with_groups
from .score import filter_arms, of_samples
from .selection import SelectionOptions
from .terminal import echo

app = typer.Typer()

COUNT = 100


@app.command(
    "select",
    epilog="Example: graphnet select cv nlp --count 30 --cover operators,families --out ids.txt",
)
@with_groups
def select_samples(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Tasks, `all`, other configs, ids, or paths. Default: all."),
    ] = None,
    *,
    count: Annotated[int, typer.Option(min=1, help="Number of samples to choose.")] = COUNT,
    cover: Annotated[
        str,
        typer.Option(
            help="Kinds to cover, separated by commas: operators, shapes, families, tasks, dtypes, "
            "sources."
        ),
    ] = "operators,shapes,families",
    within: Annotated[
        list[str] | None,
        typer.Option(help="Also choose from this config, such as fusible (repeatable)."),
    ] = None,
    predict: Annotated[
        Path | None,
        typer.Option(
            help="Run records; choose the samples whose S(t) is nearest to that of all samples."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the ids to this file, one per line. Default: print.")
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the ids and their coverage or error as one JSON object."
        ),
    ] = False,
    selection: SelectionOptions,
) -> None:
    """Choose samples that cover most of a dataset or predict its scores.

    The ids are written to `--out` or standard output, one per line, and their coverage or
    prediction error to standard error. Other commands accept the file as `@FILE`: graphnet run
    @ids.txt.
    """
    with new_output(out, kind="file"):
        if predict is not None:
            chosen: Any = _predicting(predict, count, selection, [*(names or ()), *(within or ())])
        else:
            chosen = _covering(count, cover, selection, [*(names or ()), *(within or ())])
        if out is not None:
            from ..atomic import write_text

            out.parent.mkdir(parents=True, exist_ok=True)
            write_text(out, "".join(f"{sample_id}\n" for sample_id in chosen.ids))
        if as_json:
            echo(json.dumps(dataclasses.asdict(chosen), allow_nan=False, default=str))
            return
        echo(chosen, err=out is None)  # a pipe gets the ids alone
        if out is None:
            echo("\n".join(chosen.ids))


def _covering(count: int, kinds: str, selection: SelectionOptions, names: list[str]) -> Any:
    from ..storage.selection import choose, no_match
    from ..subsets import cover
    from ..subsets.coverage import READ_COLUMNS

    samples, filters = names or ["all"], selection.filters()
    chosen = choose(samples, filters, dataset=selection.dataset)
    if not chosen.ids:
        raise no_match(samples, filters, dataset=selection.dataset)
    rows = chosen.stream(READ_COLUMNS, filters.limit)
    return cover(rows, count, [kind.strip() for kind in kinds.split(",") if kind.strip()])


def _predicting(runs: Path, count: int, selection: SelectionOptions, names: list[str]) -> Any:
    from ..errors import DatasetNotFoundError
    from ..scores import as_table
    from ..storage.selection import choose
    from ..subsets import predict

    arms = filter_arms({"": as_table(str(runs))}, selection)
    if names:
        ids = choose(names, dataset=selection.dataset).ids
        arms = {name: of_samples(arm, ids) for name, arm in arms.items()}
        if not any(arm.num_rows for arm in arms.values()):
            raise DatasetNotFoundError(
                f"`{runs}` has no records of {', '.join(names)}. Choose samples of the records, or "
                "omit the names."
            )
    return predict(arms[""], count)

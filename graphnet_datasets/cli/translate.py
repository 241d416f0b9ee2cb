"""`graphnet translate`: translates samples of torch to paddle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..atomic import new_directory
from ..errors import DatasetExistsError
from ..terminal import printable_line
from .counting import KEPT, PARTLY, show_count, stoppable
from .disk import new_output
from .groups import with_groups
from .selection import SelectionOptions
from .terminal import echo

if TYPE_CHECKING:
    from ..storage.mapping import Result

app = typer.Typer()


@app.command(
    "translate",
    epilog="Example: graphnet translate torch/resnet-18 --to paddle --out mine.parquet --check",
)
@with_groups
def translate(
    names: Annotated[
        list[str], typer.Argument(help="Samples' ids, configs, or paths that start with `./`.")
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(help="A file that ends in .parquet, or a directory: one folder per sample."),
    ],
    to: Annotated[str, typer.Option(help="The framework to translate to: paddle.")] = "paddle",
    is_checked: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Run both graphs and keep only samples whose outputs agree at --tolerance.",
        ),
    ] = False,
    tolerance: Annotated[
        float, typer.Option(help="The t at which --check compares outputs.")
    ] = -5.0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Samples at a time. Default: one per processor.")
    ] = None,
    selection: SelectionOptions,
) -> None:
    """Translate torch samples to paddle, operator by operator.

    A sample that cannot be translated is reported with the operator that has no rule. Results are
    printed as they come, and the same command continues after an interruption. Exits with 0
    if every sample was written, with 3 if some were not, and with 1 if none was.
    """
    from ..benchmark.judging.translating import translate_rows
    from ..isolation import num_processors
    from ..storage.mapping import row_name
    from ..storage.selection import require
    from ..storage.staging import Staging

    if to != "paddle":
        raise typer.BadParameter(
            f"Expected `paddle`, got `{printable_line(to)}`.", param_hint="--to"
        )
    if out.exists() and (out.suffix == ".parquet" or any(out.iterdir())):
        raise DatasetExistsError(f"`{out}` exists already. Choose another path for --out.")
    chosen = require(names, selection.filters(), dataset=selection.dataset, framework="torch")
    staging = Staging(out, "translation")
    done: dict[str, Result] = {}
    with (
        stoppable(KEPT),
        new_output(out),
        staging.hold(),
        show_count("Translating", "samples") as count,
    ):
        for translation in translate_rows(
            chosen,
            staging,
            is_checked=is_checked,
            jobs=min(jobs or num_processors(), len(chosen)),
            on_progress=count,
        ):
            problem = translation.problem(tolerance if is_checked else None)
            if problem:
                echo(problem, err=True)
                continue
            if is_checked:
                echo(f"{translation.sample_id} agrees at t = {translation.min_t:.2f}")
            done[translation.result.name] = translation.result
        if done:
            ordered = (row_name(*name) for name in chosen.names)
            _write([done[name] for name in ordered if name in done], out)
    echo(f"{len(done)} of {len(chosen)} samples translated to {to}, in {out}")
    if len(done) < len(chosen):
        raise typer.Exit(PARTLY if done else 1)


def _write(results: Sequence[Result], out: Path) -> None:
    from ..directory import SampleTree
    from ..sample import Sample
    from ..storage.parts import PartReader
    from ..storage.table import write_table

    reader = PartReader()
    tables = (table for result in results for table in reader.rows(result))
    samples = (Sample.from_row(table.to_pylist()[0]) for table in tables)
    if out.suffix == ".parquet":
        out.parent.mkdir(parents=True, exist_ok=True)
        write_table(samples, out)
        return
    with new_directory(out) as place:
        tree = SampleTree(place)
        for sample in samples:
            tree.write(sample)

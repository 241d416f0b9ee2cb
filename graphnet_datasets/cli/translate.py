"""`graphnet translate`: samples of torch as samples of paddle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..atomic import new_directory
from ..errors import DatasetExistsError, TranslationError
from ..terminal import printable_line
from .counting import PARTLY
from .disk import new_output
from .groups import with_groups
from .selection import SelectionOptions
from .terminal import echo

if TYPE_CHECKING:
    from ..sample import Sample

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
        typer.Option("--check", help="Run both and keep only samples that agree at --tolerance."),
    ] = False,
    tolerance: Annotated[
        float, typer.Option(help="The t at which --check compares outputs.")
    ] = -5.0,
    selection: SelectionOptions,
) -> None:
    """Translate torch samples to paddle, operator by operator.

    A sample that cannot be translated is reported with the operator that has no rule. Exits with 0
    if every sample was written, with 3 if some were not, and with 1 if none was.
    """
    from ..benchmark.judging.equivalence import Comparer
    from ..sample import Sample
    from ..storage.selection import require_rows
    from ..transforms import translate as translate_sample

    if to != "paddle":
        raise typer.BadParameter(
            f"Expected `paddle`, got `{printable_line(to)}`.", param_hint="--to"
        )
    if out.exists() and (out.suffix == ".parquet" or any(out.iterdir())):
        raise DatasetExistsError(f"`{out}` exists already. Choose another path for --out.")
    rows = require_rows(names, selection.filters(), dataset=selection.dataset, framework="torch")
    done: list[Sample] = []
    with new_output(out), Comparer() as comparer:
        for row in rows:
            sample = Sample.from_row(row)
            try:
                translated = translate_sample(sample)
            except TranslationError as error:
                echo(str(error), err=True)
                continue
            if is_checked:
                comparison = comparer.compare(sample, translated)
                if comparison.min_t is None or comparison.min_t > tolerance:
                    reason = comparison.reason or f"it agrees only at t = {comparison.min_t:.2f}"
                    echo(f"{sample.id}: {reason}", err=True)
                    continue
                echo(f"{sample.id} agrees at t = {comparison.min_t:.2f}")
            done.append(translated)
        if done:
            _write(done, out)
    echo(f"{len(done)} of {len(rows)} samples translated to {to}, in {out}")
    if len(done) < len(rows):
        raise typer.Exit(PARTLY if done else 1)


def _write(samples: list[Sample], out: Path) -> None:
    from ..directory import SampleTree
    from ..storage.table import write_table

    if out.suffix == ".parquet":
        out.parent.mkdir(parents=True, exist_ok=True)
        write_table(samples, out)
        return
    with new_directory(out) as place:
        tree = SampleTree(place)
        for sample in samples:
            tree.write(sample)

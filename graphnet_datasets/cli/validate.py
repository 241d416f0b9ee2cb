"""`graphnet validate`: check samples and report their problems."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DatasetExistsError
from ..terminal import counted, printable_line
from .disk import new_output
from .groups import with_groups
from .selection import SelectionOptions
from .terminal import echo, print_table

if TYPE_CHECKING:
    from ..validation import Validation

app = typer.Typer()


@app.command("validate", epilog="Example: graphnet validate torchvision/resnet18")
@with_groups
def validate(
    ctx: typer.Context,
    names: Annotated[
        list[str], typer.Argument(help="Samples' ids, configs, or paths that start with `./`.")
    ],
    *,
    only: Annotated[
        list[str] | None, typer.Option("--check", help="Run only this check (repeatable).")
    ] = None,
    memory_limit: Annotated[
        float, typer.Option(help="Memory limit of a sample in GB; larger samples are skipped.")
    ] = 8.0,
    timeout: Annotated[float, typer.Option(help="Time limit of a check in seconds.")] = 300.0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the graphs with their outcomes to a Parquet file, or to a dataset "
            "directory with failed graphs in the config `excluded`."
        ),
    ] = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option(
            "--trust-remote-code", help="Execute the source of custom operators; review it first."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per sample.")] = False,
    selection: SelectionOptions,
) -> None:
    """Check that samples run, can be cut, stored, analysed and captured again.

    The exit status is 1 if any check failed.
    """
    if out is not None and out.exists():
        raise DatasetExistsError(f"`{out}` exists. Choose another, or delete it.")
    from ..validation import CHECKS, Validator

    checks = tuple(only or CHECKS)
    for name in checks:
        if name not in CHECKS:
            raise typer.BadParameter(
                f"Expected one of {', '.join(CHECKS)}, got `{printable_line(name)}`.",
                param_hint="--check",
            )
    validations: list[Validation] = []
    with Validator(
        memory_limit_bytes=round(memory_limit * 1e9),
        timeout_s=timeout,
        trust_remote_code=trust_remote_code,
        servers=ctx.obj,
    ) as validator:
        filters = selection.filters()
        if is_likely_torch(names, filters.framework):
            validator.start("torch", checks)  # imported while this process reads the table
        from ..sample import Sample
        from ..storage.selection import require_rows

        rows = require_rows(names, filters, dataset=selection.dataset)
        with new_output(out):
            for row in _counted_off(rows):
                validation = validator.validate(Sample.from_row(row), checks)
                validations.append(validation)
                row |= validation.to_columns()
                if as_json:
                    echo(validation.to_json())
            if out is not None:
                _write(rows, out)
    num_invalid = sum(not validation.is_valid for validation in validations)
    if not as_json:
        print_table(
            ("id", "check", "outcome", "reason"),
            [
                (validation.sample_id, result.check, result.outcome, result.reason)
                for validation in validations
                for result in validation.results
            ],
        )
        written = f"; written to `{out}`" if out is not None else ""
        echo(f"{counted(len(validations), 'sample')}, {num_invalid} of them not valid{written}")
    if num_invalid:
        raise typer.Exit(1)


def start_early(ctx: Any, words: Sequence[str]) -> None:
    """Start the processes of torch's checks for a command line that is not understood yet.

    They wait in `ctx.obj`. A command line that may ask for other ones starts none, nor does one
    that a shell asks to complete.
    """
    named = [word for word in words if not word.startswith("-")]
    chosen = ("--check", "--framework", "--help")
    if ctx.resilient_parsing or not named or any(word.startswith(chosen) for word in words):
        return
    if not is_likely_torch(named, ()):
        return
    from ..validation.servers import CheckServers

    servers = CheckServers()
    ctx.obj = servers
    ctx.call_on_close(servers.close)
    servers.start("torch")


def _counted_off(rows: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Return rows under a bar of `datasets`, which is not imported where none would be shown."""
    if len(rows) == 1 or not sys.stderr.isatty():
        return rows
    from datasets.utils import tqdm

    return tqdm(rows, desc="Validating", unit="sample")


def is_likely_torch(sources: Sequence[str], frameworks: Sequence[str]) -> bool:
    """Guess whether samples of torch are asked for; a wrong guess costs time alone.

    >>> is_likely_torch(["torchvision/resnet18"], []), is_likely_torch(["cv"], ["paddle"])
    (True, False)
    >>> is_likely_torch(["paddle/lenet"], [])
    False
    """
    if frameworks:
        return "torch" in frameworks
    return not all(source.startswith("paddle") for source in sources)


def _write(rows: list[dict[str, Any]], out: Path) -> None:
    """Write rows as one table, or as a directory with a table per config and split."""
    from ..analysis.splits import split_of_row
    from ..atomic import new_directory
    from ..schema import EXCLUDED, config_of
    from ..storage.layout import write_readme
    from ..storage.table import write_table

    if out.suffix == ".parquet":
        write_table(rows, out)
        return
    places: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["num_ops"], row["id"])):
        config = config_of(row)
        split = "train" if config == EXCLUDED else split_of_row(row)
        places.setdefault((config, split), []).append(row)
    with new_directory(out) as written:
        for (config, split), of_place in places.items():
            write_table(of_place, written / config / f"{split}-0000.parquet")
        write_readme(written)

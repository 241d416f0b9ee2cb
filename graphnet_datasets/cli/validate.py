"""`graphnet validate`: check samples and report their problems."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DatasetExistsError
from ..isolation import num_processors
from ..terminal import counted, printable_line
from .counting import KEPT, show_count, stoppable
from .disk import new_output
from .groups import with_groups
from .selection import SelectionOptions
from .terminal import echo, print_table

if TYPE_CHECKING:
    from ..storage.mapping import Result
    from ..storage.staging import Staging
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
        float, typer.Option(help="Memory limit of a sample in GiB; larger samples are skipped.")
    ] = 8.0,
    timeout: Annotated[float, typer.Option(help="Time limit of a check in seconds.")] = 300.0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Samples at a time. Default: one per processor.")
    ] = None,
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
    """Check that samples run and can be cut, stored, analysed and captured again.

    With --out, the same command continues after an interruption. The exit status is 1 if any check
    failed.
    """
    if out is not None and out.exists():
        raise DatasetExistsError(f"`{out}` exists. Choose another path, or delete it.")
    from ..validation import CHECKS, Validator

    checks = tuple(only or CHECKS)
    for name in checks:
        if name not in CHECKS:
            raise typer.BadParameter(
                f"Expected one of {', '.join(CHECKS)}, got `{printable_line(name)}`.",
                param_hint="--check",
            )
    terms = {
        "memory_limit_bytes": round(memory_limit * 2**30),
        "timeout_s": timeout,
        "trust_remote_code": trust_remote_code,
    }
    filters = selection.filters()
    first = Validator(**terms, servers=ctx.obj)
    results: dict[str, tuple[Validation, Result]] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(stoppable(KEPT if out is not None else "Nothing is kept without --out"))
        stack.enter_context(first)
        if is_likely_torch(names, filters.framework):
            first.start("torch", checks)  # imported while this process reads the table
        from ..atomic import temporary_directory
        from ..storage.mapping import row_name
        from ..storage.selection import require
        from ..storage.staging import Staging
        from ..validation.mapping import validate_rows

        chosen = require(names, filters, dataset=selection.dataset)
        stack.enter_context(new_output(out))
        place = out
        if place is None:
            place = stack.enter_context(temporary_directory("graphnet-validate-")) / "results"
        staging = Staging(place, "validation")
        stack.enter_context(staging.hold())
        num_jobs = min(jobs or num_processors(), len(chosen))
        spare = [first]

        def make_validator() -> Validator:
            return spare.pop() if spare else Validator(**terms, jobs=1)

        count = stack.enter_context(show_count("Validating", "samples"))
        row_names = [row_name(*name) for name in chosen.names]
        waiting = collections.deque(row_names)
        try:
            for validation, result in validate_rows(
                chosen,
                checks,
                make_validator,
                staging,
                terms=terms,
                keeps_rows=out is not None,
                jobs=num_jobs,
            ):
                results[result.name] = validation, result
                count(len(results), len(chosen))
                # Each line is printed when all previous samples are finished.
                while as_json and waiting and waiting[0] in results:
                    echo(results[waiting.popleft()][0].to_json())
        except KeyboardInterrupt:
            if not as_json:
                _print([validation for validation, _ in results.values()])
            raise
        ordered = [results[name] for name in row_names]
        if out is not None:
            _write(ordered, out, staging)
    validations = [validation for validation, _ in ordered]
    num_invalid = sum(not validation.is_valid for validation in validations)
    if not as_json:
        _print(validations)
        written = f"; written to `{out}`" if out is not None else ""
        echo(f"{counted(len(validations), 'sample')}, {num_invalid} of them not valid{written}")
    if num_invalid:
        raise typer.Exit(1)


def _print(validations: Iterable[Validation]) -> None:
    print_table(
        ("id", "check", "outcome", "reason"),
        [
            (validation.sample_id, result.check, result.outcome, result.reason)
            for validation in validations
            for result in validation.results
        ],
    )


def start_early(ctx: Any, words: Sequence[str]) -> None:
    """Start the processes of torch's checks before the command line is parsed, in `ctx.obj`.

    Does nothing if the command may need other processes, or during shell completion.
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


def is_likely_torch(sources: Sequence[str], frameworks: Sequence[str]) -> bool:
    """Guess whether samples of torch are selected; a wrong guess only costs time.

    >>> is_likely_torch(["torchvision/resnet18"], []), is_likely_torch(["cv"], ["paddle"])
    (True, False)
    >>> is_likely_torch(["paddle/lenet"], [])
    False
    """
    if frameworks:
        return "torch" in frameworks
    return not all(source.startswith("paddle") for source in sources)


def _write(results: Sequence[tuple[Validation, Result]], out: Path, staging: Staging) -> None:
    """Write rows as one table, or as a directory with a table per config and split."""
    from ..storage.layout import write_readme
    from ..storage.parts import PartReader
    from ..storage.shards import row_groups
    from ..storage.table import write_arrow

    reader = PartReader()

    def write(chosen: Iterable[Result], path: Path) -> None:
        write_arrow(row_groups(table for result in chosen for table in reader.rows(result)), path)

    if out.suffix == ".parquet":
        write([result for _, result in results], out)
        return
    places: dict[tuple[str, str], list[tuple[int, str, Result]]] = {}
    for validation, result in results:
        config, split = result.notes["place"]
        entry = (result.notes["num_ops"], validation.sample_id, result)
        places.setdefault((config, split), []).append(entry)
    staged = staging.new_place()
    for (config, split), of_place in places.items():
        of_place.sort(key=lambda item: item[:2])
        write([result for *_, result in of_place], staged / config / f"{split}-0000.parquet")
    write_readme(staged)
    staging.publish(staged)

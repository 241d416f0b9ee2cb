"""The root of the command line: options that every command shares, and how errors are printed.

A command group is a file here with a `typer.Typer` of its own, added below.
Commands import what they need when they are called, so that `graphnet --help` stays quick.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
import typer.core

from ..errors import GraphNetError
from ..verbosity import disable_progress_bars, log_to_stderr
from ..version import __version__
from . import (
    compare,
    compilers,
    datasets,
    device,
    exchange,
    push,
    run,
    score,
    translate,
    validate,
)
from .terminal import echo


class _Root(typer.core.TyperGroup):
    """Prints errors of ours as one sentence and exits 1; `--debug` anywhere shows the traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        if "--debug" in args[1:end]:
            args = ["--debug", *(word for word in args[:end] if word != "--debug"), *args[end:]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except GraphNetError as error:
            if ctx.params.get("debug"):
                raise
            echo(f"Error: {_message(error)}", err=True)
            raise typer.Exit(1) from error


def _message(error: GraphNetError) -> str:
    # `str` of a KeyError puts quotes around its message.
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)


app = typer.Typer(
    cls=_Root,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Load, inspect, run and score real computational graphs.",
    epilog="Example: graphnet run cv --max-ops 200 --compiler inductor --out runs",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(__version__)
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,  # noqa: ARG001
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress bars.")] = False,
    version: Annotated[  # noqa: ARG001
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    log_to_stderr()
    if quiet:
        disable_progress_bars()


_GROUPS = (
    datasets,
    exchange,
    translate,
    run,
    score,
    compare,
    compilers,
    device,
    validate,
    push,
)
for _group in _GROUPS:
    app.add_typer(_group.app)


def main() -> None:
    """Run the command line."""
    app()

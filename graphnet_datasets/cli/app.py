"""The root of the command line: global options and error output.

A command group is a file here with its own `typer.Typer`, added below. Other packages add theirs
through an entry point (`COMMAND_GROUP`). Commands import their dependencies when they are called,
so that `graphnet --help` stays fast.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
import traceback
import warnings
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from ..collector import collecting_seldom
from ..credentials import hide_credentials
from ..errors import GraphNetError
from ..plugins import load_all
from ..terminal import printable
from ..verbosity import disable_progress_bars, log_to_stderr
from ..version import __version__
from . import (
    bisect,
    calibrate,
    check,
    compare,
    compilers,
    convert,
    datasets,
    device,
    doctor,
    import_export,
    kernels,
    push,
    run,
    score,
    select,
    submit,
    transform,
    translate,
    validate,
)
from .completion import add_completion
from .disk import describe_disk_error
from .empty_directories import removed_if_empty
from .option_types import explain_value, show_plain_types
from .terminal import echo

# Newer releases of typer contain a copy of click, whose exceptions are not those of click.
_UsageError: Any = typer.BadParameter.__base__


_PANELS = {
    "Graphs": ("list", "show", "select", "problem"),
    "Compilers": ("doctor", "run", "check", "bisect", "compilers", "device"),
    "Records of runs": ("score", "compare", "plot", "report", "import-log"),
    "New graphs": ("import", "transform", "translate", "validate", "calibrate"),
    "Other formats": ("convert", "export", "kernels"),
    "Publishing": ("push", "submit"),
    "Tuning": ("tasks", "tune", "records", "tc"),
}
"""The panels of the help, with their commands in this order."""
_PANEL_OF = {name: panel for panel, names in _PANELS.items() for name in names}

COMMAND_GROUP = "graphnet_datasets.commands"
"""The entry point group for commands of other packages; a value is a sequence of `typer.Typer`."""


class _Root(typer.core.TyperGroup):
    """Prints errors of this library and of the disk without a traceback, and exits with 1.

    `--debug` and `--quiet` may appear anywhere; `--debug` shows the traceback.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        for option in ("--quiet", "--debug"):
            if option in args[1:end]:
                args = [option, *(word for word in args[:end] if word != option), *args[end:]]
                end = args.index("--") if "--" in args else len(args)
        command = next((index for index, word in enumerate(args) if word[:1] != "-"), len(args))
        if args[command : command + 1] == ["validate"]:
            # Parsing the command line takes a sixth of a second; the worker processes start
            # meanwhile.
            validate.start_early(ctx, args[command + 1 :])
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        show_plain_types(self, ctx)
        super().format_help(ctx, formatter)

    def list_commands(self, ctx: Any) -> list[str]:
        self._add_plugins()
        names = super().list_commands(ctx)
        return [*(name for name in _PANEL_OF if name in names), *({*names} - {*_PANEL_OF})]

    def _add_plugins(self) -> None:
        """Add the commands of other packages; those of the library cannot be replaced."""
        added = typer.Typer()
        for apps in load_all(COMMAND_GROUP):
            for group in apps:
                added.add_typer(group)
        if added.registered_groups:
            for name, command in typer.main.get_group(added).commands.items():
                self.commands.setdefault(name, command)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self._add_plugins()
        command = super().get_command(ctx, cmd_name)
        if command is None:
            return None
        _prepare_help(command, _PANEL_OF.get(cmd_name, "Other commands"), ctx)
        return add_completion(command) if ctx.resilient_parsing else command

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except _UsageError as error:
            error.message = printable(_explain_usage(error))
            raise
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:  # a library may wrap an OSError of the disk in its own exception
            if ctx.params.get("debug") or _sentence(error) is None:
                raise
            _fail(error)
        else:
            return result


def _leaves(command: Any) -> list[Any]:
    """Return the commands in a group of commands, or the command itself."""
    if not hasattr(command, "commands"):
        return [command]
    return [leaf for part in command.commands.values() for leaf in _leaves(part)]


def _prepare_help(command: Any, panel: str, ctx: Any) -> None:
    command.rich_help_panel = panel
    for leaf in _leaves(command):
        show_plain_types(leaf, ctx)


def _explain_usage(error: Any) -> str:
    """Return the message for a command line that cannot be parsed, with the fix."""
    command = error.ctx.command if error.ctx else None
    example = (command.epilog if command else "") or ""
    kind = type(error).__name__
    if kind == "MissingParameter":
        return example  # the name of the parameter precedes the message
    if kind == "NoSuchOption" and not error.possibilities:
        group = error.ctx.find_root().command
        others = [
            name
            for name in group.list_commands(error.ctx)
            for leaf in _leaves(group.get_command(error.ctx, name))
            if any(error.option_name in parameter.opts for parameter in leaf.params)
        ]
        verbs = ", ".join(f"`{name}`" for name in dict.fromkeys(others))
        return f"{error.message}. It is an option of {verbs}." if others else error.message
    if kind == "UsageError":
        end = "" if error.message.endswith(("?", ".")) else "."
        return f"{error.message}{end} {example}"
    return explain_value(error) or error.message


def _sentence(error: Exception) -> str | None:
    if isinstance(error, GraphNetError):
        # `str` of a KeyError puts quotes around its message.
        return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    sentence = describe_disk_error(error)
    # Errors name embedded files by their path in the package.
    return None if sentence is None else str(GraphNetError(sentence))


def _fail(error: Exception) -> NoReturn:
    if isinstance(error, OSError) and error.errno in (errno.EPIPE, errno.EBADF, errno.ENOSPC):
        is_cut_off = _is_output_cut_off()
        _forget_output()
        if is_cut_off:
            raise typer.Exit(1) from error
    with contextlib.suppress(OSError, ValueError):
        echo(f"Error: {hide_credentials(_sentence(error) or str(error))}", err=True)
    raise typer.Exit(1) from error


def _is_output_cut_off() -> bool:
    """Return whether the reader of the output has ended, as with `graphnet list | head`."""
    try:
        from select import POLLERR, poll

        reader = poll()
        reader.register(sys.stdout.fileno(), 0)
        return any(events & POLLERR for _, events in reader.poll(0))
    except (ImportError, OSError, ValueError):  # not every system has `poll`
        return False


def _forget_output() -> None:
    """Redirect pending output to nowhere, because Python flushes it again on exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=_Root,
    no_args_is_help=True,
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
    # Paddle warns about C++ extensions when it is imported; this library does not compile any.
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    if quiet:
        disable_progress_bars()


_GROUPS = (
    datasets,
    import_export,
    convert,
    kernels,
    translate,
    transform,
    run,
    score,
    check,
    bisect,
    select,
    calibrate,
    compare,
    compilers,
    device,
    doctor,
    validate,
    push,
    submit,
)
for _group in _GROUPS:
    app.add_typer(_group.app)


def main() -> None:
    """Run the command line."""
    try:
        # A short command spends most of its time importing.
        with removed_if_empty(), collecting_seldom():
            app()
    except Exception:
        # The interpreter would print the message unescaped.
        echo(hide_credentials(traceback.format_exc().rstrip()), err=True)
        sys.exit(1)
    finally:
        gc.freeze()  # saves two garbage collections over all imported modules at exit

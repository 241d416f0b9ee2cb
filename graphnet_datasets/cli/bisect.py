"""`graphnet bisect`: reduces a failing graph to the few operators responsible."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..terminal import counted
from .counting import PARTLY, stoppable
from .disk import new_output
from .run_options import timeouts
from .terminal import echo

if TYPE_CHECKING:
    from ..bisection import Progress

app = typer.Typer()


@app.command(
    "bisect",
    epilog="Example: graphnet bisect transformers/vit-tiny --compiler inductor --tolerance -5",
)
def bisect_sample(
    sample_id: Annotated[
        str, typer.Argument(metavar="ID", help="A sample's id, or a path with one sample.")
    ],
    compiler: Annotated[
        str,
        typer.Option(
            help="A name of `graphnet compilers`, module:attribute, or file.py:attribute."
        ),
    ],
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the compiler, name=value (repeatable).")
    ] = None,
    t: Annotated[
        float,
        typer.Option(
            "--tolerance", "--t", help="Outputs that differ at this t count as a failure."
        ),
    ] = -3.0,
    slower_than: Annotated[
        float | None, typer.Option(min=0.0, help="Bisect a speedup below this value instead.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory of the trials and results.")] = Path(
        "bisection"
    ),
    budget: Annotated[float | None, typer.Option(min=0.0, help="Time limit in seconds.")] = None,
    max_trials: Annotated[int | None, typer.Option(min=1, help="Maximum number of trials.")] = None,
    sizes: Annotated[bool, typer.Option(help="Also reduce the sizes of the inputs.")] = True,
    dataset: Annotated[str, typer.Option(help="Dataset of the id.")] = "graphnet",
    device: Annotated[str, typer.Option(help="cpu, cuda (the first GPU) or cuda:N.")] = "cpu",
    weights: Annotated[
        str, typer.Option(help="parameters (a compiler may fold them) or inputs.")
    ] = "parameters",
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads. Default: all.")] = None,
    timeout: Annotated[
        list[str] | None, typer.Option(help="phase=seconds, such as run=10 (repeatable).")
    ] = None,
    memory_limit: Annotated[
        float | None,
        typer.Option(min=0.1, help="Memory limit of a trial in GiB. Default: 0.9 of free memory."),
    ] = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Allow code from data to run; review it first."),
    ] = False,
) -> None:
    """Reduce a failing graph to the smallest subgraph that fails in the same way.

    A failure is an error, a crash, a hang, NaN, outputs that are wrong at t, or a speedup below
    `--slower-than`. Writes the subgraph, its picture, and a test that reproduces the failure. The
    same command continues after an interruption. Exits with 0 if the search finished, with 3 if the
    budget ran out first, and with 1 if the graph does not fail.
    """
    from ..compilers import parse_options
    from ..frameworks import framework_names
    from ..frameworks.builds import check_device

    check_device(device, framework_names())
    options = parse_options(option or [])
    check_compiler(compiler)
    from ..bisection import Budget, bisect
    from ..bisection.bisecting import default_settings
    from ..sample import Sample
    from ..storage.selection import select_one

    sample = Sample.from_row(select_one(sample_id, dataset=dataset))
    settings = default_settings(
        weights=weights,
        seed=seed,
        num_threads=threads,
        memory_limit_bytes=None if memory_limit is None else int(memory_limit * 2**30),
        trust_remote_code=trust_remote_code,
        timeouts_s=timeouts(timeout or []),
    )
    limits: dict[str, Any] = {"seconds": budget, "trials": max_trials}
    with (
        stoppable(f"The trials so far are in `{out}`"),
        new_output(out),
        show_bisection() as on_progress,
    ):
        bisection = bisect(
            sample,
            compiler,
            out,
            options=options,
            t=t,
            slower_than=slower_than,
            device=device,
            settings=settings,
            budget=Budget(**{name: limit for name, limit in limits.items() if limit is not None}),
            shrinks_sizes=sizes,
            on_progress=on_progress,
        )
    written = bisection.write(out)
    echo(bisection)
    echo("".join(f"\n{path}" for path in written.values()).strip())
    if not bisection.is_minimal:
        raise typer.Exit(PARTLY)


def check_compiler(compiler: str) -> str:
    """Return the framework of a compiler; torch for one that supports several or is unknown.

    Raises:
        CompilerError: There is no compiler with this name, or no file with it.
    """
    from ..compilers import find_entry, list_entries, resolve_name

    frameworks = {entry.framework for entry in list_entries() if entry.name == compiler}
    if not frameworks:
        find_entry(resolve_name(compiler))
    return "torch" if len(frameworks) != 1 else frameworks.pop()


@contextlib.contextmanager
def show_bisection() -> Iterator[Callable[[Progress], None] | None]:
    """Show progress on standard error: one updated line, or a line per improvement in logs."""
    from ..verbosity import are_progress_bars_disabled

    if are_progress_bars_disabled():
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    last = [-1, ""]

    def describe(progress: Progress) -> str:
        repeated = f" ({progress.num_known} known)" if progress.num_known else ""
        return (
            f"{progress.doing}: {counted(progress.num_ops, 'operator')} left, "
            f"{counted(progress.num_trials, 'trial')}{repeated}, {progress.seconds:.0f} s"
        )

    if console.is_terminal:
        with console.status("starting") as status:
            yield lambda progress: status.update(describe(progress))
        return

    def tell(progress: Progress) -> None:
        if [progress.num_ops, progress.doing] != last:
            last[:] = [progress.num_ops, progress.doing]
            console.print(describe(progress), markup=False, highlight=False, soft_wrap=True)

    yield tell

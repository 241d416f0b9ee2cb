"""`graphnet kernels`: collects the code that compilers generate for graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .counting import KEPT, show_count, show_report, stoppable
from .disk import new_output
from .groups import with_groups
from .selection import SelectionOptions

app = typer.Typer()


@app.command(
    "kernels", epilog="Example: graphnet kernels fusible --compiler inductor --out kernels"
)
@with_groups
def kernels(
    names: Annotated[
        list[str],
        typer.Argument(help="Configs of subgraphs or tasks, ids of samples, or paths."),
    ],
    *,
    out: Annotated[Path, typer.Option(help="The dataset directory to write.")],
    compiler: Annotated[str, typer.Option(help="inductor, tc or tvm.")] = "inductor",
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the compiler, name=value (repeatable).")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, help="Threads of the compiled code.")] = 1,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Parallel processes. Default: one per processor.")
    ] = None,
    executor: Annotated[
        str, typer.Option(help="local, or ray: a cluster whose nodes share --out.")
    ] = "local",
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Time limit for compiling a graph, in seconds.")
    ] = 600.0,
    memory_limit: Annotated[
        float, typer.Option(min=0.1, help="Memory limit of a graph in GiB.")
    ] = 8.0,
    selection: SelectionOptions,
) -> None:
    """Collect the code that a compiler generates for graphs: C, C++, Triton or TensorIR.

    Each graph is compiled and called in its own process; the same command continues after an
    interruption. The code is meant for reading and training. Exits with 0 if kernels were
    generated for every graph, with 3 if some graphs lack kernels, and with 1 if all do.
    """
    from ..compilers import parse_options
    from ..isolation import Limits
    from ..kernels import KERNEL_LIMITS, collect_kernels

    limits = Limits(
        phase_timeouts_s={**KERNEL_LIMITS.phase_timeouts_s, "compile": timeout},
        memory_bytes=int(memory_limit * 2**30),
    )
    with stoppable(KEPT), new_output(out), show_count("Compiling", "graphs") as count:
        done = collect_kernels(
            names,
            out,
            compiler=compiler,
            options=parse_options(option or []),
            device=device,
            threads=threads,
            dataset=selection.dataset,
            filters=selection.filters(),
            jobs=jobs,
            executor=executor,
            limits=limits,
            on_progress=count,
        )
    failures = [f"{refusal.id}: {refusal.message or refusal.reason}" for refusal in done.refused]
    raise typer.Exit(show_report(done, failures, "compiled"))

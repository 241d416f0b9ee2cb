"""`graphnet transform`: makes a dataset from the samples of another."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from ..errors import TransformError
from .counting import KEPT, show_count, show_report, stoppable
from .disk import new_output
from .groups import OptionGroup, with_groups
from .selection import SelectionOptions

if TYPE_CHECKING:
    from ..transforms.registry import Step

app = typer.Typer()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformOptions(OptionGroup):
    """Transforms of each sample."""

    title: ClassVar[str] = "Transforms (several are applied in this order)"

    cast: Annotated[
        str | None,
        typer.Option(help="The graph in bfloat16, float16, float32 or float64.", metavar="DTYPE"),
    ] = None
    autocast: Annotated[
        str | None,
        typer.Option(help="The graph under autocast to bfloat16 or float16.", metavar="DTYPE"),
    ] = None
    symbolise: Annotated[
        bool,
        typer.Option("--symbolise", help="The graph over symbols: batch, sequence, height, width."),
    ] = False
    sizes: Annotated[
        int | None,
        typer.Option(help="The graph at this many sizes, from small to large.", metavar="COUNT"),
    ] = None
    sizes_memory_gb: Annotated[
        float, typer.Option(help="Memory of inputs and live values at the largest size, in GiB.")
    ] = 1.0
    backward: Annotated[
        str | None,
        typer.Option(
            help="The graph with its gradients: joint, forward or backward.", metavar="KIND"
        ),
    ] = None
    of: Annotated[
        str, typer.Option(help="Gradients of auto, parameters or all (data inputs as well).")
    ] = "auto"
    partition: Annotated[
        str, typer.Option(help="Partition into forward and backward: default or min_cut.")
    ] = "default"
    check: Annotated[
        bool,
        typer.Option(
            help="Run cast, differentiated and resized graphs once, and reject failing graphs."
        ),
    ] = True
    emulate: Annotated[
        bool,
        typer.Option(
            "--emulate",
            help="Emulate the dtype by rounded float32 if the CPU lacks a kernel.",
        ),
    ] = False
    parts: Annotated[
        list[str] | None,
        typer.Option(
            help="The distinct parts of the graph: sole_op, fusible or typical (repeatable).",
            metavar="CONFIG",
        ),
    ] = None
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Method that finds fusible parts: rules, inductor or inductor_cuda (repeatable)."
        ),
    ] = None

    def steps(self) -> list[Step]:
        """Return the requested steps.

        Raises:
            TransformError: no step is requested, an option has no step to which it applies, or
                `--method` comes without exactly one `--parts`.
        """
        from ..transforms.registry import Step

        steps = [Step("symbolise", {"check": self.check})] if self.symbolise else []
        if self.sizes is not None:
            memory_bytes = int(self.sizes_memory_gb * 2**30)
            options = {"count": self.sizes, "memory_bytes": memory_bytes, "check": self.check}
            steps.append(Step("sizes", options))
        if self.cast is not None:
            options = {"dtype": self.cast, "check": self.check, "emulate": self.emulate}
            steps.append(Step("cast", options))
        if self.autocast is not None:
            steps.append(Step("autocast", {"dtype": self.autocast, "check": self.check}))
        if self.backward is not None:
            options = {"kind": self.backward, "of": self.of, "partition": self.partition}
            steps.append(Step("backward", {**options, "check": self.check}))
        if self.method and len(self.parts or ()) != 1:
            raise TransformError(
                "`--method` applies to `--parts`. Pass exactly one `--parts` with it."
            )
        steps += [
            Step("parts", {"config": config, "method": method})
            for config in self.parts or ()
            for method in self.method or ("",)
        ]
        for option, is_passed, step in (
            ("--sizes-memory-gb", self.sizes_memory_gb != 1.0, "sizes"),
            ("--emulate", self.emulate, "cast"),
            ("--of", self.of != "auto", "backward"),
            ("--partition", self.partition != "default", "backward"),
        ):
            if is_passed and step not in {selected.name for selected in steps}:
                raise TransformError(
                    f"`{option}` applies to `--{step}`. Pass `--{step}` too, or omit `{option}`."
                )
        if not steps:
            raise TransformError(
                "No transform was selected. Pass one or more of `--symbolise`, `--sizes`, "
                "`--cast`, `--autocast`, `--backward` and `--parts`."
            )
        return steps


@app.command(
    "transform", epilog="Example: graphnet transform cv --cast bfloat16 --out mine --jobs 2"
)
@with_groups
def transform(
    names: Annotated[
        list[str],
        typer.Argument(help="Tasks, `all`, ids of samples, or paths, as for `graphnet run`."),
    ],
    *,
    out: Annotated[Path, typer.Option(help="The dataset directory to write.")],
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Parallel processes. Default: one per processor.")
    ] = None,
    executor: Annotated[
        str, typer.Option(help="local, or ray: a cluster whose nodes share --out.")
    ] = "local",
    max_input_gb: Annotated[
        float, typer.Option(help="Do not run graphs with more GiB of inputs.")
    ] = 2.0,
    max_gflop: Annotated[
        float | None, typer.Option(help="Do not run graphs with more GFLOP.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Time limit of a graph in seconds.")
    ] = 900.0,
    memory_limit: Annotated[
        float, typer.Option(min=0.1, help="Memory limit of a graph in GiB.")
    ] = 12.0,
    wanted: TransformOptions,
    selection: SelectionOptions,
) -> None:
    """Derive new samples from samples, as a dataset.

    Each graph is transformed in its own process; the same command continues after an interruption.
    Equal parts are merged. Exits with 0 if no graph was refused, with 3 if some were (the report in
    --out lists the reasons), and with 1 if nothing was written.
    """
    from ..isolation import Limits
    from ..storage.transforming import TRANSFORM_LIMITS, transform_dataset

    steps, filters = wanted.steps(), selection.filters()
    limits = Limits(
        phase_timeouts_s={**TRANSFORM_LIMITS.phase_timeouts_s, "transform": timeout},
        memory_bytes=int(memory_limit * 2**30),
    )
    with stoppable(KEPT), new_output(out), show_count("Transforming", "graphs") as count:
        done = transform_dataset(
            names,
            steps,
            out,
            dataset=selection.dataset,
            filters=filters,
            jobs=jobs,
            executor=executor,
            max_input_bytes=int(max_input_gb * 2**30),
            max_flops=math.inf if max_gflop is None else max_gflop * 1e9,
            limits=limits,
            on_progress=count,
        )
    failures = [f"{refusal.id}: {refusal.refused[0].message}" for refusal in done.refused]
    raise typer.Exit(show_report(done, failures, "transformed"))

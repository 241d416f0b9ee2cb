"""`graphnet run`: time samples under compilers."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import RunError
from .compare import REGRESSED
from .terminal import echo

app = typer.Typer()

EXIT_INTERRUPTED = 130
"""What a shell reports for a program that Ctrl-C ended: 128 + SIGINT."""


@app.command(
    "run",
    epilog="Example: graphnet run cv nlp --max-ops 200 --compiler inductor --out runs",
)
def run_samples(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tasks, `all`, ids of samples, or paths (a GraphNet directory, a directory of "
            "them, a dataset directory, a Parquet file). Default: all."
        ),
    ] = None,
    compiler: Annotated[
        list[str] | None,
        typer.Option(
            help="A name of `graphnet compilers`, module:attribute, or file.py:attribute "
            "(repeatable). Default: inductor, with `--framework paddle` paddle-to-static; eager "
            "with `--reference` and `--against`."
        ),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the compiler, name=value (repeatable).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the records. Default: runs.")
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option(
            help="Make the run of one record once more, runs/RUN_ID, with its own settings and "
            "inputs; nothing else but `--out` and `--dataset` counts then."
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(help="cpu, cuda (the first GPU), cuda:N, or several: cuda:0,cuda:1.")
    ] = "cpu",
    executor: Annotated[
        str, typer.Option(help="local, or ray: every GPU or node of a Ray cluster.")
    ] = "local",
    reference: Annotated[
        Path | None,
        typer.Option(help="Write the records here, with the outputs, for later runs `--against`."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Compare with a `--reference` of another device or version."),
    ] = None,
    tolerance: Annotated[
        int, typer.Option(min=-10, max=5, help="The t at which outputs agree with `--against`.")
    ] = -3,
    threshold: Annotated[
        float, typer.Option(min=0.0, help="Share by which a sample may be slower than `--against`.")
    ] = 0.05,
    dataset: Annotated[str, typer.Option(help="`graphnet`, a path or org/name.")] = "graphnet",
    task: Annotated[list[str] | None, typer.Option(help="Only this task (repeatable).")] = None,
    framework: Annotated[list[str] | None, typer.Option(help="Only torch or paddle.")] = None,
    source: Annotated[list[str] | None, typer.Option(help="Only this source (repeatable).")] = None,
    family: Annotated[
        list[str] | None, typer.Option(help="Only this family, by the beginning of its hash.")
    ] = None,
    min_ops: Annotated[int | None, typer.Option(help="At least this many operators.")] = None,
    max_ops: Annotated[int | None, typer.Option(help="At most this many operators.")] = None,
    max_params: Annotated[int | None, typer.Option(help="At most this many parameters.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most this many samples, shared by the names.")
    ] = None,
    weights: Annotated[
        str, typer.Option(help="parameters (a compiler may fold them) or inputs.")
    ] = "parameters",
    input_mode: Annotated[str, typer.Option(help="replay or probe (no constants).")] = "replay",
    cache: Annotated[
        str, typer.Option(help="warm, or cold: caches are overwritten before each timed call.")
    ] = "warm",
    launch: Annotated[
        str, typer.Option(help="stream, or cuda_graph: both arms are captured and replayed.")
    ] = "stream",
    profile: Annotated[
        bool, typer.Option(help="Count kernels, or operators on a CPU, in a few calls more.")
    ] = True,
    oracle: Annotated[
        bool, typer.Option(help="Run eager in float64 as well, where it fits.")
    ] = True,
    trust_remote_code: Annotated[
        bool,
        typer.Option(
            "--trust-remote-code", help="Let the source of custom operators run; read it first."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads of each arm. Default: all.")] = None,
    budget: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds to measure a sample. Default: 10.")
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(help="Half width of the speedup's interval to stop at. Default: 0.01."),
    ] = None,
    timeout: Annotated[
        list[str] | None, typer.Option(help="phase=seconds, such as compile=300 (repeatable).")
    ] = None,
    memory_limit: Annotated[
        float | None,
        typer.Option(min=0.1, help="GiB for one sample. Default: 0.9 of what is free."),
    ] = None,
) -> None:
    """Time each sample under eager and under each compiler, in a process of its own.

    Records are written one by one; the same command continues where it was stopped. With
    `--reference` and `--against` the compiler is eager unless one is given; `--against` exits 3
    where outputs differ, a sample is broken or it is slower.
    """
    from ..benchmark import (
        VERDICTS_NAME,
        Filters,
        Settings,
        TimingSettings,
        compare_with_reference,
        run,
        run_again,
    )
    from ..compilers import parse_options, usual_compilers

    if again is not None:
        repeated = run_again(again, out=out, dataset=None if dataset == "graphnet" else dataset)
        echo(repeated)
        return
    timing: dict[str, Any] = {
        name: value
        for name, value in (("budget_s", budget), ("precision", precision))
        if value is not None
    }
    if reference is not None and out is not None:
        raise RunError(
            "`--reference` is the directory of the records itself. Leave `--out` out, or give both "
            "commands one after another."
        )
    is_reference = reference is not None or against is not None
    eager, usual = usual_compilers(framework[0] if framework and len(framework) == 1 else "torch")
    compilers = compiler or [eager if is_reference else usual]
    out = reference or out or Path("runs")
    options = parse_options(option or [])
    if options and len(compilers) > 1:
        raise RunError(
            "`--option` sets an option of one compiler, but several are given. Run them one after "
            "another; they may share `--out`."
        )
    settings = Settings(
        weights=weights,  # type: ignore[arg-type] (checked by Settings)
        input_mode=input_mode,  # type: ignore[arg-type]
        cache_mode=cache,  # type: ignore[arg-type]
        launch_mode=launch,  # type: ignore[arg-type]
        has_profile=profile,
        has_oracle=oracle,
        trust_remote_code=trust_remote_code,
        seed=seed,
        num_threads=threads,
        memory_limit_bytes=None if memory_limit is None else int(memory_limit * 2**30),
        phase_timeouts_s=_timeouts(timeout or []),
        timing=TimingSettings(**timing),
    )
    filters = Filters(
        task=tuple(task or ()),
        framework=tuple(framework or ()),
        source=tuple(source or ()),
        family=tuple(family or ()),
        min_ops=min_ops,
        max_ops=max_ops,
        max_params=max_params,
        limit=limit,
    )
    try:
        runs = run(
            names or ["all"],
            compilers,
            device,
            out,
            options=options,
            filters=filters,
            source=dataset,
            settings=settings,
            executor=executor,
            keep_outputs=is_reference,
            against=against,
        )
    except KeyboardInterrupt as error:
        echo(
            f"Stopped. What is finished is in `{out}`; the same command continues from there.",
            err=True,
        )
        raise typer.Exit(EXIT_INTERRUPTED) from error
    echo(summary(runs, out))
    if against is not None:
        verdicts = compare_with_reference(
            out, against, run_ids=runs["run_id"], tolerance=tolerance, threshold=threshold
        )
        verdicts.write(out / VERDICTS_NAME)
        echo(f"\nAgainst `{against}`; the table is `{out / VERDICTS_NAME}`:\n\n{verdicts}")
        if verdicts.regressions:
            raise typer.Exit(REGRESSED)


def summary(runs: Any, out: Path) -> str:
    """Return how many runs ended how, per compiler, and what to do with them next."""
    counts: dict[str, collections.Counter[str]] = {}
    for name, status in zip(runs["compiler"], runs["status"], strict=True):
        counts.setdefault(name, collections.Counter())[status] += 1
    lines = [
        f"{name}: {count.total()} runs, "
        + ", ".join(f"{number} {status}" for status, number in count.most_common())
        for name, count in counts.items()
    ]
    return "\n".join([*lines, f"Records are in `{out}`. Next: graphnet score {out}"])


def _timeouts(settings: list[str]) -> dict[str, float]:
    timeouts = {}
    for setting in settings:
        phase, _, text = setting.partition("=")
        try:
            timeouts[phase] = float(text)
        except ValueError as error:
            raise RunError(
                f"`{setting}` is not a timeout. Write it as `phase=seconds`, for example "
                "`compile=300`."
            ) from error
    return timeouts

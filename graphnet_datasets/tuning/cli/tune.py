"""`graphnet tasks` and `graphnet tune`: cut operators out of graphs and search their schedules."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...atomic import write_text
from ...cli.counting import KEPT, show_count, show_report, stoppable
from ...cli.disk import new_output
from ...cli.groups import with_groups
from ...cli.selection import SelectionOptions
from ...cli.terminal import echo

if TYPE_CHECKING:
    from .. import Progress

app = typer.Typer()


def _complete_tuner(incomplete: str) -> list[str]:
    from ..registry import list_tuners

    return [name for name in list_tuners() if name.startswith(incomplete)]


def _complete_allocator(incomplete: str) -> list[str]:
    from ..registry import list_allocators

    return [name for name in list_allocators() if name.startswith(incomplete)]


Threads = Annotated[
    int, typer.Option(min=1, help="Threads of the generated code, part of the target.")
]


@app.command("tasks", epilog="Example: graphnet tasks cv --max-ops 200 --out tasks")
@with_groups
def tasks(
    names: Annotated[
        list[str], typer.Argument(help="Configs of graphs, ids of samples, or paths.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="The dataset directory to write.")],
    mcpu: Annotated[str, typer.Option(help="The LLVM name of the processor.")] = "native",
    threads: Threads = 1,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Parallel processes. Default: one per processor.")
    ] = None,
    selection: SelectionOptions,
) -> None:
    """Cut fused operators out of graphs as tuning tasks without duplicates.

    Each graph is exported and lowered by TVM in its own process; the same command continues after
    an interruption. Exits with 0 if every graph has tasks, with 3 if some graphs lack tasks, and
    with 1 if all do.
    """
    from ..collecting import collect_tasks

    with stoppable(KEPT), new_output(out), show_count("Cutting", "graphs") as count:
        done = collect_tasks(
            names,
            out,
            mcpu=mcpu,
            threads=threads,
            dataset=selection.dataset,
            filters=selection.filters(),
            jobs=jobs,
            on_progress=count,
        )
    failures = [f"{refusal.id}: {refusal.message or refusal.reason}" for refusal in done.refused]
    raise typer.Exit(show_report(done, failures, "cut"))


@app.command("tune", epilog="Example: graphnet tune cv --max-ops 50 --trials 64 --out tuned")
@with_groups
def tune(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Configs of graphs, ids of samples, paths, or a dataset of tasks."),
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option(help="The dataset directory of records to write.")
    ] = None,
    tuner: Annotated[
        list[str] | None,
        typer.Option(
            help="random, ansor, gptune, bolt … Repeatable with --replay.",
            autocompletion=_complete_tuner,
        ),
    ] = None,
    allocator: Annotated[
        str,
        typer.Option(
            help="round-robin, gradient or dynatune: how the trial budget is shared.",
            autocompletion=_complete_allocator,
        ),
    ] = "gradient",
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the tuner, name=value (repeatable).")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Average number of trials per task.")] = 64,
    budget: Annotated[
        float | None,
        typer.Option(min=1.0, help="Total time limit in seconds; the records so far are written."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the tuner and of the allocator.")] = 0,
    op_family: Annotated[
        list[str] | None, typer.Option(help="Only matmul, conv2d, softmax … (repeatable).")
    ] = None,
    min_task_flops: Annotated[
        int, typer.Option(min=0, help="Only tasks of at least this many FLOPs.")
    ] = 0,
    max_task_flops: Annotated[
        int | None, typer.Option(help="Only tasks of at most this many FLOPs.")
    ] = None,
    max_tasks: Annotated[
        int | None,
        typer.Option(min=1, help="At most this many tasks, divided among their families."),
    ] = None,
    repeat: Annotated[int, typer.Option(min=2, help="Repetitions per candidate.")] = 6,
    min_repeat_ms: Annotated[int, typer.Option(min=0, help="Minimum length of a repetition.")] = 10,
    threads: Threads = 1,
    jobs: Annotated[
        int, typer.Option(min=1, help="Parallel candidates; more than 1 disturb each other.")
    ] = 1,
    replay: Annotated[
        str | None,
        typer.Option(
            help="Compare tuners on records, without running candidates: a directory, graphnet, or "
            "org/name."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each tuner in a replay.")] = 5,
    report: Annotated[
        Path | None, typer.Option(help="Write the table of a replay here, as Markdown.")
    ] = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option(
            "--trust-remote-code", help="Build tasks that the verifier rejects; review them first."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table of a replay as JSON lines.")
    ] = False,
    selection: SelectionOptions,
) -> None:
    """Search for fast schedules of operators, or compare tuners on records.

    Prints the plan, then a line for each trial: the best so far, failures, time left. Every
    candidate is built, checked and timed in a separate process within limits. The same command
    continues after an interruption. `--replay` needs neither TVM nor a quiet machine.
    """
    if replay is not None:
        _compare(replay, tuner, allocator, trials, seeds, option, report, as_json=as_json)
        return
    if not names or out is None:
        raise typer.BadParameter("Pass samples and --out, or a dataset of records with --replay.")
    if tuner is not None and len(tuner) > 1:
        raise typer.BadParameter(
            "Pass a single tuner. Only --replay compares several.", param_hint="--tuner"
        )
    from ...compilers import parse_options
    from ..measure import TimingPlan
    from ..running import TaskChoice, tune_samples

    with stoppable(KEPT), new_output(out), show_count("Cutting", "graphs") as count:
        done = tune_samples(
            names,
            out,
            tuner=tuner[0] if tuner else "ansor",
            tuner_options=parse_options(option or []),
            allocator=allocator,
            trials=trials,
            budget_s=math.inf if budget is None else budget,
            seed=seed,
            choice=TaskChoice(
                family=tuple(op_family or ()),
                min_flops=min_task_flops,
                max_flops=max_task_flops,
                max_tasks=max_tasks,
            ),
            plan=TimingPlan(repeat=repeat, min_repeat_ms=min_repeat_ms),
            num_workers=jobs,
            threads=threads,
            dataset=selection.dataset,
            filters=selection.filters(),
            trust_remote_code=trust_remote_code,
            on_collect=count,
            on_plan=lambda plan: echo(plan.text(), err=True),
            on_trial=lambda progress: echo(describe(progress), err=True),
        )
    echo(done.summary())
    if not done.result.best:
        raise typer.Exit(1)


def describe(progress: Progress) -> str:
    """Return the line of a trial."""
    row = progress.row
    result = f"{row.latency_ms:.4f} ms" if row.is_ok else f"{row.status}: {row.error[:80]}"
    best = "-" if math.isinf(progress.best_ms) else f"{progress.best_ms:.4f} ms"
    return (
        f"{progress.trials}/{progress.max_trials} {progress.task.task_name}: {result}, "
        f"best {best}, "
        f"{progress.failures} failed, {progress.seconds:.0f} s, "
        f"{progress.seconds_left / 60:.0f} min left"
    )


def _compare(
    replay: str,
    tuners: list[str] | None,
    allocator: str,
    trials: int,
    seeds: int,
    option: list[str] | None,
    report: Path | None,
    *,
    as_json: bool,
) -> None:
    from ...compilers import parse_options
    from .. import Pool
    from ..leaderboard import replay_tuners
    from ..records import read_records

    with new_output(report):
        records = read_records(replay)
        if records.skipped:
            echo(records.skipped_text, err=True)
        pool: Any = Pool(records.tasks.values(), records.measurements)
        with show_count("Replaying", "runs") as count:
            board = replay_tuners(
                pool,
                tuners or ["random", "ansor", "gptune", "alt"],
                seeds=range(seeds),
                trials=trials,
                allocator=allocator,
                tuner_options=parse_options(option or []),
                on_run=count,
            )
        echo(board.json_lines().rstrip() if as_json else board.markdown())
        if report is not None:
            write_text(report, board.markdown())
            write_text(report.with_suffix(".jsonl"), board.json_lines())

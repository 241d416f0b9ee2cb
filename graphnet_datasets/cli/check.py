"""`graphnet check` and `graphnet problem`: verdicts on programs for samples and problems."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from ..errors import ConversionError, DatasetExistsError
from ..suggestions import did_you_mean
from ..terminal import counted
from .counting import PARTLY
from .disk import new_output
from .groups import with_groups
from .run_options import MeasurementOptions
from .terminal import echo
from .verdicts import describe_load

if TYPE_CHECKING:
    from ..benchmark.checking import CheckResult
    from ..benchmark.problems import Problem, Verdict

app = typer.Typer()
problems = typer.Typer(
    no_args_is_help=True,
    help="Show the problems that programs can solve.",
    epilog="Example: graphnet problem show mm-relu-1f2e3d4c --prompt",
)
app.add_typer(problems, name="problem")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckOptions(MeasurementOptions):
    """The options of `graphnet run`; other sizes are tried by default."""

    title: ClassVar[str] = "Measurement"

    vary: Annotated[
        int,
        typer.Option(
            help="Also call the candidate with this many sizes of a symbolic graph and values of "
            "its scalar inputs (at least 3). Default: 4 for such graphs."
        ),
    ] = 0


@app.command(
    "check",
    epilog="Example: graphnet check torch/resnet-18 my_kernel.py --timeout compile=60",
)
@with_groups
def check_candidate(
    sample: Annotated[
        str,
        typer.Argument(
            metavar="SAMPLE",
            help="A sample's id, a path with one sample, or the id of a problem.",
        ),
    ],
    candidate: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A Python file (file.py:NAME if it defines several candidates), or a file of C++ "
            "(.cpp), CUDA (.cu) or Tensor Comprehensions (.tc). For a problem also "
            "DIRECTORY:SOLUTION_ID, a stored solution, or the name of a compiler as a baseline.",
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the record, or for the row of `solutions`. Default: nothing is "
            "stored."
        ),
    ] = None,
    author: Annotated[str, typer.Option(help="Author of a stored solution.")] = "",
    license_name: Annotated[
        str, typer.Option("--license", help="License of a stored solution.")
    ] = "",
    graphs: Annotated[
        bool,
        typer.Option(
            "--graphs",
            help="Judge a pass on the whole graphs that have the operators of a problem.",
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With `--graphs`: this many graphs, those with the fewest operators first. "
            "Default: all.",
        ),
    ] = None,
    dataset: Annotated[str, typer.Option(help="Dataset of the id.")] = "graphnet",
    device: Annotated[str, typer.Option(help="cpu, cuda (the first GPU) or cuda:N.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    measurement: CheckOptions,
) -> None:
    """Judge and time a program that replaces the graph of a sample, or solves a problem.

    A function takes the inputs of the sample in order, weights included, or by their names as
    `graphnet show ID` prints them. The constructor of a module takes weights by name, and
    `forward` the remaining inputs. A solution of a problem must be right on all its workloads. The
    file runs only in a confined process. Exits with 0 if the candidate is right, and with 3
    otherwise.
    """
    from ..frameworks import framework_names
    from ..frameworks.builds import check_device

    check_device(device, framework_names())
    from ..benchmark.checking import check
    from ..benchmark.problems import is_problem_id, load_problem, on_graphs
    from ..scores import Outcome

    if is_problem_id(sample):
        problem = load_problem(sample, source=dataset)
        if graphs:
            problem = on_graphs(problem, source=dataset, limit=limit)
        verdict = _judge(problem, candidate, device, measurement)
        if out is not None:
            from ..benchmark.problems import COMPILER, write_solution

            name = "" if verdict.language == COMPILER else Path(candidate).name
            row = verdict.to_row(name=name, author=author, license=license_name)
            write_solution(row, out)
        shown = verdict.to_dict() if as_json else verdict.lines()
        _print(shown, verdict.results, is_bad=not verdict.is_accepted)
        if not verdict.is_accepted:
            raise typer.Exit(PARTLY)
        return
    result = check(
        sample,
        candidate,
        device=device,
        out=out,
        source=dataset,
        settings=measurement.settings(),
    )
    is_bad = result.outcome in (Outcome.WRONG, Outcome.FAILED)
    _print(result.to_dict() if as_json else result.lines(), [result], is_bad=is_bad)
    if not result.is_right:
        raise typer.Exit(PARTLY)


@problems.command("show", epilog="Example: graphnet problem show mm-relu-1f2e3d4c --prompt")
def show_problem(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="The id of a problem.")],
    *,
    prompt: Annotated[
        bool,
        typer.Option("--prompt", help="Print one text for people and models that write programs."),
    ] = False,
    bound: Annotated[
        bool, typer.Option(help="Measure the CPU's peak rates and print the bounds.")
    ] = True,
    dataset: Annotated[str, typer.Option(help="Dataset of the problem.")] = "graphnet",
) -> None:
    """Print a problem as JSON, or with `--prompt` its reference, workloads, bound and rules."""
    from ..benchmark.problems import load_problem

    shown = load_problem(problem, source=dataset)
    if not prompt:
        echo(json.dumps(shown.row))
        return
    peaks = None
    if bound:
        from ..benchmark.judging.roofline import peak_rates

        peaks = peak_rates("cpu")
    for line in shown.prompt(peaks).splitlines():
        echo(line)


@problems.command("export", epilog="Example: graphnet problem export mm-relu-1f2e3d4c --out bench/")
def write_problems(
    names: Annotated[list[str], typer.Argument(metavar="PROBLEM...", help="Ids of problems.")],
    *,
    out: Annotated[Path, typer.Option(help="A new directory.")],
    to: Annotated[
        str, typer.Option(help="flashinfer-bench or sol-execbench.")
    ] = "flashinfer-bench",
    dataset: Annotated[str, typer.Option(help="Dataset of the problems.")] = "graphnet",
) -> None:
    """Write problems as definitions and workloads of flashinfer-bench or SOL-ExecBench.

    Workloads that cannot be expressed are printed with the reason.
    """
    from ..atomic import new_directory
    from ..benchmark.problems import load_problem
    from ..conversion.definitions import FORMATS, export_problem, write_exported

    if to not in FORMATS:
        raise ConversionError(
            f"There is no format `{to}`.{did_you_mean(to, FORMATS)} Choose one of "
            f"{', '.join(FORMATS)}."
        )
    exported = [export_problem(load_problem(name, source=dataset)) for name in names]
    if out.exists():
        raise DatasetExistsError(f"`{out}` exists. Choose another directory, or delete it.")
    with new_output(out), new_directory(out) as place:
        for item in exported:
            write_exported(item, place, to)
    for item in exported:
        for name, reason in item.left_out.items():
            echo(f"{name} is left out: {reason}")
    number = sum(len(item.workloads) for item in exported)
    echo(f"{counted(number, 'workload')} in {out}")


def _judge(problem: Problem, candidate: str, device: str, measurement: CheckOptions) -> Verdict:
    from ..benchmark.problems import COMPILER, judge, read_stored_solution
    from ..benchmark.solution_files import SUFFIXES
    from ..compilers import list_entries

    settings = measurement.settings()
    path = Path(candidate).expanduser()
    compilers = {(entry.framework, entry.name) for entry in list_entries()}
    if (problem.row["framework"], candidate) in compilers:
        return judge(problem, candidate, language=COMPILER, device=device, settings=settings)
    if ":" not in candidate or path.suffix in SUFFIXES:
        return judge(problem, path, device=device, settings=settings)
    source, language = read_stored_solution(candidate, trust_remote_code=settings.trust_remote_code)
    return judge(problem, source, language=language, device=device, settings=settings)


def _print(
    shown: Mapping[str, Any] | Sequence[str], results: Sequence[CheckResult], *, is_bad: bool
) -> None:
    """Print a mapping as JSON; or lines, the first in red if it is bad, and a note on the load."""
    if isinstance(shown, Mapping):
        echo(json.dumps(shown))
        return
    first, *others = shown
    echo(first, colour="red" if is_bad else None)
    for line in others:
        echo(line)
    if busy := describe_load([result.record.get("other_cpu_share") for result in results]):
        echo(busy, err=True)

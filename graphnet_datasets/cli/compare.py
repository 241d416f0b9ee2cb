"""`graphnet compare`: two run sets, sample by sample, with an exit code for CI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..errors import ScoreError
from .score import DuplicatesRule, FailureValue, Penalty, VariantName, check_duplicates, read_arms
from .terminal import echo

if TYPE_CHECKING:
    import pyarrow as pa

REGRESSED = 3
"""Exit code if B has more regressions than allowed; 1 and 2 are codes of errors."""

app = typer.Typer()


@app.command(
    "compare",
    help="Compare run set B with run set A; exits with 3 if B is slower or fails on a sample.",
    epilog="Example: graphnet compare runs-main runs-branch --threshold 0.1 --allow 2",
)
def compare(
    runs_a: Annotated[Path, typer.Argument(metavar="A", help="Runs to compare with.")],
    runs_b: Annotated[Path, typer.Argument(metavar="B", help="Runs under test.")],
    compiler_a: Annotated[str | None, typer.Option(help="Only this compiler's runs of A.")] = None,
    compiler_b: Annotated[str | None, typer.Option(help="Only this compiler's runs of B.")] = None,
    basis: Annotated[
        str, typer.Option(help="Compare the speedup over eager, or the latency itself.")
    ] = "speedup",
    tolerance: Annotated[
        int, typer.Option(help="The t at which outputs must pass, -10 to 0.")
    ] = -3,
    threshold: Annotated[
        float, typer.Option(help="Relative slowdown of a sample to tolerate.")
    ] = 0.05,
    allow: Annotated[
        int, typer.Option(help="Number of regressions to tolerate before exiting with 3.")
    ] = 0,
    p: Penalty = None,
    b: FailureValue = 0.1,
    variant: VariantName = "report",
    duplicates: DuplicatesRule = "refuse",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    from ..scores import compare

    comparison = compare(
        _read_arm(runs_a, compiler_a, "--compiler-a"),
        _read_arm(runs_b, compiler_b, "--compiler-b"),
        p,
        b,
        variant,
        basis=cast(Any, basis),
        tolerance=tolerance,
        threshold=threshold,
        duplicates=check_duplicates(duplicates),
    )
    if as_json:
        echo(json.dumps(comparison.to_dict(), allow_nan=False))
    else:
        echo(str(comparison))
    if len(comparison.regressions) > allow:
        raise typer.Exit(REGRESSED)


def _read_arm(path: Path, compiler: str | None, option: str) -> pa.Table:
    arms = read_arms(path, compiler)
    if len(arms) > 1:
        raise ScoreError(
            f"`{path}` contains runs of {', '.join(f'`{name}`' for name in arms)}. Choose one with "
            f"`{option}`."
        )
    (table,) = arms.values()
    return table

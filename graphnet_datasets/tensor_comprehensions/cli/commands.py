"""`graphnet tc`: checks, compiles and tunes tensor comprehensions."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...atomic import replaced
from ...cli.disk import new_output
from ...cli.terminal import echo
from ...decoding import read_bytes, read_npy
from ...errors import DatasetNotFoundError, TensorComprehensionError
from ...terminal import printable_line
from .arguments import (
    constants_of,
    pairs_of,
    parameters_of,
    random_arrays,
    sets_of_shapes,
    shapes_of,
)

if TYPE_CHECKING:
    from .. import Definition

app = typer.Typer()
group = typer.Typer(
    no_args_is_help=True,
    help="Tensor comprehensions: check, compile, tune.",
    epilog="Example: graphnet tc check examples/tc/tmm.tc",
)
app.add_typer(group, name="tc")

File = Annotated[Path, typer.Argument(help="A file with definitions.")]
Entry = Annotated[str | None, typer.Option(help="The definition, if the file has several.")]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", help="Sizes of an input, `A=128,32`; of a scalar, `a=` (repeatable)."),
]
Constants = Annotated[
    list[str] | None,
    typer.Option("--constant", help="The value of an integral scalar input, `d=2` (repeatable)."),
]
Preset = Annotated[str, typer.Option(help="Options to start from: default, naive, mlp, conv …")]
Seed = Annotated[int, typer.Option(help="Seed of the random inputs.")]


@group.command("check", epilog="Example: graphnet tc check examples/tc/tmm.tc")
def check_file(file: File) -> None:
    """Parse definitions, report the first error with its location, and list the functions."""
    definition = _define(file)
    for name in definition.names:
        checked = definition.checked(name)
        inputs = ", ".join(f"{parameter.type} {parameter.name}" for parameter in checked.parameters)
        outputs = ", ".join(f"{parameter.type} {parameter.name}" for parameter in checked.outputs)
        echo(f"{name}({inputs}) -> ({outputs}): {len(checked.statements)} statements")


@group.command("infer", epilog="Example: graphnet tc infer mm.tc --shape A=128,32 --shape B=32,64")
def infer_ranges(
    file: File,
    entry: Entry = None,
    shape: Shapes = None,
    constant: Constants = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a precondition cannot be proven.")
    ] = False,
) -> None:
    """Print the ranges of all indices, the shapes of all outputs, and the unchecked conditions."""
    definition, name = _chosen(file, entry)
    values = constants_of(constant)
    shapes = shapes_of(definition, name, shape, values)
    with _quiet():
        inferred = definition.infer(name, *shapes, constants=values, strict=strict)
    echo(str(inferred))


@group.command("interpret", epilog="Example: graphnet tc interpret mm.tc --input A=a.npy --out .")
def interpret_file(
    file: File,
    entry: Entry = None,
    shape: Shapes = None,
    input_files: Annotated[
        list[str] | None,
        typer.Option("--input", help="An input's .npy file, `A=a.npy` (repeatable)."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for an .npy file per output.")] = None,
    constant: Constants = None,
    seed: Seed = 0,
) -> None:
    """Compute a definition with NumPy, on files or on random inputs of the given sizes."""

    definition, name = _chosen(file, entry)
    values = constants_of(constant)
    files = {key: read_npy(path) for key, path in pairs_of(input_files).items()}
    own = [f"{key}={','.join(map(str, array.shape))}" for key, array in files.items()]
    shapes = shapes_of(definition, name, [*(shape or []), *own], values)
    arrays = random_arrays(definition, name, shapes, values, seed)
    arrays.update(files)
    with _quiet(), new_output(out):
        computed = definition.interpret(name, *arrays.values(), constants=values, check_bounds=True)
        results = computed if isinstance(computed, tuple) else (computed,)
        outputs = {
            variable.name: array
            for variable, array in zip(definition.checked(name).outputs, results, strict=True)
        }
        for key, array in outputs.items():
            echo(f"{key}: {array.dtype}{list(array.shape)}, sum {array.sum():.6g}")
        if out is not None:
            _save(outputs, out)


@group.command("compile", epilog="Example: graphnet tc compile mm.tc --shape A=8,9 --shape B=9,7")
def compile_file(
    file: File,
    entry: Entry = None,
    shape: Shapes = None,
    constant: Constants = None,
    preset: Preset = "default",
    emit: Annotated[
        str,
        typer.Option(help="Output: c, cuda, triton, schedule, loops, svg or nothing."),
    ] = "c",
) -> None:
    """Compile a definition for the given sizes and print the generated code or its schedule."""
    if emit not in (*_EMITTED, "nothing"):
        accepted = f"Expected {', '.join(_EMITTED)} or nothing, got `{printable_line(emit)}`."
        raise typer.BadParameter(accepted, param_hint="--emit")
    definition, name = _chosen(file, entry)
    kernel, _ = _compiled(definition, name, shape, constant, preset, 0)
    if emit in _EMITTED:
        echo(_EMITTED[emit](kernel))
    steps = kernel.kernel.seconds.items()
    times = ", ".join(f"{step} {value * 1e3:.0f} ms" for step, value in steps)
    echo(f"{kernel!r}: {times}", err=emit in ("c", "cuda", "triton", "svg"))


@group.command(
    "package",
    epilog="Example: graphnet tc package mm.tc --out mm --shape A=64,64 --shape B=64,64",
)
def package_file(
    file: File,
    out: Annotated[Path, typer.Option(help="The new directory.")],
    entry: Entry = None,
    shape: Shapes = None,
    constant: Constants = None,
    preset: Preset = "default",
    target: Annotated[
        str, typer.Option(help="Processors: native, x86-64-v2, x86-64-v3 or x86-64-v4.")
    ] = "native",
    threads: Annotated[int, typer.Option(min=1, help="Threads; more than 1 need libgomp.")] = 1,
) -> None:
    """Compile kernels for machines without a C compiler: for the given sizes, and for any sizes."""
    from .. import preset as options_of
    from .. import save_package

    definition, name = _chosen(file, entry)
    constants = constants_of(constant)
    shapes = shapes_of(definition, name, shape, constants)
    arrays = random_arrays(definition, name, shapes, constants, 0)
    values = [
        constants.get(parameter.name, arrays.get(parameter.name))
        for parameter in parameters_of(definition, name)
    ]
    with _quiet(), new_output(out):
        save_package(
            out,
            definition,
            [(name, *values)],
            target=target,
            threads=threads,
            options=options_of(preset),
        )
    echo(f"Wrote the kernels of {name} for {target} to {out}.")


@group.command("bench", epilog="Example: graphnet tc bench mm.tc --shape A=64,64 --shape B=64,64")
def bench_file(
    file: File,
    entry: Entry = None,
    shape: Shapes = None,
    constant: Constants = None,
    preset: Preset = "default",
    cache: Annotated[
        Path | None, typer.Option(help="Use tuned options of this file, if any.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs.")] = 20,
    seed: Seed = 0,
) -> None:
    """Time a kernel on random inputs, after comparing it with the interpreter in float64."""
    import numpy as np

    definition, name = _chosen(file, entry)
    kernel, arrays = _compiled(definition, name, shape, constant, preset, seed, cache)
    with _quiet():
        truth = definition.interpret(
            name, *arrays, constants=constants_of(constant), float64=True, check_bounds=True
        )
    outputs = kernel(*arrays)
    sides = [side if isinstance(side, tuple) else (side,) for side in (outputs, truth)]
    error = 0.0
    for mine, exact in zip(*sides, strict=True):
        scale = float(np.abs(exact).max(initial=0)) or 1.0
        gap = np.abs(np.asarray(mine, "float64") - exact).max(initial=0)
        error = max(error, float(gap) / scale)
    profile = kernel.profile(*arrays, num_runs=runs)
    echo(
        f"{name}: median {profile.median_ms:.4f} ms, least {profile.least_ms:.4f} ms of {runs} "
        f"runs, {kernel.kernel.threads} threads, error {error:.1e} of the largest value"
    )


@group.command(
    "tune",
    epilog="Example: graphnet tc tune mm.tc --shape A=64,64 --shape B=64,64 --cache tc.parquet",
)
def tune_file(
    file: File,
    cache: Annotated[Path, typer.Option(help="The file of tuned options to add to.")],
    entry: Entry = None,
    shape: Shapes = None,
    constant: Constants = None,
    population: Annotated[int, typer.Option(min=1, help="Candidates per generation.")] = 12,
    generations: Annotated[int, typer.Option(min=1, help="Generations.")] = 4,
    budget: Annotated[float | None, typer.Option(help="Time limit in seconds.")] = None,
    log: Annotated[
        Path | None, typer.Option(help="Journal of candidates; an interrupted search continues.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Search for the fastest options and put them into a cache."""
    from ..tuner import Progress, TunerConfig

    definition, name = _chosen(file, entry)
    values = constants_of(constant)
    shapes = shapes_of(definition, name, shape, values)
    arrays = random_arrays(definition, name, shapes, values, seed)
    elites = min(3, population // 2)
    config = TunerConfig(
        population=population, generations=generations, elites=elites, budget_s=budget, seed=seed
    )

    def show(progress: Progress) -> None:
        echo(
            f"generation {progress.generation}, {progress.num_tried} tried, "
            f"{progress.num_failed} failed, best {progress.best_ms:.4f} ms, "
            f"{progress.elapsed_s:.0f} s",
            err=True,
        )

    parameters = parameters_of(definition, name)
    passed = [values.get(parameter.name, arrays.get(parameter.name)) for parameter in parameters]
    with _quiet(), new_output(cache, log):
        options = definition.autotune(
            name, *passed, config=config, cache=cache, log=log, progress=show
        )
    echo(f"{options}\nin {cache}")


@group.command(
    "tasks", epilog="Example: graphnet tc tasks mm.tc --shape A=64,64 --shape B=64,64 --out tasks"
)
def write_tasks(
    file: File,
    out: Annotated[Path, typer.Option(help="The dataset directory to write.")],
    entry: Entry = None,
    shape: Shapes = None,
    constant: Constants = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the kernels.")] = 1,
) -> None:
    """Write a definition at concrete sizes as tasks for `graphnet tune`.

    A repeated input, such as a second `--shape A=…`, begins another task; inputs that are not
    repeated keep their sizes.
    """
    try:
        from ...tuning.records import write_tuning
    except ImportError as error:
        raise TensorComprehensionError(
            "`graphnet tc tasks` needs the package `graphnet_datasets.tuning`, which is not "
            "installed. Reinstall `graphnet-datasets`, or use `graphnet tc tune`."
        ) from error
    from ..tasks.making import make_task

    definition, name = _chosen(file, entry)
    values = constants_of(constant)
    with _quiet(), new_output(out):
        tasks = [
            make_task(definition, name, shapes, constants=values, threads=threads)
            for shapes in sets_of_shapes(definition, name, shape, values)
        ]
        write_tuning(out, {task.task_id: task for task in tasks}.values())
    for task in tasks:
        shapes = ", ".join(map(str, task.arg_shapes))
        echo(f"{task.task_name} {shapes}: {task.family}, {task.flops} flops, in {out}")


@group.command("cache", epilog="Example: graphnet tc cache tc.parquet --from my-org/my-graphs")
def list_cache(
    path: Annotated[Path, typer.Argument(help="A file of tuned options.")],
    source: Annotated[
        list[str] | None,
        typer.Option("--from", help="Add the config `tc_cache` of this dataset (repeatable)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List the tuned options of a cache, fastest first for each definition and size.

    `graphnet push PATH REPOSITORY` shares them.
    """
    from ..cache import TuningCache

    with new_output(path):
        for record in source or ():
            count = TuningCache(path).merge_dataset(record)
            echo(f"{count} rows of {record}", err=True)
    if not path.exists():
        raise DatasetNotFoundError(f"There is no file `{path}`.")
    rows = TuningCache(path).table().to_pylist()
    rows.sort(key=lambda row: (row["key"], row["median_ms"]))
    if as_json:
        for row in rows:
            echo(json.dumps(row, default=str))
        return
    for row in rows:
        inputs = " ".join(row["inputs"])
        echo(f"{row['median_ms']:10.4f} ms  {row['processor']}, {row['threads']} threads  {inputs}")
        echo(f"              {row['options']}")
    echo(f"{len(rows)} rows")


@group.command("from-graph", epilog="Example: graphnet tc from-graph torch/resnet-20-cifar")
def from_graph(
    sample_id: Annotated[
        str, typer.Argument(metavar="SAMPLE", help="A sample's id, or a path with one sample.")
    ],
    dataset: Annotated[str, typer.Option(help="Dataset of the ids.")] = "graphnet",
    reasons: Annotated[
        bool,
        typer.Option(
            "--reasons", help="Also print the reason for each operator that eager computes."
        ),
    ] = False,
) -> None:
    """Print the definitions that the compiler `tc` makes of a graph."""
    from ...frameworks import framework_named, make_inputs, materialize
    from ...sample import Sample
    from ...storage.selection import select_one

    if not framework_named("torch").is_installed:
        raise framework_named("torch").missing("Making tensor comprehensions of graphs")
    from ..graphs.capturing import capture_graph
    from ..graphs.compiling import plan_graph

    sample = Sample.from_row(select_one(sample_id, dataset=dataset))
    if sample.framework != "torch":
        raise TensorComprehensionError(
            f"`{sample.id}` is a graph of {sample.framework}; the compiler supports only graphs "
            "of torch."
        )
    module = materialize(sample, weights="parameters")
    inputs = make_inputs(sample, weights="parameters")
    plan = plan_graph(capture_graph("tc", module, inputs).module.graph)
    for lowered in plan.groups:
        echo(f"{lowered.source}\n")
    for node, reason in plan.refused.items() if reasons else ():
        echo(f"# {node.name}: {reason}")
    echo(
        f"# {len(plan.groups)} definitions, {1 - plan.fallback_share:.0%} of "
        f"{plan.num_operators} operators"
    )


def _cuda(kernel: Any) -> str:
    from ..cuda import write_cuda

    return write_cuda(kernel.instance, kernel.options).source


def _triton(kernel: Any) -> str:
    from ..triton import write_triton

    return write_triton(kernel.instance, kernel.options).source


def _loops(kernel: Any) -> str:
    from ..polyhedral import as_loops, domains

    return as_loops(domains(kernel.instance), kernel.schedule)


def _svg(kernel: Any) -> str:
    from ..polyhedral.picture import to_svg

    return to_svg(kernel.schedule)


_EMITTED: dict[str, Callable[[Any], str]] = {
    "c": lambda kernel: kernel.source,
    "cuda": _cuda,
    "triton": _triton,
    "schedule": lambda kernel: str(kernel.schedule),
    "loops": _loops,
    "svg": _svg,
}


def _define(file: Path) -> Definition:
    from .. import define

    try:
        return define(read_bytes(file).decode())
    except UnicodeDecodeError as error:
        raise TensorComprehensionError(f"`{file}` is not text: {error}.") from error


def _chosen(file: Path, entry: str | None) -> tuple[Definition, str]:
    definition = _define(file)
    if entry is None:
        if len(definition.names) > 1:
            raise TensorComprehensionError(
                f"`{file}` has several definitions ({', '.join(definition.names)}). Choose one "
                "with --entry."
            )
        entry = next(iter(definition.names))
    definition.checked(entry)
    return definition, entry


def _compiled(
    definition: Definition,
    name: str,
    shape: list[str] | None,
    constant: list[str] | None,
    preset: str,
    seed: int,
    cache: Path | None = None,
) -> tuple[Any, list[Any]]:
    from .. import preset as options_of
    from ..codegen.toolchain import object_directory

    values = constants_of(constant)
    shapes = shapes_of(definition, name, shape, values)
    arrays = list(random_arrays(definition, name, shapes, values, seed).values())
    options = options_of(preset)
    with _quiet(), new_output(object_directory()):
        if cache is not None:
            options = definition.cached_options(name, *arrays, cache=cache) or options
        kernel = definition.compile(
            name, *arrays, options=options, constants=values, check_bounds=True
        )
    return kernel, arrays


def _save(arrays: dict[str, Any], folder: Path) -> None:
    """Write an .npy file of each array, whole or not at all."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        with replaced(folder / f"{name}.npy") as temporary, temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the warnings about preconditions, which `infer` prints itself."""
    from .. import PreconditionWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PreconditionWarning)
        yield

"""The option groups of `graphnet run`, and their conversion to settings."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from ..errors import RunError
from .groups import OptionGroup

if TYPE_CHECKING:
    from ..benchmark import Settings


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompilerOptions(OptionGroup):
    """Options that select and configure compilers."""

    title: ClassVar[str] = "Compilers"

    compiler: Annotated[
        list[str] | None,
        typer.Option(
            help="A name of `graphnet compilers`, module:attribute, or file.py:attribute "
            "(repeatable). Default: inductor, with `--framework paddle` paddle-to-static; "
            "eager with `--reference` or `--against`."
        ),
    ] = None
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the compiler, name=value (repeatable).")
    ] = None

    def names(self, framework: str, *, is_control: bool) -> list[str]:
        """Return the compilers to run: those given, or the default of the framework.

        With `is_control`, the default is the compiler that leaves graphs unchanged.
        """
        from ..compilers import usual_compilers

        control, usual = usual_compilers(framework)
        return self.compiler or [control if is_control else usual]

    def options(self) -> dict[str, Any]:
        """Return the options of the compiler.

        Raises:
            RunError: options are given for several compilers.
        """
        from ..compilers import parse_options

        options = parse_options(self.option or [])
        if options and len(self.compiler or ()) > 1:
            raise RunError(
                "`--option` sets an option of one compiler, but several compilers were given. Run "
                "them one after another; they may share `--out`."
            )
        return options


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasurementOptions(OptionGroup):
    """Options for running and timing samples."""

    title: ClassVar[str] = "Measurement"

    weights: Annotated[
        str, typer.Option(help="parameters (a compiler may fold them) or inputs.")
    ] = "parameters"
    input_mode: Annotated[str, typer.Option(help="replay or probe (no constants).")] = "replay"
    cache: Annotated[
        str, typer.Option(help="warm, or cold: caches are overwritten before each timed call.")
    ] = "warm"
    launch: Annotated[
        str, typer.Option(help="stream, or cuda_graph: both arms are captured and replayed.")
    ] = "stream"
    compile_cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder of compile caches that were filled elsewhere (`python -m builder "
            "gpu-cache`). Compile times are then not recorded. Loading caches runs code from them: "
            "use only a folder that you filled or trust. Default: empty caches."
        ),
    ] = None
    kernels: Annotated[
        bool, typer.Option(help="Count kernels, or operators on a CPU, in a few additional calls.")
    ] = True
    oracle: Annotated[
        bool, typer.Option(help="Also run eager in float64 as a reference, if memory permits.")
    ] = True
    vary: Annotated[
        int,
        typer.Option(
            help="Compile again, and judge calls with this many sizes of a symbolic graph and "
            "values of its scalar inputs (at least 3). Default: 0 (off)."
        ),
    ] = 0
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Allow code from data to run; review it first."),
    ] = False
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 0
    threads: Annotated[int | None, typer.Option(help="Threads of each arm. Default: all.")] = None
    budget: Annotated[
        float | None,
        typer.Option(min=0.0, help="Time budget of a sample in seconds. Default: 0.2."),
    ] = None
    precision: Annotated[
        float | None,
        typer.Option(help="Half width of the speedup interval at which to stop. Default: 0.01."),
    ] = None
    timeout: Annotated[
        list[str] | None, typer.Option(help="phase=seconds, such as compile=300 (repeatable).")
    ] = None
    memory_limit: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="Memory limit of a sample in GiB. Default: 0.9 of the free memory."
        ),
    ] = None

    def settings(self) -> Settings:
        """Return the settings of the run.

        Raises:
            RunError: a setting has an invalid value.
        """
        from ..benchmark import Settings, TimingSettings

        timing: dict[str, Any] = {"budget_s": self.budget, "precision": self.precision}
        memory_limit = self.memory_limit
        return Settings(
            weights=self.weights,  # type: ignore[arg-type] (checked by Settings)
            input_mode=self.input_mode,  # type: ignore[arg-type]
            cache_mode=self.cache,  # type: ignore[arg-type]
            launch_mode=self.launch,  # type: ignore[arg-type]
            compile_cache=None if self.compile_cache is None else str(self.compile_cache),
            has_profile=self.kernels,
            has_oracle=self.oracle,
            num_variations=self.vary,
            trust_remote_code=self.trust_remote_code,
            seed=self.seed,
            num_threads=self.threads,
            memory_limit_bytes=None if memory_limit is None else int(memory_limit * 2**30),
            phase_timeouts_s=timeouts(self.timeout or []),
            timing=TimingSettings(
                **{name: value for name, value in timing.items() if value is not None}
            ),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparisonOptions(OptionGroup):
    """Options to store outputs for later runs, and to compare with stored outputs."""

    title: ClassVar[str] = "Comparing with stored runs"

    reference: Annotated[
        Path | None,
        typer.Option(help="Store records and outputs here, for later runs with `--against`."),
    ] = None
    against: Annotated[
        Path | None,
        typer.Option(help="Compare with a `--reference` of another device or version."),
    ] = None
    tolerance: Annotated[
        int,
        typer.Option(min=-10, max=5, help="The t at which outputs must agree with `--against`."),
    ] = -3
    threshold: Annotated[
        float, typer.Option(min=0.0, help="Relative slowdown against `--against` to tolerate.")
    ] = 0.05

    @property
    def is_control(self) -> bool:
        """True if outputs are stored or compared; the default compiler is then eager."""
        return self.reference is not None or self.against is not None

    def place(self, out: Path | None) -> Path:
        """Return the directory of the records.

        Raises:
            RunError: both `--out` and `--reference` are given.
        """
        if self.reference is not None and out is not None:
            raise RunError(
                "`--reference` already names the directory of the records. Remove `--out`."
            )
        return self.reference or out or Path("runs")


def timeouts(settings: list[str]) -> dict[str, float]:
    """Parse timeouts of the form `phase=seconds`, such as `compile=300`.

    Raises:
        RunError: A string does not have this form.
    """
    limits = {}
    for setting in settings:
        phase, _, text = setting.partition("=")
        try:
            limits[phase] = float(text)
        except ValueError as error:
            raise RunError(
                f"`{setting}` is not a timeout. Write it as `phase=seconds`, for example "
                "`compile=300`."
            ) from error
    return limits

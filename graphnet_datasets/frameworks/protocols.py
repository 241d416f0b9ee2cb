"""The contract of a framework: a protocol for each module of its package.

A framework is a package with the modules of `MODULES`. Tensors are the framework's own; samples,
statistics and results are plain data. Messages show the first line of a protocol's docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy.typing as npt

from ..inputs import Mode
from ..inputs.calibration import Backend
from ..inputs.rules import InputRules
from ..isolation import Reporter
from ..sample import Constraint, CustomOperator, Op, Provenance, Sample, Symbol
from ..sample.symbols import Dim
from ..sample.vocabulary import Kind, Task
from .outputs import MAX_EXCERPT
from .results import Observed, Region, Result
from .text_form import TextForm

if TYPE_CHECKING:
    from .capturing import Record
    from .dispatch import Names, Weights
    from .fusion import Fusion
    from .gradients import Gradients, Of, Partition
    from .probing import Prober
    from .stepping import Stepper
    from .tensor_metadata import TensorMeta


class Reading(NamedTuple):
    """The result of a call and its time in milliseconds by the chosen clock and the wall clock."""

    result: Any
    elapsed_ms: float
    wall_ms: float


class Clock(Protocol):
    """A clock that times single calls."""

    name: str

    def measure(self, call: Callable[[], Any]) -> Reading:
        """Call `call` and return its result and times."""
        ...

    def now_s(self) -> float:
        """Return the wall-clock time in seconds, for budgets."""
        ...


class Runtime(Protocol):
    """A framework on one device, with a fixed number of threads and gradients disabled."""

    device: Any

    def make_clock(self) -> Clock | None:
        """Return a clock of the device's own events, or None if the wall clock is more precise."""

    def make_evictor(self) -> Callable[[], None] | None:
        """Return a function that overwrites twice the device's last-level cache, or None on a CPU.

        The write is queued on the current stream, before the events of the next timed call.
        """

    def seed(self, seed: int) -> None:
        """Seed every generator, so that random operators draw the same numbers in each arm."""

    def synchronize(self) -> None:
        """Wait until all work on the device is finished."""

    def clone(self, value: Any) -> Any:
        """Return a copy of a tensor with the same strides, or any other value unchanged."""

    def clone_outputs(self, outputs: Any) -> Any:
        """Return a copy of the outputs with the same structure."""

    def copy_module(self, module: Any, count: int, *, is_separate: bool) -> list[Any]:
        """Return copies with separate graphs, and with separate memory for the weights if
        `is_separate`.

        Memory is allocated weight by weight for all copies, in a random order of the copies:
        addresses affect call times by several percent and must not favor one copy. Unless
        `is_separate`, the weights are different tensors that share memory. `module` may become one
        of the copies and must not be used afterwards.
        """
        ...

    def watch(self, module: Any) -> Mapping[str, Any]:
        """Return, by name, the state that affects how eager runs besides its inputs and weights.

        Examples are hooks, the functions that eager calls, and dispatch modes. A candidate could
        modify these to observe eager or to slow it down.
        """
        ...

    def tensors_of(self, module: Any) -> dict[str, Any]:
        """Return the weights of the module by name."""
        ...

    def is_equal(self, left: Any, right: Any) -> bool:
        """Return whether two tensors are bitwise equal."""
        ...

    def checksum(self, tensor: Any) -> int:
        """Return a checksum of a tensor's bits that detects changed elements."""
        ...

    def restore(self, tensor: Any, pristine: Any) -> None:
        """Copy the saved elements back into `tensor`."""

    def poison(
        self, outputs: Any, protected: set[int], spared: frozenset[int] = frozenset()
    ) -> None:
        """Overwrite outputs that are no longer needed, except in protected storages.

        Outputs whose positions are in `spared` are not overwritten either.
        """

    def storages(self, *tensors: Any) -> set[int]:
        """Return the storage addresses of the tensors."""
        ...

    def num_bytes(self, *tensors: Any) -> int:
        """Return the total size in bytes of the tensors' elements."""
        ...

    def write_outputs(self, outputs: Any, path: Path) -> list[dict[str, Any]]:
        """Write the elements of the outputs to `path`; return the dtype, shape and offset of
        each output."""
        ...

    def excerpt(
        self, outputs: Any, start: int | None, most: int = MAX_EXCERPT
    ) -> list[tuple[str, list[int], Any]]:
        """Return the dtype, the shape and a copy of some elements of each output
        (`outputs.excerpt_of`).

        Raises:
            OutputTypeError: an output is not a plain dense tensor or a number.
        """
        ...

    def digest(self, outputs: Any) -> list[tuple[str, tuple[int, ...], int, bool]]:
        """Return the dtype, shape, checksum and finiteness of each output."""
        ...

    def capture(self, call: Callable[..., Any], make_arguments: Callable[[], Any]) -> Any:
        """Capture the call in a CUDA graph for replay. Raises RuntimeError if that is
        impossible."""
        ...

    def count_compilations(self) -> Callable[[], int]:
        """Count compilations by the framework's own compilers; return a function that returns
        the count."""
        ...

    def reset_peak_memory(self) -> None:
        """Reset the device's peak memory statistics."""

    def peak_memory_bytes(self) -> int | None:
        """Return the device's peak memory since the last reset, or None on the CPU."""


class Workload(Protocol):
    """The parts of a run that an oracle needs: the module, its input sets and the inputs it
    writes to."""

    runtime: Runtime
    module: Any
    written: tuple[str, ...]
    state: dict[str, Any]

    def arguments(self, index: int) -> dict[str, Any]:
        """Return fresh arguments of an input set."""
        ...

    def forget_inputs(self) -> None:
        """Release the input sets. The workload cannot run afterwards."""

    def effects(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the tensors that a call has written to besides its outputs."""
        ...


class Operator(Protocol):
    """An entry of a table of operators."""

    @property
    def name(self) -> str:
        """The name of the operator."""
        ...

    @property
    def is_state(self) -> bool:
        """True if a call changes how later operators run."""
        ...


class Footprint(Protocol):
    """The memory of a run."""

    @property
    def peak_bytes(self) -> int:
        """The peak bytes of inputs, weights and live values."""
        ...


class Work(Protocol):
    """The work of one call of a sample."""

    @property
    def footprint(self) -> Footprint:
        """The memory of the call."""
        ...

    @property
    def flops(self) -> int:
        """The floating-point operations of operators with a formula."""
        ...

    @property
    def flops_coverage(self) -> float:
        """The share of operators with a formula, from 0 to 1."""
        ...

    @property
    def bytes_moved(self) -> int:
        """The bytes that the kernels of eager read and write."""
        ...


class Materialize(Protocol):
    """`materialize`: a callable that runs a sample."""

    def materialize(
        self,
        sample: Sample,
        *,
        device: str = "cpu",
        weights: Weights = "inputs",
        seed: int = 0,
        mode: Mode = "replay",
        memory_limit_bytes: int | None = None,
        time_limit_s: float | None = None,
        trust_remote_code: bool = False,
        allow_unchecked_operators: bool = False,
        is_known_to_fit: bool = False,
    ) -> Callable[..., Any]:
        """Return a callable with an argument for each input by canonical name.

        With `weights="parameters"`, the weights are bound to it (see `dispatch.materialize`).

        Raises:
            UnknownOperatorError, UncheckedOperatorError, UntrustedCodeError: an operator may not
                run.
            MaterializeError, MemoryLimitError: the sample cannot be built.
        """
        ...


class Tensors(Protocol):
    """`make_inputs`, `to_tensor`: the arguments of a sample."""

    def make_inputs(
        self,
        sample: Sample,
        seed: int = 0,
        mode: Mode = "replay",
        device: str = "cpu",
        weights: Weights = "inputs",
        sizes: Mapping[str, int] | None = None,
        memory_limit_bytes: int | None = None,
        time_limit_s: float | None = None,
    ) -> dict[str, Any]:
        """Return a tensor or number for each input by canonical name, equal on every machine.

        Raises:
            MaterializeError, MemoryLimitError: an input cannot be created.
        """
        ...

    def to_tensor(self, array: npt.NDArray, dtype: str, /) -> Any:
        """Return a tensor on the CPU with the bits of an array, whose elements have `dtype`."""
        ...


class Operators(Protocol):
    """`lookup`, `mutates`, `draws_random_numbers`, `drops_nothing`: the table of operators."""

    def lookup(self, name: str, /) -> Operator:
        """Return the entry of an operator, without importing the framework.

        Raises:
            UnknownOperatorError: the table has no such operator.
        """
        ...

    def mutates(self, op: Op) -> bool:
        """Return whether a call writes to an argument."""
        ...

    def draws_random_numbers(self, op: Op) -> bool:
        """Return whether a call draws random numbers."""
        ...

    def drops_nothing(self, op: Op) -> bool:
        """Return whether a call is a dropout that returns its input."""
        ...


class RuntimeModule(Protocol):
    """`make_runtime`, `import_all`: the tensors of a run, and the imports of its jobs.

    It may define `count_gpus` (see `runtime.find_device_problem`).
    """

    def make_runtime(self, device: str, num_threads: int) -> Runtime:
        """Return the framework on one device."""
        ...

    def import_all(
        self, *, with_compiler: bool = False, with_fakes: bool = False
    ) -> tuple[str, ...]:
        """Import the modules of a job, and return names of modules that are rarely imported.

        `with_compiler` adds the framework's own compiler, `with_fakes` inference of shapes.
        """
        ...


class Results(Protocol):
    """`find_results`, `find_unknown`: the results of each operator, without running it."""

    def find_results(self, sample: Sample) -> tuple[Result, ...]:
        """Return the result of each operator, from shapes and dtypes alone.

        Raises:
            UnknownOperatorError, MaterializeError: the shapes cannot be inferred.
        """
        ...

    def find_unknown(self, sample: Sample) -> tuple[int, ...]:
        """Return the positions of operators whose shapes depend on elements."""
        ...


class Printer(Protocol):
    """`print_source`, and for directories `print_model`, `argument_names`, `FORM`: source text."""

    FORM: TextForm

    def print_source(self, sample: Sample, names: Names = "canonical") -> str:
        """Return the text of a module that computes the sample."""
        ...

    def print_model(self, sample: Sample) -> str:
        """Return the text of `model.py` in GraphNet's layout."""
        ...

    def argument_names(self, sample: Sample, names: Names) -> tuple[str, ...]:
        """Return the names of the inputs in the text."""
        ...


class Source(Protocol):
    """`parse_source`: the sample of a directory's text, which is never run."""

    def parse_source(
        self,
        text: str,
        metadata: Mapping[str, TensorMeta],
        *,
        sample_id: str,
        task: Task = "other",
        kind: Kind = "graph",
        symbols: Iterable[Symbol] = (),
        constraints: Iterable[Constraint] = (),
        shapes: Mapping[str, tuple[Dim, ...]] | None = None,
        provenance: Provenance | None = None,
        custom_operators: tuple[CustomOperator, ...] = (),
        file: str = "model.py",
    ) -> Sample:
        """Return the sample of `model.py`. `metadata` maps arguments to their tensor metadata.

        Raises:
            SourceError: the text is outside of the grammar; the message names the line.
        """
        ...


class Costs(Protocol):
    """`measure`: operations, traffic and memory of a call."""

    def measure(self, sample: Sample, sizes: Mapping[str, int] | None = None) -> Work:
        """Return the work of a call for these sizes of symbols.

        Raises:
            UnknownOperatorError, MaterializeError: the shapes cannot be inferred.
        """
        ...


class Calibration(Protocol):
    """`starting`: runs of a graph for calibration, one operator at a time."""

    def starting(
        self,
        sample: Sample,
        *,
        device: str = "cpu",
        memory_limit_bytes: int | None = None,
        trust_remote_code: bool = False,
        allow_unchecked_operators: bool = False,
    ) -> AbstractContextManager[Callable[[Sample, int], Backend]]:
        """Return a context with a function that starts a run.

        The function takes the sample, possibly with other statistics, and the seed of its inputs.
        The options are those of `materialize`.

        Raises:
            CalibrationError: an operator fails, or the device cannot be used.
            UnknownOperatorError, UntrustedCodeError, MemoryLimitError, MaterializeError: as
                `materialize`.
        """
        ...


class Observing(Protocol):
    """`stepping`, `look_at`: values in a run."""

    def stepping(
        self, sample: Sample, seed: int = 0, *, emulates: bool = False, **options: Any
    ) -> AbstractContextManager[Stepper]:
        """Run a sample on the CPU, one operator at a time.

        With `emulates`, operators without a 16-bit kernel compute in float32 and round.
        """
        ...

    def look_at(self, tensor: Any, /) -> Observed:
        """Return the statistics of a tensor, and its elements if statistics do not suffice."""
        ...


class Oracle(Protocol):
    """`float64_outputs`: the same graph in float64."""

    def float64_outputs(self, workload: Workload, sample: Sample) -> Any:
        """Return the outputs of input set 0 in float64, or raise if float64 is impossible."""
        ...


class Profiling(Protocol):
    """`start_profiler`, `profile_call`: the kernels of a call."""

    def start_profiler(self, device: str) -> None:
        """Start the profiler for the first time in this process."""

    def profile_call(
        self,
        call: Callable[[], Any],
        prepare: Callable[[], Any],
        device: str,
        *,
        num_calls: int = 3,
    ) -> tuple[float, int]:
        """Return the time in kernels in milliseconds, and the number of kernels, of a call."""
        ...


class Regions(Protocol):
    """`find_regions`: ranges of operators that compute in another mode (autocast, no grad)."""

    def find_regions(self, sample: Sample) -> tuple[Region, ...]:
        """Return the regions in order."""
        ...


class Derivatives(Protocol):
    """`differentiate`: joint, forward and backward graphs."""

    def differentiate(
        self,
        sample: Sample,
        *,
        of: Of = "auto",
        partition: Partition = "default",
        seed: int = 0,
        check: bool = True,
        allow_unchecked_operators: bool = False,
    ) -> Gradients:
        """Return the graphs; `gradients.differentiate` describes options and errors."""
        ...


class FusionModule(Protocol):
    """`find_fused`: the groups that the framework's own compiler fuses."""

    def find_fused(
        self, sample: Sample, *, device: str = "cpu", allow_unchecked_operators: bool = False
    ) -> Fusion:
        """Return the kernels in order; `fusion.find_fused` describes options and errors."""
        ...


class Probing(Protocol):
    """`probe`: one walk over shapes at several sizes at once."""

    def probe(
        self,
        sample: Sample,
        points: Sequence[Mapping[str, int]],
        *,
        time_limit_s: float | None = None,
        allow_unchecked_operators: bool = False,
    ) -> AbstractContextManager[Prober]:
        """Start shape inference at points that map symbols to sizes."""
        ...


class Extract(Protocol):
    """`extract`, `FunctionModule`: live modules and functions to samples."""

    FunctionModule: type

    def extract(
        self,
        *,
        name: str,
        task: Task = "other",
        dynamic: bool = False,
        warm_up: bool = True,
        provenance: Provenance = ...,
        record: Record | None = None,
    ) -> Callable[[Any], Any]:
        """Return a decorator of modules; `extraction.extract` describes options and errors."""
        ...


class InputRulesModule(Protocol):
    """`RULES`: the operands that limit inputs, such as indices and boxes."""

    RULES: InputRules


class Peaks(Protocol):
    """`using`, `make_product`, `make_copy`, `cache_bytes`: operations at a device's peak rates."""

    def using(self, device: str, num_threads: int) -> AbstractContextManager[Callable[[], None]]:
        """Use a device with a number of threads; the value waits for the device.

        Raises:
            RunError: the device is missing or has too little free memory.
        """
        ...

    def make_product(self, device: str, dtype: str, size: int) -> Callable[[], Any]:
        """Return a call that multiplies two [size, size] matrices of a dtype."""
        ...

    def make_copy(self, device: str, num_bytes: int) -> Callable[[], Any]:
        """Return a call that reads and writes `num_bytes` bytes."""
        ...

    def cache_bytes(self, device: str) -> int | None:
        """Return the bytes of the device's last-level cache, or None for a CPU."""
        ...


class ValidationModule(Protocol):
    """`prepare`, `work`: the validation checks that run a sample, in a server of their own."""

    def prepare(self) -> None:
        """Import the modules that all jobs need."""

    def work(self, payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
        """Run one check of the sample in a directory, and report its outcome."""


MODULES: Mapping[str, type] = {
    "materialize": Materialize,
    "tensors": Tensors,
    "operators": Operators,
    "runtime": RuntimeModule,
    "results": Results,
    "printer": Printer,
    "source": Source,
    "costs": Costs,
    "calibration": Calibration,
    "observing": Observing,
    "oracle": Oracle,
    "profiling": Profiling,
    "regions": Regions,
    "gradients": Derivatives,
    "fusion": FusionModule,
    "probing": Probing,
    "extract": Extract,
    "input_rules": InputRulesModule,
    "peaks": Peaks,
    "validation": ValidationModule,
}
"""The modules of a framework's package and their protocols. The first four are required for
running samples in the benchmark. Features that depend on another module raise an error if the
module is missing."""

"""Framework-independent entry points, which dispatch by a sample's framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ..errors import CalibrationError, MaterializeError, raises_only
from ..inputs.sensitivity import SignalFigures, measure_by
from ..inputs.signal_calibration import calibrate_by
from ..sample import Sample
from ..schema import sample_from_row
from .contract import module, offers
from .results import Region, Result

if TYPE_CHECKING:
    from ..inputs import Mode

Weights = Literal["inputs", "parameters"]
Names = Literal["canonical", "source"]


@raises_only(MaterializeError)
def materialize(
    sample: Sample | Mapping[str, Any],
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
    isolated: bool = False,
) -> Any:
    """Return a runnable module for a sample or a row of one: for torch, a `torch.fx.GraphModule`.

    With `weights="inputs"` the module takes every input of the sample by canonical name, like
    GraphNet's own modules. With `weights="parameters"` the parameters, buffers and constants are
    generated from `seed` and `mode` and bound to the module. The module then takes only the data
    inputs, like a deployed model. `make_inputs` with the same `weights` returns the arguments.

    No code from the sample is executed: operators are looked up in a table, and every device in the
    graph is replaced with `device`. The exception is custom operators, which come with source code.
    Their source is logged and then executed, but only if `trust_remote_code` is true. Shapes are
    inferred first, without allocating tensors. `memory_limit_bytes` limits the memory of inputs and
    live values (default: the memory of this machine), and `time_limit_s` the time of these
    preparations.

    Kernels of unchecked operators do not validate their operands, so that an inconsistent sample
    could corrupt the memory of your process. They are rejected unless `allow_unchecked_operators`
    is true. `run` and `validate` always accept them, in separate processes (see docs/security.md).
    For Paddle, operands of checked operators are validated before each call unless
    `allow_unchecked_operators` is true.

    With `isolated` the result is an `IsolatedModule`, whose calls run in a sandboxed process that
    accepts every operator. This is safe for any row, at the cost of copying arguments and outputs
    between processes (see docs/security.md for figures).

    With both `is_known_to_fit` and `allow_unchecked_operators`, shape inference is skipped. This is
    intended for a process dedicated to the sample, with a memory limit set by the operating system,
    after an earlier process has found that the sample fits.

    Raises:
        UnknownOperatorError: an operator is not in the table, or the installed framework lacks it.
        UncheckedOperatorError: an operator is unchecked and not allowed.
        UntrustedCodeError: the sample has custom operators that are not trusted or have been
            modified.
        MemoryLimitError: the sample needs more memory than the limit.
        TimeLimitError: the preparation takes longer than the limit.
        MaterializeError: the sample cannot be made runnable, or `isolated` is combined with a GPU.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> tensor = Input("input", Value("float32", (2,)))
    >>> sample = Sample("example/double", "torch", "other",
    ...     (tensor,), (Op("operator.add", (Ref(0), Ref(0))),), Ref(1))
    >>> inputs = make_inputs(sample)
    >>> bool((materialize(sample)(**inputs) == 2 * inputs["input_0"]).all())
    True
    """
    sample = _as_sample(sample, "materialize")
    options: dict[str, Any] = {
        "weights": weights,
        "seed": seed,
        "mode": mode,
        "memory_limit_bytes": memory_limit_bytes,
        "time_limit_s": time_limit_s,
        "trust_remote_code": trust_remote_code,
    }
    if isolated:
        from .isolated import IsolatedModule

        if device != "cpu":
            raise MaterializeError(
                f"An isolated module runs on the CPU, got `device={device!r}`. Drop `device`, or "
                "use `graphnet run --device`, whose processes are isolated as well."
            )
        return IsolatedModule(sample, memory_limit_bytes, options)
    return module(sample.framework, "materialize").materialize(
        sample,
        device=device,
        **options,
        allow_unchecked_operators=allow_unchecked_operators,
        is_known_to_fit=is_known_to_fit,
    )


@raises_only(MaterializeError)
def make_inputs(
    sample: Sample | Mapping[str, Any],
    seed: int = 0,
    mode: Mode = "replay",
    device: str = "cpu",
    weights: Weights = "inputs",
    sizes: Mapping[str, int] | None = None,
    memory_limit_bytes: int | None = None,
    time_limit_s: float | None = None,
) -> dict[str, Any]:
    """Return the arguments of the materialized sample, as a dict from canonical name to tensor or
    number.

    The values depend only on `seed` and the sample, on every machine. Mode `replay` draws from the
    recorded statistics and restores stored elements. Mode `fresh` draws new data inputs, with
    integers and masks generated according to their role. Mode `probe` also avoids constant tensors,
    so that a dropped bias is detected. `sizes` maps symbols to integers (default: the captured
    sizes). With `weights="parameters"` the weights are omitted, since the module then owns them.

    `memory_limit_bytes` (default: the memory of this machine) and `time_limit_s` (default: two
    minutes) limit the memory and time for generating the inputs.

    Raises:
        MemoryLimitError, TimeLimitError: generating the inputs exceeds a limit.
        SampleError: a symbol has no size, or recorded statistics contradict themselves.
        MaterializeError: an option is unknown, or a recorded stride does not fit its shape.
        MissingExtraError: the sample's framework is not installed.
    """
    sample = _as_sample(sample, "make_inputs")
    return module(sample.framework, "tensors").make_inputs(
        sample,
        seed,
        mode,
        device,
        weights,
        sizes,
        memory_limit_bytes=memory_limit_bytes,
        time_limit_s=time_limit_s,
    )


@raises_only(CalibrationError)
def calibrate(
    sample: Sample | Mapping[str, Any],
    *,
    device: str = "cpu",
    memory_limit_bytes: int | None = None,
    trust_remote_code: bool = False,
    allow_unchecked_operators: bool = False,
    on_end: Callable[[list[tuple[int, int]]], None] | None = None,
) -> Sample:
    """Return the sample with input statistics under which its graph behaves like a trained model.

    Recorded statistics describe each tensor in isolation. Tensors drawn from them independently are
    inconsistent, so that values grow or vanish from layer to layer. Calibration runs the graph on
    inputs of up to three seeds, on the CPU or, for torch, on another `device`; there the last
    digits may differ because of another summation order. Where the running mean and variance of a
    normalization do not match its input, they are replaced with those of the input. Where the root
    mean square of a product with a weight is outside [0.003, 8], the weight is rescaled. Statistics
    that already fit remain unchanged. Data inputs receive a `signal`, the structure of natural
    data, and further runs scale weights until the outputs depend on the data and attention is
    neither uniform nor one-hot, as far as possible (`measure_signal`).

    The result stores the new statistics in addition to the recorded statistics
    (`Input.calibrated`). Its `calibration` field states whether any were needed. Inputs are drawn
    as before: a seed gives the same elements on every machine.

    The other options are those of `materialize`. The weights of a torch graph may exceed
    `memory_limit_bytes`, since each weight is generated when it is read and freed afterwards.
    `on_end` receives, for each output of the last run, the number of NaN and of infinite elements
    that calibration could not remove.

    Raises:
        CalibrationError: an operator of the graph fails when it is run, there is no such device, or
            the framework calibrates on the CPU only.
        UnknownOperatorError, UntrustedCodeError, MemoryLimitError, MaterializeError: as
            `materialize`.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Statistics, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> weight = Input("parameter", Value("float32", (64, 64)), statistics=Statistics(0.0, 50.0))
    >>> sample = Sample("example/linear", "torch", "other",
    ...     (Input("input", Value("float32", (8, 64))), weight),
    ...     (Op("torch.nn.functional.linear", (Ref(0), Ref(1))),), Ref(2))
    >>> fitted = calibrate(sample)
    >>> fitted.calibration, fitted.inputs[1].origin, fitted.inputs[1].calibrated.std < 0.2
    ('calibrated', 'calibrated', True)
    """
    sample = _as_sample(sample, "calibrate")
    with module(sample.framework, "calibration").starting(
        sample,
        device=device,
        memory_limit_bytes=memory_limit_bytes,
        trust_remote_code=trust_remote_code,
        allow_unchecked_operators=allow_unchecked_operators,
    ) as start:
        return calibrate_by(sample, start, on_end)


@raises_only(CalibrationError)
def measure_signal(
    sample: Sample | Mapping[str, Any],
    *,
    device: str = "cpu",
    memory_limit_bytes: int | None = None,
    trust_remote_code: bool = False,
    allow_unchecked_operators: bool = False,
) -> SignalFigures:
    """Return how much the outputs of a sample depend on its data, and the entropy of its attention.

    The graph runs twice with equal weights, on data of two seeds that calibration does not use.
    The options are those of `calibrate`.

    Raises:
        CalibrationError and others: as `calibrate`.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> data = Input("input", Value("float32", (64, 64)))
    >>> sample = Sample("example/zeros", "torch", "other", (data,),
    ...     (Op("operator.mul", (Ref(0), 0.0)),), Ref(1))
    >>> measure_signal(sample)
    SignalFigures(input_sensitivity=0.0, attention_entropy=None, outcome='insensitive outputs')
    """
    sample = _as_sample(sample, "measure_signal")
    with module(sample.framework, "calibration").starting(
        sample,
        device=device,
        memory_limit_bytes=memory_limit_bytes,
        trust_remote_code=trust_remote_code,
        allow_unchecked_operators=allow_unchecked_operators,
    ) as start:
        return measure_by(sample, start)


def _as_sample(sample: Any, function: str) -> Sample:
    """Return a sample unchanged, or the sample of a row.

    Raises:
        SchemaError: the row lacks a column.
        MaterializeError: the argument is neither a sample nor a row.
    """
    if isinstance(sample, Sample):
        return sample
    if isinstance(sample, Mapping):
        return sample_from_row(sample)
    raise MaterializeError(
        f"`{function}` takes a `Sample` or a row of a dataset, not a `{type(sample).__name__}`. "
        f"Pass one row: `{function}(dataset[0])`, or `{function}(Sample.from_row(dataset[0]))`."
    )


@raises_only(MaterializeError)
def find_results(sample: Sample) -> tuple[Result, ...]:
    """Return the result of each operator at the sizes of the capture, inferred without running the
    sample.

    Raises:
        UnknownOperatorError, MaterializeError: shape inference fails.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> sample = Sample("example/abs", "torch", "other", (Input("input", Value("int8", (2,))),),
    ...     (Op("torch.abs", (Ref(0),)),), Ref(1))
    >>> find_results(sample)[0].value
    Value(dtype='int8', shape=(2,), stride=None)
    """
    return module(sample.framework, "results").find_results(sample)


@raises_only(MaterializeError)
def find_regions(sample: Sample) -> tuple[Region, ...]:
    """Return the regions of a graph that compute in a different mode, ordered by their ends.

    One operator opens a region and another closes it; neither operator processes the graph's data.
    A framework without a module `regions` has no such operators.

    Raises:
        UnknownOperatorError: an operator is not in the framework's table.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Named, Ref
    >>> autocast = "torch.amp.autocast_mode"
    >>> sample = Sample("example/autocast", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),),
    ...     (Op(f"{autocast}._enter_autocast", ("cpu", Named("dtype", "bfloat16"), True, None)),
    ...      Op("torch.exp", (Ref(0),)), Op(f"{autocast}._exit_autocast", (Ref(1),))), Ref(2))
    >>> find_regions(sample)
    (Region(opens=0, closes=2, is_closed=False),)
    """
    if not offers(sample.framework, "regions"):
        return ()
    return module(sample.framework, "regions").find_regions(sample)


@raises_only(MaterializeError)
def print_source(sample: Sample, names: Names = "canonical") -> str:
    """Return the sample as Python source in GraphNet's format.

    It is meant for reading. Only `convert` executes it, in a confined process, to check its file.

    `names="source"` keeps the input names of the sample's original source.

    Raises:
        MaterializeError: `names` is unknown.
    """
    if names not in ("canonical", "source"):
        raise MaterializeError(f"`names={names!r}` is unknown (accepted: 'canonical', 'source').")
    return module(sample.framework, "printer").print_source(sample, names=names)

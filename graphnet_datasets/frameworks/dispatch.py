"""From a sample to the framework it belongs to, through the table of `contract`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ..errors import CalibrationError, MaterializeError, raises_only
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
    """Return something that runs the sample, or the row of one: a `torch.fx.GraphModule` for torch.

    With `weights="inputs"` it takes every input of the sample by canonical name, as GraphNet's own
    modules do. With `weights="parameters"` parameters, buffers and constants are made from `seed`
    and `mode` and bound to the module, which then takes the data inputs alone, as a deployed model
    does. `make_inputs` with the same `weights` gives the arguments.

    Nothing that comes with a sample is executed: operators are looked up in a table, and every
    device in the graph becomes `device`. The one exception are custom operators, which come with
    their source: it runs, after it was logged, only where `trust_remote_code` is true. Shapes are
    propagated first without memory; `memory_limit_bytes` bounds inputs and live values together
    (default: the memory of this machine), `time_limit_s` the time that this takes.

    Operators whose kernels trust their operands could corrupt the memory of your process if the
    sample lies about them. They are refused unless `allow_unchecked_operators` is true; `run` and
    `validate` take them always, in processes of their own (see docs/security.md). Of paddle,
    operands of the others are compared before each call, unless it is true.

    With `isolated` the result is an `IsolatedModule`, whose calls run in a confined process that
    takes every operator: safe for any row, at the cost of moving arguments and outputs between
    processes (docs/security.md has figures).

    With `is_known_to_fit` and `allow_unchecked_operators` shapes are not propagated: for a process
    of the sample's own whose memory the system limits, where an earlier one has found that the
    sample keeps within it.

    Raises:
        UnknownOperatorError: an operator is not in the table, or the installed framework lacks it.
        UncheckedOperatorError: an operator is not allowed to run in any process.
        UntrustedCodeError: the sample brings custom operators that may not run, or were changed.
        MemoryLimitError: the sample needs more memory than it may.
        TimeLimitError: preparing it takes more time than it may.
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
        **({"is_known_to_fit": True} if is_known_to_fit else {}),
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
    """Return the arguments of the materialized sample: canonical name to tensor or number.

    They follow from `seed` and the sample alone, on every machine. Mode `replay` draws from the
    recorded statistics and gives back stored elements; `fresh` draws data inputs anew, integers
    and masks by what they are for; `probe` leaves no tensor constant either, so that a dropped
    bias is found. `sizes` maps symbols to integers (default: the captured ones). With
    `weights="parameters"` the weights are left out, which the module then holds itself.

    `memory_limit_bytes` (default: the memory of this machine) and `time_limit_s` (default: two
    minutes) bound what making them takes.

    Raises:
        MemoryLimitError, TimeLimitError: making them takes more than that.
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
    """Return the sample with input statistics that make its graph behave as a trained model's.

    Recorded statistics describe each tensor alone; drawn anew they do not fit together, and values
    grow or vanish from layer to layer. The graph is run on inputs of up to three seeds, on the CPU
    or on another `device` of torch, where sums are taken in another order, so that the last digits
    of what is found may differ. Where a normalisation's running mean and variance do not fit what
    arrives, those of what arrives take their place; where a product with a weight leaves
    [0.003, 8] in root mean square, the weight is scaled. What fits stays as it was recorded.

    The result holds the new statistics beside the recorded ones (`Input.calibrated`), says in
    `calibration` whether any were needed, and is drawn from as before: the same elements for a seed
    on every machine.

    The other options are those of `materialize`; a graph of torch may have more weights than
    `memory_limit_bytes`, since each is drawn where it is read and let go of after. `on_end` is
    given, for each output of the last run, how many elements are NaN and how many are infinite:
    what no statistics could mend.

    Raises:
        CalibrationError: an operator of the graph fails when it is run, there is no such device,
            or the framework calibrates on the CPU only.
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
    return module(sample.framework, "calibration").calibrate(
        sample,
        memory_limit_bytes=memory_limit_bytes,
        allow_unchecked_operators=allow_unchecked_operators,
        trust_remote_code=trust_remote_code,
        **({} if device == "cpu" else {"device": device}),
        **({} if on_end is None else {"on_end": on_end}),
    )


def _as_sample(sample: Any, function: str) -> Sample:
    """Return the sample of a row, or the sample itself.

    Raises:
        SchemaError: the row lacks a column.
        MaterializeError: it is neither a sample nor a row.
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
    """Return what each operator gives at the sizes of the capture, found without running it.

    Raises:
        UnknownOperatorError, MaterializeError: the sample cannot be walked.
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
    """Return the regions in which a graph computes in another mode, in the order of their ends.

    One operator opens a region and another closes it; both take and give nothing of the graph's
    data. A framework without a module `regions` has no such operators.

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
    """Return Python text in GraphNet's form for people to read; nothing here ever runs it.

    `names="source"` keeps the names that the sample's inputs had where they came from.

    Raises:
        MaterializeError: `names` is unknown.
    """
    if names not in ("canonical", "source"):
        raise MaterializeError(f"`names={names!r}` is unknown (accepted: 'canonical', 'source').")
    return module(sample.framework, "printer").print_source(sample, names=names)

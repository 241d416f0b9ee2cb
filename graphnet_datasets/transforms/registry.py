"""Registry of transforms: functions of a sample with JSON options.

A chain of steps is plain data, so it can be sent to another process or stored in a file. To add a
transform, write a function `sample, running, **options -> Iterable[Sample | TransformError]` and
register it in `TRANSFORMS`, at its position in a chain. It raises a `TransformError` for a sample
it cannot transform; a transform that yields several samples yields the error of a failed sample and
continues. Other errors of this library count as rejections too.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, get_args

from ..errors import GradientError, GraphNetError, TransformError
from ..frameworks.gradients import Of, Partition
from ..sample import Sample
from ..suggestions import did_you_mean
from .backward import KINDS, backward
from .cast import DTYPES, autocast, cast
from .cut import Cutter
from .parts import make_parts, open_cutter
from .repeats import Trace, find_repeats, trace
from .subgraphs import METHODS_OF
from .symbolic import DEFAULT_MEMORY_BYTES, make_ladder, symbolise

Made: TypeAlias = Sample | TransformError

Placed: TypeAlias = Iterable[tuple[int, Sample | None, str]]
"""Samples in any order with their place and family; None for a sample that cannot be read."""


@dataclasses.dataclass(frozen=True)
class Running:
    """Permission of a transform to run graphs on the CPU of the calling process.

    `is_allowed` is False for graphs that are too large or that crashed in a run;
    `allow_unchecked_operators` is passed to `materialize`.
    """

    is_allowed: bool = True
    allow_unchecked_operators: bool = False
    _cutters: dict[str, Cutter] = dataclasses.field(default_factory=dict, repr=False)

    def cutter(self, sample: Sample) -> Cutter:
        """Return a cutter of a sample (`open_cutter`); the last cutter is kept for the next
        step.
        """
        if sample.id not in self._cutters:
            self._cutters.clear()
            self._cutters[sample.id] = open_cutter(
                sample,
                may_run=self.is_allowed,
                allow_unchecked_operators=self.allow_unchecked_operators,
            )
        return self._cutters[sample.id]


def _no_plan(step: Step, samples: Placed) -> None:
    del step, samples


@dataclasses.dataclass(frozen=True)
class Transform:
    """A kind of step.

    `options` maps the options of `make` to their allowed values or their type; `defaults` are the
    values of optional options. Without `needs_run`, the transform also works for samples that may
    not run, with reduced results. `config` is the option that names the config of the results; ""
    means the config of the original sample. `complete` returns options with derived values, or
    raises a `TransformError` for inconsistent options. `plan` returns the steps for several
    samples, passed with their families, or None if all have the same step. `modules` returns the
    framework modules to import in advance.
    """

    name: str
    make: Callable[..., Iterable[Made]]
    options: Mapping[str, tuple[Any, ...] | type]
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    needs_run: bool = True
    config: str = ""
    complete: Callable[[dict[str, Any]], dict[str, Any]] = dict
    plan: Callable[[Step, Placed], list[Step] | None] = _no_plan
    modules: Callable[[Mapping[str, Any]], tuple[str, ...]] = lambda _: ()


@dataclasses.dataclass(frozen=True)
class Step:
    """A transform by name, and its options.

    Raises:
        TransformError: there is no such transform, or an option is unknown, missing or invalid.

    >>> Step("autocast", {"dtype": "bfloat16"}).options
    {'check': True, 'dtype': 'bfloat16'}
    """

    name: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in TRANSFORMS:
            raise TransformError(
                f"There is no transform `{self.name}`.{did_you_mean(self.name, TRANSFORMS)} "
                "Choose one "
                f"of {', '.join(TRANSFORMS)}."
            )
        accepted = self.transform.options
        options = {**self.transform.defaults, **self.options}
        unknown = sorted(set(options) - set(accepted))
        missing = sorted(set(accepted) - set(options))
        if unknown or missing:
            problem = f"has no option `{unknown[0]}`" if unknown else f"needs `{missing[0]}`"
            raise TransformError(
                f"The transform `{self.name}` {problem}. Its options are {', '.join(accepted)}."
            )
        for name, value in options.items():
            choices = accepted[name]
            if isinstance(choices, tuple) and value not in choices:
                raise TransformError(
                    f"`{name}` of the transform `{self.name}` is {value!r}. Choose one of "
                    f"{', '.join(map(str, choices))}."
                )
            is_left_out = value is None and self.transform.defaults.get(name, value) is None
            if isinstance(choices, type) and type(value) is not choices and not is_left_out:
                raise TransformError(
                    f"`{name}` of the transform `{self.name}` is {value!r}. Pass a value of type "
                    f"{choices.__name__}."
                )
        object.__setattr__(self, "options", self.transform.complete(options))

    @property
    def transform(self) -> Transform:
        """The transform of the step."""
        return TRANSFORMS[self.name]

    @property
    def modules(self) -> tuple[str, ...]:
        """Framework modules that the step imports."""
        return self.transform.modules(self.options)

    @property
    def config(self) -> str:
        """Config of the results; "" means the config of the original sample."""
        return self.options[self.transform.config] if self.transform.config else ""


def apply(sample: Sample, steps: Sequence[Step], running: Running | None = None) -> Iterator[Made]:
    """Yield the samples that a chain of steps produces, and an error for each failed sample.

    Each step is applied to all samples of the preceding step. For steps that produce different
    configs from the same samples, see `branches`.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> relu = Sample("example/relu", "torch", "other", (Input("input", Value("float32", (2,))),),
    ...     (Op("torch.relu", (Ref(0),)),), Ref(1))
    >>> steps = [Step("cast", {"dtype": "float16"}), Step("parts", {"config": "sole_op"})]
    >>> [made.id for made in apply(relu, steps)]
    ['example/relu/float16/ops_0']
    """
    if not steps:
        yield sample
        return
    first, *others = steps
    try:
        for result in first.transform.make(sample, running or Running(), **first.options):
            if isinstance(result, TransformError):
                yield result
            else:
                yield from apply(result, others, running)
    except TransformError as error:
        yield error
    except GraphNetError as error:
        yield _refusal(error, sample)


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Sort steps into the order of a chain, which is the order of `TRANSFORMS`.

    Raises:
        TransformError: there are no steps, or a transform is repeated for a config and method.
    """
    order = list(TRANSFORMS)
    steps = tuple(sorted(steps, key=lambda step: order.index(step.name)))
    names = [(step.name, step.config, step.options.get("method")) for step in steps]
    if not names or len(set(names)) < len(names):
        raise TransformError(
            f"A chain needs at least one transform, each at most once ({', '.join(order)}); "
            "`parts` may occur once per config and method."
        )
    return steps


def branches(steps: Sequence[Step]) -> list[tuple[Step, ...]]:
    """Return the chains of the given steps: one for each step with its own config, or a single one.

    >>> parts = [Step("parts", {"config": config}) for config in ("sole_op", "fusible")]
    >>> [len(chain) for chain in branches([Step("cast", {"dtype": "float16"}), *parts])]
    [2, 2]
    """
    common = tuple(step for step in steps if not step.config)
    ends = [step for step in steps if step.config]
    return [(*common, end) for end in ends] or [common]


def plan(steps: Sequence[Step], samples: Placed) -> list[tuple[Step, ...]] | None:
    """Return the steps for each of several samples, in the order of their places; None if equal.

    Raises:
        TransformError: a step that depends on all samples follows other steps.
    """
    for position, step in enumerate(steps):
        planned = step.transform.plan(step, samples)
        if planned is None:
            continue
        if not all(other.config for other in steps):
            raise TransformError(
                f"The samples of `{step.config}` depend on all graphs, so they cannot follow other "
                "transforms. Make a dataset with the other transforms first, and apply this one "
                "to it."
            )
        return [(*steps[:position], replacement, *steps[position + 1 :]) for replacement in planned]
    return None


def _refusal(error: GraphNetError, sample: Sample) -> TransformError:
    message = str(error.args[0]) if error.args else str(error)
    reason = message.replace(f"`{sample.id}`", "the graph").partition(". ")[0]
    return TransformError(message, reason=f"{type(error).__name__}: {reason}")


def _cast(
    sample: Sample, running: Running, *, dtype: str, check: bool, emulate: bool
) -> Iterator[Sample]:
    _ask_for_run(sample, running, check)
    unchecked = running.allow_unchecked_operators
    yield cast(sample, dtype, check=check, emulate=emulate, allow_unchecked_operators=unchecked)


def _autocast(sample: Sample, running: Running, *, dtype: str, check: bool) -> Iterator[Sample]:
    _ask_for_run(sample, running, check)
    unchecked = running.allow_unchecked_operators
    yield autocast(sample, dtype, check=check, allow_unchecked_operators=unchecked)


def _backward(
    sample: Sample, running: Running, *, kind: Any, of: Any, partition: Any, check: bool
) -> Iterator[Sample]:
    _ask_for_run(sample, running, check)
    try:
        yield backward(
            sample,
            kind,
            of=of,
            partition=partition,
            check=check,
            allow_unchecked_operators=running.allow_unchecked_operators,
        )
    except GradientError as error:
        raise error if error.reason else _refusal(error, sample) from error


def _symbolise(sample: Sample, running: Running, *, check: bool) -> Iterator[Sample]:
    _ask_for_run(sample, running, check)
    unchecked = running.allow_unchecked_operators
    yield symbolise(sample, check=check, allow_unchecked_operators=unchecked).sample


def _sizes(
    sample: Sample, running: Running, *, count: int, memory_bytes: int, check: bool
) -> Iterator[Made]:
    _ask_for_run(sample, running, check)
    return make_ladder(
        sample,
        count,
        memory_limit_bytes=memory_bytes,
        check=check,
        allow_unchecked_operators=running.allow_unchecked_operators,
    )


def _complete_sizes(options: dict[str, Any]) -> dict[str, Any]:
    if options["count"] < 1 or options["memory_bytes"] < 1:
        raise TransformError(
            f"`count` and `memory_bytes` must be at least 1, got {options['count']} and "
            f"{options['memory_bytes']}."
        )
    return options


def _ask_for_run(sample: Sample, running: Running, check: bool) -> None:
    if check and not running.is_allowed:
        raise TransformError(
            f"`{sample.id}` is too large for the run that checks the result. Allow larger inputs, "
            "or disable the check.",
            reason="it is too large to be run",
        )


def _parts(
    sample: Sample,
    running: Running,
    *,
    config: str,
    method: str,
    max_ops: int | None,
    places: list[list[int]] | None,
) -> Iterator[Made]:
    del config  # implied by the method
    if max_ops is not None and sample.num_ops > max_ops:
        raise TransformError(
            f"`{sample.id}` has {sample.num_ops} operators; the method `{method}` is limited to "
            f"{max_ops} here. Increase `max_ops`.",
            reason=f"it has more operators than the limit of the method `{method}`",
        )
    groups = None if places is None else [range(first, last) for first, last in places]
    return make_parts(running.cutter(sample), method, groups)


def _plan_parts(step: Step, samples: Placed) -> list[Step] | None:
    """Return the step for each of several graphs, because typical sequences span graphs."""
    if step.options["method"] != "repeats" or step.options["places"] is not None:
        return None
    traced: list[tuple[int, Trace | None, str]] = []
    for place, sample, family in samples:
        graph_trace = None
        with contextlib.suppress(GraphNetError):  # the step itself reports the error
            graph_trace = None if sample is None else trace(sample)
        traced.append((place, graph_trace, family))
    traced.sort(key=lambda entry: entry[0])
    traces = [graph_trace for _, graph_trace, _ in traced]
    families = [family for *_, family in traced]
    places: list[list[list[int]]] = [[] for _ in traces]
    for repeat in find_repeats([graph_trace or Trace(()) for graph_trace in traces], families):
        for graph, first in repeat.places:
            places[graph].append([first, first + repeat.length])
    return [
        step
        if graph_trace is None
        else Step(step.name, {**step.options, "places": sorted(graph_places)})
        for graph_trace, graph_places in zip(traces, places, strict=True)
    ]


def _complete_parts(options: dict[str, Any]) -> dict[str, Any]:
    config, method = options["config"], options["method"]
    methods = METHODS_OF[config]
    if method not in ("", *methods):
        raise TransformError(
            f"Parts for `{config}` cannot be found with the method `{method}`. Choose one of "
            f"{', '.join(methods)}."
        )
    return {**options, "method": method or methods[0]}


TRANSFORMS: dict[str, Transform] = {
    transform.name: transform
    for transform in (
        Transform(
            "symbolise",
            _symbolise,
            {"check": bool},
            {"check": True},
            modules=lambda _: ("probing",),
        ),
        Transform(
            "sizes",
            _sizes,
            {"count": int, "memory_bytes": int, "check": bool},
            {"memory_bytes": DEFAULT_MEMORY_BYTES, "check": True},
            complete=_complete_sizes,
        ),
        Transform(
            "cast",
            _cast,
            {"dtype": DTYPES, "check": bool, "emulate": bool},
            {"check": True, "emulate": False},
        ),
        Transform(
            "autocast",
            _autocast,
            {"dtype": ("bfloat16", "float16"), "check": bool},
            {"check": True},
        ),
        Transform(
            "backward",
            _backward,
            {"kind": KINDS, "of": get_args(Of), "partition": get_args(Partition), "check": bool},
            {"of": "auto", "partition": "default", "check": True},
            modules=lambda _: ("gradients",),
        ),
        Transform(
            "parts",
            _parts,
            {"config": tuple(METHODS_OF), "method": str, "max_ops": int, "places": list},
            {"method": "", "max_ops": None, "places": None},
            needs_run=False,
            config="config",
            complete=_complete_parts,
            plan=_plan_parts,
            modules=lambda options: ("fusion",) if "inductor" in options["method"] else (),
        ),
    )
}
"""All transforms, in the order in which a chain applies them."""

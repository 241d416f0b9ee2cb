"""The transforms by name: a function of a sample, with options that are JSON.

A chain of steps is plain data, so that it can be handed to another process or kept in a file. To
add a transform write a function `sample, running, **options -> Iterable[Sample | TransformError]`
and register it in `TRANSFORMS`, in the place in which it is to be applied in a chain. It raises a
`TransformError` where it can make nothing of a sample; one that makes several yields the error of
one that it cannot make, and goes on. Other errors of this library count as refusals too.
"""

from __future__ import annotations

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


@dataclasses.dataclass(frozen=True)
class Running:
    """What a transform may run in the process in which it is called, on the CPU.

    `is_allowed` is false for graphs that are too large, or that were lost in a run;
    `allow_unchecked_operators` is that of `materialize`.
    """

    is_allowed: bool = True
    allow_unchecked_operators: bool = False
    _cutters: dict[str, Cutter] = dataclasses.field(default_factory=dict, repr=False)

    def cutter(self, sample: Sample) -> Cutter:
        """Return a cutter of a sample (`open_cutter`); the last one is kept for the next step."""
        if sample.id not in self._cutters:
            self._cutters.clear()
            self._cutters[sample.id] = open_cutter(
                sample,
                may_run=self.is_allowed,
                allow_unchecked_operators=self.allow_unchecked_operators,
            )
        return self._cutters[sample.id]


def _no_plan(step: Step, samples: Iterable[tuple[Sample | None, str]]) -> None:
    del step, samples


@dataclasses.dataclass(frozen=True)
class Transform:
    """One kind of step.

    `options` names the options of `make`, with the values that each accepts or their type;
    `defaults` are of those that may be left out. Without `needs_run` it can do with a sample that
    may not be run, if less well. `config` is the option that names the config of what it makes; ""
    is the config of the sample that it was made of. `complete` returns the options with what
    follows from one another, or raises a `TransformError` where they do not go together. `plan`
    returns the step for each of several samples, given with their families; None if it is the same.
    `modules` returns which of a framework's modules it needs, for who imports them beforehand.
    """

    name: str
    make: Callable[..., Iterable[Made]]
    options: Mapping[str, tuple[Any, ...] | type]
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    needs_run: bool = True
    config: str = ""
    complete: Callable[[dict[str, Any]], dict[str, Any]] = dict
    plan: Callable[[Step, Iterable[tuple[Sample | None, str]]], list[Step] | None] = _no_plan
    modules: Callable[[Mapping[str, Any]], tuple[str, ...]] = lambda _: ()


@dataclasses.dataclass(frozen=True)
class Step:
    """A transform by name, and its options.

    Raises:
        TransformError: there is no such transform, or an option that it does not take.

    >>> Step("autocast", {"dtype": "bfloat16"}).options
    {'check': True, 'dtype': 'bfloat16'}
    """

    name: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in TRANSFORMS:
            raise TransformError(
                f"There is no transform `{self.name}`.{did_you_mean(self.name, TRANSFORMS)} There "
                f"are {', '.join(TRANSFORMS)}."
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
                    f"`{name}` of the transform `{self.name}` is {value!r}. Give it as "
                    f"{choices.__name__}."
                )
        object.__setattr__(self, "options", self.transform.complete(options))

    @property
    def transform(self) -> Transform:
        """What it is a step of."""
        return TRANSFORMS[self.name]

    @property
    def modules(self) -> tuple[str, ...]:
        """Which of a framework's modules it needs."""
        return self.transform.modules(self.options)

    @property
    def config(self) -> str:
        """The config of what it makes, "" where it is that of what it is made of."""
        return self.options[self.transform.config] if self.transform.config else ""


def apply(sample: Sample, steps: Sequence[Step], running: Running | None = None) -> Iterator[Made]:
    """Yield the samples that a chain of steps makes, and an error for each that it cannot make.

    Each step is applied to all samples of the step before it. For steps that make other configs out
    of the same samples see `branches`.

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
        for made in first.transform.make(sample, running or Running(), **first.options):
            if isinstance(made, TransformError):
                yield made
            else:
                yield from apply(made, others, running)
    except TransformError as error:
        yield error
    except GraphNetError as error:
        yield _refusal(error, sample)


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return steps in the order in which a chain applies them, that of `TRANSFORMS`.

    Raises:
        TransformError: there is no step, or a transform comes twice for the same config and method.
    """
    order = list(TRANSFORMS)
    steps = tuple(sorted(steps, key=lambda step: order.index(step.name)))
    names = [(step.name, step.config, step.options.get("method")) for step in steps]
    if not names or len(set(names)) < len(names):
        raise TransformError(
            f"A chain has each transform once at most, and one at least ({', '.join(order)}); "
            "`parts` may come once for each config and method."
        )
    return steps


def branches(steps: Sequence[Step]) -> list[tuple[Step, ...]]:
    """Return the chains that steps make: one for each that makes a config of its own, or one.

    >>> parts = [Step("parts", {"config": config}) for config in ("sole_op", "fusible")]
    >>> [len(chain) for chain in branches([Step("cast", {"dtype": "float16"}), *parts])]
    [2, 2]
    """
    common = tuple(step for step in steps if not step.config)
    ends = [step for step in steps if step.config]
    return [(*common, end) for end in ends] or [common]


def plan(
    steps: Sequence[Step], samples: Iterable[tuple[Sample | None, str]]
) -> list[tuple[Step, ...]] | None:
    """Return the steps for each of many samples, given with their families; None if all the same.

    None among the samples stands for one that cannot be read.

    Raises:
        TransformError: a step that depends on all samples comes behind others.
    """
    for position, step in enumerate(steps):
        own = step.transform.plan(step, samples)
        if own is None:
            continue
        if not all(other.config for other in steps):
            raise TransformError(
                f"What `{step.config}` holds of a graph depends on the other graphs as they are. "
                "Make a dataset of the other transforms first, and then this one of that."
            )
        return [(*steps[:position], each, *steps[position + 1 :]) for each in own]
    return None


def _refusal(error: GraphNetError, sample: Sample) -> TransformError:
    text = str(error.args[0]) if error.args else str(error)
    reason = text.replace(f"`{sample.id}`", "the graph").partition(". ")[0]
    return TransformError(text, reason=f"{type(error).__name__}: {reason}")


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
        raise TransformError("Sizes are made 1 or more of a graph, within 1 byte or more.")
    return options


def _ask_for_run(sample: Sample, running: Running, check: bool) -> None:
    if check and not running.is_allowed:
        raise TransformError(
            f"`{sample.id}` is checked by a run, for which it is too large here. Allow larger "
            "inputs, or leave the check out.",
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
    del config  # the method says all
    if max_ops is not None and sample.num_ops > max_ops:
        raise TransformError(
            f"`{sample.id}` has {sample.num_ops} operators, of which the method `{method}` is "
            f"asked for no more than {max_ops} here.",
            reason=f"it has more operators than the method `{method}` is asked for",
        )
    groups = None if places is None else [range(first, last) for first, last in places]
    return make_parts(running.cutter(sample), method, groups)


def _plan_parts(step: Step, samples: Iterable[tuple[Sample | None, str]]) -> list[Step] | None:
    """Return the step for each of many graphs: what is typical shows only beside the others."""
    if step.options["method"] != "repeats" or step.options["places"] is not None:
        return None
    traces: list[Trace | None] = []
    families = []
    for sample, family in samples:
        try:
            traces.append(None if sample is None else trace(sample))
        except GraphNetError:  # it is refused when its turn comes
            traces.append(None)
        families.append(family)
    places: list[list[list[int]]] = [[] for _ in traces]
    for each in find_repeats([each or Trace(()) for each in traces], families):
        for graph, first in each.places:
            places[graph].append([first, first + each.length])
    return [
        step if each is None else Step(step.name, {**step.options, "places": sorted(some)})
        for each, some in zip(traces, places, strict=True)
    ]


def _complete_parts(options: dict[str, Any]) -> dict[str, Any]:
    config, method = options["config"], options["method"]
    methods = METHODS_OF[config]
    if method not in ("", *methods):
        raise TransformError(
            f"Parts for `{config}` are not found by the method `{method}`. Choose one of "
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

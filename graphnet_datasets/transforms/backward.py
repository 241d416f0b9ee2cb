"""Samples of a graph's gradients: forward, backward and joint graphs."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from ..errors import GradientError, SampleError, raises_only
from ..frameworks import differentiate
from ..frameworks.gradients import Of, Partition
from ..sample import Sample

Kind: TypeAlias = Literal["joint", "forward", "backward"]
KINDS: tuple[str, ...] = get_args(Kind)


@raises_only(GradientError)
def backward(
    sample: Sample,
    kind: Kind = "joint",
    *,
    of: Of = "auto",
    partition: Partition = "default",
    seed: int = 0,
    check: bool = True,
    allow_unchecked_operators: bool = False,
) -> Sample:
    """Return the graph of a sample's gradients, in operators of the framework's own.

    - `joint` computes outputs and gradients, as a step of training does. It takes the inputs of the
      sample and then a gradient of each output that has one (`tangent_0`, …).
    - `forward` computes the outputs and what the backward graph needs of it.
    - `backward` takes those saved tensors (`saved_…`), what it needs of the inputs, and the
      tangents, and gives the gradients.

    `of` says of what gradients are computed: of floating-point `parameters`, of `all`, that is
    the data inputs as well, or `auto`: the parameters alone of a whole graph that has any, else
    all. `partition` says how the joint graph is cut: by `default` autograd's own way, or `min_cut`,
    which computes again what is cheap and saves less. What the graph draws at random (masks of
    dropout) comes in as an input (`random_0`, …). Sizes are those of the capture.
    `provenance.parent_id` names the sample, and `provenance.metadata` says under `outputs` what
    each output is.

    With `check` the graphs are run once on the CPU, in this process, and must give the outputs and
    gradients of eager autograd at t = -5; saved tensors get the statistics of that run. Tangents
    are standard normal numbers: what a trained model's would be like, nobody knows.

    Raises:
        SampleError: there is no such kind.
        GradientError: the sample has no gradients, cannot be traced, or the check fails.
        UnknownOperatorError, UncheckedOperatorError, MemoryLimitError, MaterializeError: as
            `materialize`.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> sample = Sample("example/square", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.Tensor.mul", (Ref(0), Ref(0))),), (Ref(1),))
    >>> step = backward(sample)
    >>> step.id, step.kind, [op.target.split(".")[-2] for op in step.ops]
    ('example/square/joint', 'joint', ['mul', 'mul', 'mul', 'add'])
    """
    if kind not in KINDS:
        raise SampleError(
            f"There is no graph {kind!r} of gradients. The kinds are {', '.join(KINDS)}."
        )
    made = differentiate(
        sample,
        of=of,
        partition=partition,
        seed=seed,
        check=check,
        allow_unchecked_operators=allow_unchecked_operators,
    )
    return {"joint": made.joint, "forward": made.forward, "backward": made.backward}[kind]

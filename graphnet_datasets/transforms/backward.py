"""Forward, backward and joint graphs of gradients."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from ..errors import GradientError, SampleError, raises_only
from ..frameworks import differentiate
from ..frameworks.gradients import Of, Partition
from ..sample import Sample
from .bodies import check_no_bodies

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
    """Return a gradient graph of a sample, in the framework's own operators.

    - `joint` computes outputs and gradients, like a training step. It takes the inputs of the
      sample, followed by a gradient for each output that has one (`tangent_0`, …).
    - `forward` computes the outputs and the tensors saved for the backward graph.
    - `backward` takes the saved tensors (`saved_…`), the required inputs and the tangents, and
      returns the gradients.

    `of` selects the differentiated inputs: floating-point `parameters`, `all` (data inputs as
    well), or `auto`: only the parameters of a whole graph with parameters, otherwise all.
    `partition` selects how the joint graph is split: `default` is autograd's own way, and `min_cut`
    recomputes cheap values to save less memory. Random draws of the graph (dropout masks) become
    inputs (`random_0`, …). Sizes are those of the capture. `provenance.parent_id` names the sample,
    and `provenance.metadata` describes each output under `outputs`.

    With `check`, the graphs run once on the CPU in this process, and must match the outputs and
    gradients of eager autograd at t = -5; saved tensors get the statistics of that run. Tangents
    are standard normal numbers, because the tangents of a trained model are unknown.

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
    check_no_bodies(sample)
    if kind not in KINDS:
        raise SampleError(f"There is no gradient graph {kind!r}. Choose one of {', '.join(KINDS)}.")
    gradients = differentiate(
        sample,
        of=of,
        partition=partition,
        seed=seed,
        check=check,
        allow_unchecked_operators=allow_unchecked_operators,
    )
    return {"joint": gradients.joint, "forward": gradients.forward, "backward": gradients.backward}[
        kind
    ]

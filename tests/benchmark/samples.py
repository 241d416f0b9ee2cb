"""Tiny samples for timed runs, and settings that make a run of one take a tenth of a second."""

from __future__ import annotations

from typing import Any

from graphnet_datasets.benchmark import Settings, TimingSettings
from graphnet_datasets.sample import Input, Op, Provenance, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import Ref

QUICK = TimingSettings(
    min_pairs=4, max_pairs=8, budget_s=0.2, hard_budget_s=5, warmup_s=0, min_warmup_calls=1
)


def quick(**changes: Any) -> Settings:
    return Settings(**{"timing": QUICK, "alone_calls": 3, "num_threads": 1, **changes})


def make_sample(
    name: str, *ops: Op, inputs: tuple[Input, ...] | None = None, outputs: Any = None
) -> Sample:
    """Return a sample on one float32 input of shape (4, 16) that returns its last value."""
    inputs = inputs or (Input("input", Value("float32", (4, 16))),)
    return Sample(
        id=f"test/{name}",
        framework="torch",
        task="other",
        inputs=inputs,
        ops=ops,
        outputs=Ref(len(inputs) + len(ops) - 1) if outputs is None else outputs,
        provenance=Provenance(source="tests"),
    )


LINEAR = make_sample(
    "linear",
    Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
    Op("torch.relu", (Ref(2),)),
    inputs=(
        Input("input", Value("float32", (4, 16))),
        Input("parameter", Value("float32", (8, 16))),
    ),
)
DROPOUT = make_sample("dropout", Op("torch.nn.functional.dropout", (Ref(0), 0.5, True)))
IN_PLACE = make_sample(
    "in_place", Op("torch.Tensor.add_", (Ref(0), 1.0)), Op("torch.relu", (Ref(0),))
)
RUNNING_STATISTICS = make_sample(
    "running_statistics",
    Op(
        "torch.nn.functional.batch_norm",
        (Ref(0), Ref(1), Ref(2)),
        (("training", True), ("momentum", 0.1)),
    ),
    inputs=(
        Input("input", Value("float32", (4, 16))),
        Input("buffer", Value("float32", (16,)), "running_mean"),
        Input("buffer", Value("float32", (16,)), "running_var"),
    ),
)
INTEGERS = make_sample(
    "integers",
    Op("torch.Tensor.add", (Ref(0), 1)),
    inputs=(Input("input", Value("int64", (4, 16)), statistics=Statistics(min=0, max=9)),),
)
NO_OUTPUTS = make_sample("no_outputs", Op("torch.relu", (Ref(0),)), outputs=())
BROKEN = make_sample("broken", Op("torch.Tensor.view", (Ref(0), 3, 5)))
HUGE = make_sample(
    "huge", Op("torch.relu", (Ref(0),)), inputs=(Input("input", Value("float32", (2**33,))),)
)

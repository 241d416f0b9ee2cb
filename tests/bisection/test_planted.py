"""Twenty planted bugs: each is found, and nearly all in three operators or fewer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "torch", reason="torch is not installed: pip install 'graphnet-datasets[torch]'"
)

from graphnet_datasets import Sample
from graphnet_datasets.bisection import bisect
from graphnet_datasets.bisection.bisecting import default_settings
from graphnet_datasets.bisection.trials import TrialRunner
from graphnet_datasets.sample.targets import base_name
from graphnet_datasets.storage.selection import select_rows

PLANTED = Path(__file__).with_name("planted.py")


@dataclasses.dataclass(frozen=True)
class Bug:
    """A planted compiler, a graph that it fails on, how, and the operators that are to blame."""

    compiler: str
    sample_id: str
    kind: str
    culprits: tuple[str, ...]
    most: int = 1
    slower_than: float | None = None
    is_slow: bool = True


BUGS = (
    Bug("gelu_by_tanh", "torch/resampler-dynamic", "wrong", ("gelu",)),
    Bug("odd_softmax", "torch_geometric/FeaStConv", "wrong", ("softmax",)),
    Bug("grouped_convolution", "torch/conv-tasnet-small", "wrong", ("conv1d",)),
    Bug("broadcast_add", "torch/sasrec", "wrong", ("add",)),
    Bug("half_norm", "transformers/PatchTSMixerModel-float16", "wrong", ("layer_norm",)),
    Bug("relu_after_add", "torch/resnet-20-cifar", "wrong", ("add", "relu"), 2),
    Bug("linear_gelu_linear", "torch/mlp-mixer-small", "wrong", ("linear", "gelu"), 3),
    Bug("crashing_pool", "torch/vgg-11-small", "crash", ("max_pool2d",)),
    Bug("hanging_tanh", "torch/deeponet", "hang", ("tanh",), 2),
    Bug("nan_of_softplus", "torch/schnet", "not_finite", ("softplus",)),
    Bug("slow_transposed", "torch/hifi-gan-small", "slow", ("conv_transpose1d",), 1, 0.5),
    Bug("refused_einsum", "torch/kan", "error", ("einsum",), is_slow=False),
    Bug("crash_on_group_norm", "torch/conv-tasnet-small", "crash", ("group_norm",)),
    Bug("failing_index_add", "torch/gcn-small", "error", ("index_add",), is_slow=False),
    Bug("wide_result", "torch/graphsage-small", "mismatch", ("log_softmax",)),
    Bug("kept_axis", "torch/deepfm-small", "mismatch", ("sigmoid",), is_slow=False),
    Bug("strided_product", "torch/dlrm-small", "wrong", ("bmm",), 2),
    Bug("lost_scatter", "torch_geometric/GraphConv", "wrong", ("scatter_add_",)),
    Bug("wide_cat", "torch/text-cnn-small", "wrong", ("cat",)),
    Bug("high_rows", "torch/sasrec", "wrong", ("embedding",)),
    Bug("strided_convolution", "torch/dueling-dqn", "wrong", ("conv2d",)),
)


@pytest.fixture(scope="module")
def runner() -> Iterator[TrialRunner]:
    """One server for all bisections: what it imports takes longer than most of them."""
    with closing(TrialRunner("cpu", settings(run_s=600.0))) as trials:
        yield trials


def settings(run_s: float) -> Any:
    return default_settings(timeouts_s={"run": run_s}, num_threads=1, memory_limit_bytes=2**31)


def sample_of(sample_id: str) -> Sample:
    (row,) = select_rows(sample_id)
    return Sample.from_row(row)


def test_there_are_twenty_bugs_and_few_need_more_than_three_operators() -> None:
    assert len({bug.compiler for bug in BUGS}) >= 20
    assert sum(bug.most <= 3 for bug in BUGS) >= len(BUGS) - 2


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, id=bug.compiler, marks=[pytest.mark.slow] if bug.is_slow else [])
        for bug in BUGS
    ],
)
def test_a_planted_bug_is_found(bug: Bug, runner: TrialRunner, tmp_path: Path) -> None:
    with ExitStack() as stack:
        if bug.kind == "hang":
            runner = stack.enter_context(closing(TrialRunner("cpu", settings(run_s=2.0))))
        found = bisect(
            sample_of(bug.sample_id),
            f"{PLANTED}:{bug.compiler}",
            tmp_path,
            slower_than=bug.slower_than,
            runner=runner,
        )
    assert found.failure.kind == bug.kind
    assert set(bug.culprits) <= {base_name(target) for target in found.targets}
    assert found.sample.num_ops <= bug.most
    assert found.is_minimal

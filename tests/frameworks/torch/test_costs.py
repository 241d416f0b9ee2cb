"""Costs counted on fake tensors, against torch's own counter and against real runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from graphnet_datasets import Sample, extract, load_dataset, make_inputs, materialize
from graphnet_datasets.frameworks.torch.costs import measure
from graphnet_datasets.frameworks.torch.shapes import propagate
from graphnet_datasets.frameworks.torch.walking.flop_formulas import count_flops, is_view
from graphnet_datasets.frameworks.torch.walking.live_memory import StorageWatch
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

from .allocator import measure_peak

aten = torch.ops.aten


def one(target: str, *args: Any, shapes: tuple[tuple[int, ...], ...], **kwargs: Any) -> Sample:
    inputs = tuple(Input("input", Value("float32", shape)) for shape in shapes)
    ops = (Op(target, args, tuple(kwargs.items())),)
    return Sample("test/one", "torch", "other", inputs, ops, Ref(len(inputs)))


@pytest.mark.parametrize(
    ("sample", "flops", "bytes_moved"),
    [
        # 2 m n k, and both matrices read and the product written once
        (one("torch.mm", Ref(0), Ref(1), shapes=((3, 4), (4, 5))), 120, 4 * (12 + 20 + 15)),
        (one("torch.relu", Ref(0), shapes=((3, 4),)), 12, 4 * 24),
        (one("torch.Tensor.t", Ref(0), shapes=((3, 4),)), 0, 0),
        (one("torch.sum", Ref(0), shapes=((3, 4),)), 12, 4 * 13),
        (one("torch.add", Ref(0), Ref(1), shapes=((3, 4), (4,))), 12, 4 * (12 + 4 + 12)),
        (one("torch.softmax", Ref(0), 1, shapes=((3, 4),)), 60, 4 * 24),
        # 2 * 8 * 3 * 3 * 3 per output element, of which there are 8 * 6 * 6
        (
            one("torch.conv2d", Ref(0), Ref(1), shapes=((1, 3, 8, 8), (8, 3, 3, 3))),
            2 * 8 * 36 * 27,
            4 * (3 * 64 + 216 + 8 * 36),
        ),
        (
            one("torch.cat", ListArg((Ref(0), Ref(1))), shapes=((3, 4), (2, 4))),
            0,
            4 * 40,
        ),
        # an expanded tensor lies in the memory of one row
        (one("torch.Tensor.expand", Ref(0), 100, 4, shapes=((1, 4),)), 0, 0),
        (one("torch.nn.functional.max_pool2d", Ref(0), 2, shapes=((1, 1, 4, 4),)), 16, 112),
        (
            one(
                "torch.nn.functional.scaled_dot_product_attention",
                *(Ref(0), Ref(1), Ref(2)),
                shapes=((1, 2, 4, 8),) * 3,
            ),
            2 * (2 * 2 * 4 * 4 * 8),
            None,
        ),
    ],
    ids=lambda value: value.ops[0].target if isinstance(value, Sample) else None,
)
def test_one_operator(sample: Sample, flops: int, bytes_moved: int | None) -> None:
    walked = measure(sample)
    assert (walked.flops, walked.flops_coverage) == (flops, 1.0)
    if bytes_moved is not None:
        assert walked.bytes_moved == bytes_moved


def test_an_operator_without_formula_lowers_the_coverage() -> None:
    inverse = one("torch.linalg.inv", Ref(0), shapes=((4, 4),))
    assert count_flops(aten.linalg_inv_ex.default, (torch.eye(4),), None) is None
    assert measure(inverse).flops_coverage == 0.0


def test_an_operator_whose_size_only_a_run_tells_lowers_the_coverage() -> None:
    sample = Sample(
        "test/nonzero", "torch", "other",
        (Input("input", Value("float32", (8,))),),
        (Op("torch.nonzero", (Ref(0),)), Op("torch.relu", (Ref(0),))), (Ref(1), Ref(2)),
    )  # fmt: skip
    assert (measure(sample).flops, measure(sample).flops_coverage) == (8, 0.5)


def test_an_embedding_reads_the_rows_it_gives() -> None:
    table = Input("parameter", Value("float32", (1000, 8)))
    tokens = Input("input", Value("int64", (5,)))
    sample = Sample(
        "test/embedding", "torch", "nlp", (tokens, table),
        (Op("torch.nn.functional.embedding", (Ref(0), Ref(1))),), Ref(2),
    )  # fmt: skip
    assert measure(sample).bytes_moved == 5 * 8 + 2 * 5 * 8 * 4


def test_views_are_distinguished_from_copies() -> None:
    assert is_view(aten.view.default) and is_view(aten._unsafe_view.default)
    assert not is_view(aten.clone.default) and not is_view(aten.add_.Tensor)


class Block(torch.nn.Module):
    """A convolution, a norm, attention and a loss of precision, all in one."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv1d(8, 16, 3, padding=1)
        self.norm = torch.nn.LayerNorm(16)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.convolution(x).transpose(1, 2))
        mixed, _ = self.attention(y, y, y, need_weights=False)
        return self.head(y + mixed).mean(1)


@pytest.fixture(scope="module")
def block() -> Sample:
    module: Any = extract(name="test/block")(Block().eval())
    with torch.no_grad():
        module(torch.randn(4, 8, 32))
    return module.samples[0]


def test_products_are_those_of_the_counter_of_torch(block: Sample) -> None:
    walked = measure(block)
    graph, inputs = materialize(block), make_inputs(block)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        graph(**inputs)
    products = counter.get_total_flops()
    # torch's counter has no formula for attention on the CPU, and none for elementwise operators.
    attention = 2 * (2 * 4 * 2 * 32 * 32 * 8)
    assert walked.flops_coverage == 1.0
    assert products + attention < walked.flops < 1.15 * (products + attention)


def test_shapes_are_those_of_a_run(block: Sample) -> None:
    graph = materialize(block)
    seen: list[tuple[int, ...] | None] = []

    class Watch(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            result = super().run_node(n)
            if n.op not in ("placeholder", "output"):
                seen.append(tuple(result.shape) if isinstance(result, torch.Tensor) else None)
            return result

    with torch.no_grad():
        Watch(graph).run(*make_inputs(block).values())
    for shape, results in zip(seen, propagate(block), strict=True):
        assert shape is None or (results is not None and results[0].shape == shape)


# Convolutions, recurrent layers and fused encoder layers take working memory of their own inside
# one kernel, which is not a tensor of the graph.
SMALL = (
    "torch/ncf", "torch/fno-1d", "torch/schnet", "torch/real-nvp", "torch/gcn-small-dynamic",
    "torch/sasrec",
)  # fmt: skip


@pytest.mark.parametrize("sample_id", ["block", *SMALL])
@pytest.mark.filterwarnings("ignore:.*profiler:UserWarning")
def test_peak_memory_is_that_of_the_allocator(sample_id: str, block: Sample) -> None:
    sample = block if sample_id == "block" else embedded(sample_id)
    footprint = measure(sample).footprint
    module, inputs = materialize(sample), make_inputs(sample)
    with torch.no_grad():
        module(**inputs)  # what the first call caches is not the graph's
        peak = measure_peak(lambda: module(**inputs)) + footprint.input_bytes
    assert footprint.peak_bytes == pytest.approx(peak, rel=0.1)


class Trace(TorchDispatchMode):
    """Counts the storages of a real run, without what kernels take inside of them."""

    def __init__(self, storages: StorageWatch) -> None:
        super().__init__()
        self.storages = storages

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.storages.see(result)
        return result


@pytest.mark.parametrize("sample_id", ["torch/conv-lstm-small", "torch/edsr-x2-small"])
def test_peak_memory_is_that_of_the_tensors_of_a_run(sample_id: str) -> None:
    # The allocator's own peak is 1.6 times as high: oneDNN copies the operands of a convolution.
    sample = embedded(sample_id)
    footprint = measure(sample).footprint
    module, inputs = materialize(sample), make_inputs(sample)
    storages = StorageWatch()
    storages.begin(footprint.input_bytes, inputs.values())
    with torch.no_grad(), Trace(storages):
        module(**inputs)
    assert footprint.peak_bytes == pytest.approx(storages.peak_bytes, rel=0.01)


def test_tensors_inside_a_composite_operator_count() -> None:
    def both(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cosine_similarity(x, x)

    sample = one("torch.nn.functional.cosine_similarity", Ref(0), Ref(0), shapes=((64, 1000),))
    x = torch.ones(64, 1000)
    storages = StorageWatch()
    storages.begin(x.nbytes, [x])
    with torch.no_grad(), Trace(storages):
        both(x)
    assert measure(sample).footprint.peak_bytes == storages.peak_bytes
    assert storages.peak_bytes > 2 * x.nbytes


def embedded(sample_id: str) -> Sample:
    dataset: Any = load_dataset("graphnet", "all", "all", filters=[("id", "==", sample_id)])
    return Sample.from_row(dataset[0])

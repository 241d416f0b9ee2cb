"""Capture without weights."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from graphnet_datasets.frameworks.torch.capture.distributions import initial_statistics
from graphnet_datasets.frameworks.torch.capture.fake_weights import fake_weights, has_weights
from graphnet_datasets.frameworks.torch.capture.initialisers import without_weights
from graphnet_datasets.frameworks.torch.extract import extract
from graphnet_datasets.sample import Sample, Statistics

from .capturing import capture_one, inputs_by_role


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 8)
        self.norm = nn.LayerNorm(8)
        self.mixer = nn.Conv1d(8, 8, 3, padding=1)
        self.batch_norm = nn.BatchNorm1d(8)
        self.scale = nn.Parameter(torch.full((8,), 0.5))
        self.head = nn.Linear(8, 50, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("positions", torch.arange(16) % 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.embedding(ids) + self.embedding(self.positions[: ids.shape[1]]))
        x = self.batch_norm(self.mixer(x.transpose(1, 2))).transpose(1, 2)
        return self.head(x * self.scale)


IDS = torch.tensor([[4, 9, 49, 0]])


def structure(sample: Sample) -> object:
    return (
        [(op.target, op.args, op.kwargs, op.results, op.module) for op in sample.ops],
        [(each.role, each.value, each.source_name, each.device) for each in sample.inputs],
        sample.outputs,
        sample.symbols,
        sample.constraints,
    )


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("way", ["without_weights", "meta"])
def test_the_graph_is_that_of_the_real_model(way: str, is_dynamic: bool) -> None:
    real = capture_one(Model().eval(), IDS, dynamic=is_dynamic)
    with without_weights() if way == "without_weights" else torch.device("meta"):
        module = Model().eval()
    assert not has_weights(module)
    light = capture_one(module, IDS, dynamic=is_dynamic)
    assert structure(light) == structure(real)
    data, real_data = inputs_by_role(light, "input"), inputs_by_role(real, "input")
    assert data == real_data, "data inputs are always real"
    assert all(not each.statistics.is_measured for each in inputs_by_role(light, "parameter"))


def test_parameters_remember_their_initialisers_and_constants_are_spread() -> None:
    with without_weights():
        module = Model()
        attention = nn.Parameter(torch.randn(1000) * 0.02)
        module.attention = attention
        nn.init.normal_(module.mixer.bias, std=0.3)
    bound = 1 / math.sqrt(8 * 3)
    expected = {
        "embedding.weight": Statistics(0.0, 1.0, is_measured=False),
        "norm.weight": Statistics(1.0, 0.02, is_measured=False),
        "norm.bias": Statistics(0.0, 0.02, is_measured=False),
        "mixer.weight": Statistics(
            0.0,
            float(f"{bound / math.sqrt(3):.3e}"),
            float(f"{-bound:.3e}"),
            float(f"{bound:.3e}"),
            is_measured=False,
        ),
        "mixer.bias": Statistics(0.0, 0.3, is_measured=False),
        "scale": Statistics(0.5, 0.01, is_measured=False),
    }
    found = {name: initial_statistics(tensor) for name, tensor in module.named_parameters()}
    assert {name: found[name] for name in expected} == expected
    assert module.head.weight is module.embedding.weight
    drawn = found["attention"]
    assert drawn is not None and drawn.std is not None and 0.018 < drawn.std < 0.022


def test_truncated_normals_are_remembered() -> None:
    with without_weights():
        module = nn.Linear(4, 4)
        nn.init.trunc_normal_(module.weight, std=0.02)
    remembered = initial_statistics(module.weight)
    assert remembered is not None and remembered.mean == 0.0
    assert remembered.std == pytest.approx(0.02, rel=0.1)


def test_initialisers_draw_where_they_are_to_be_measured() -> None:
    torch.manual_seed(0)
    with without_weights(is_measured=True):
        module = Model()
        nn.init.trunc_normal_(module.norm.weight, std=0.5, a=-0.25, b=0.25)
        wide = nn.Linear(300, 3_000_000)  # of which some rows are drawn
        nn.init.normal_(wide.weight, std=0.02)
        nn.init.kaiming_normal_(module.mixer.weight, mode="fan_out", nonlinearity="relu")
    found = {name: initial_statistics(each) for name, each in module.named_parameters()}
    assert all(each.is_meta for each in (*module.parameters(), *wide.parameters()))
    embedding, mixer, norm = (
        found[name] for name in ("embedding.weight", "mixer.weight", "norm.weight")
    )
    assert embedding is not None and embedding.is_measured and embedding.mean != 0.0
    assert embedding.std == pytest.approx(1.0, rel=0.2)
    assert embedding.max is not None and 2.0 < embedding.max < 5.0
    assert mixer is not None and mixer.std == pytest.approx(math.sqrt(2 / 24), rel=0.3)
    assert norm is not None and norm.is_measured
    assert norm.min is not None and norm.max is not None
    assert -0.25 <= norm.min < norm.max <= 0.25
    drawn = initial_statistics(wide.weight)
    assert drawn is not None and drawn.is_measured and drawn.std == pytest.approx(0.02, rel=0.01)
    # constants are declared, as ever: trained ones would not be constant
    assert found["norm.bias"] == Statistics(0.0, 0.02, is_measured=False)
    samples = inputs_by_role(capture_one(module.eval(), IDS), "parameter")
    assert {
        each.source_name for each in samples if each.statistics and each.statistics.is_measured
    } >= {"L_self_modules_embedding_parameters_weight_"}


def test_changes_of_drawn_elements_are_measured() -> None:
    """As libraries draw truncated normals: uniform numbers through the inverse error function."""
    with without_weights(is_measured=True):
        layer, other = nn.Linear(100, 100), nn.Linear(100, 100)
        with torch.no_grad():
            layer.weight.uniform_(-0.9545, 0.9545).erfinv_().mul_(math.sqrt(2)).clamp_(-2, 2)
            layer.weight.mul_(0.02).add_(1.0)
            other.weight.normal_()
            other.weight.data.mul_(0.5).add_(3.0)
            layer.bias.mul_(100.0)  # no longer in memory: others were drawn
    scaled, lost = initial_statistics(other.weight), initial_statistics(layer.bias)
    assert scaled is not None and scaled.is_measured and scaled.mean == pytest.approx(3, abs=0.05)
    assert lost is not None and not lost.is_measured
    statistics = initial_statistics(layer.weight)
    assert statistics is not None and statistics.mean == pytest.approx(1.0, abs=0.01)
    assert statistics.std == pytest.approx(0.0176, rel=0.05)
    assert statistics.max is not None and statistics.max <= 1.0401


def test_equal_seeds_draw_alike_and_ranges_are_those_of_uniform_draws() -> None:
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        with without_weights(is_measured=True):
            found.append(initial_statistics(nn.Linear(400, 100).weight))
    assert found[0] == found[1]
    assert found[0] is not None and found[0].max is not None
    assert 0.0495 < found[0].max <= 0.05  # 1/sqrt(400)
    assert found[0].std == pytest.approx(0.05 / math.sqrt(3), rel=0.02)


@pytest.mark.parametrize("is_measured", [False, True])
def test_memory_as_it_is_found_is_no_statistic(is_measured: bool) -> None:
    """`torch.Tensor(3)` is no call that a mode sees, and what lies there may be anything."""
    made = torch.Tensor.__new__
    dirty = torch.full((4096,), 1e30)
    with without_weights(is_measured=is_measured):
        del dirty
        module = torch.nn.Module()
        module.found = torch.nn.Parameter(torch.Tensor(4096))
        module.nothing = torch.nn.Parameter(torch.Tensor())
        module.given = torch.nn.Parameter(torch.Tensor([1.0, 2.0, 6.0]))
        module.filled = torch.nn.Parameter(torch.Tensor(64, 64))
        module.filled.data.uniform_(-0.5, 0.5)
        module.zeros = torch.nn.Parameter(torch.Tensor(5))
        module.zeros.data.fill_(0)
    assert initial_statistics(module.found) is None
    assert initial_statistics(module.nothing) is None
    given = initial_statistics(module.given)
    assert given is not None
    assert (given.mean, given.min, given.max) == (3.0, 1.0, 6.0)
    filled, zeros = initial_statistics(module.filled), initial_statistics(module.zeros)
    assert filled is not None
    assert zeros is not None
    assert (filled.std, filled.max) == pytest.approx((0.2887, 0.5), rel=0.02)
    assert abs(zeros.mean or 0.0) < 0.1
    assert torch.Tensor.__new__ is made
    assert "__new__" not in vars(torch.Tensor)


def test_another_dtype_keeps_statistics() -> None:
    with without_weights():
        module = nn.Linear(4, 4)
    before = initial_statistics(module.weight)
    assert initial_statistics(module.to(torch.bfloat16).weight) == before


def test_running_variances_are_positive_and_not_constant() -> None:
    with without_weights():
        module = Model().eval()
    buffers = {
        each.source_name.rpartition("buffers_")[2]: each
        for each in inputs_by_role(capture_one(module, IDS), "buffer")
    }
    variance = buffers["running_var_"].statistics
    assert variance is not None and variance.std and variance.min and variance.min > 0
    assert buffers["positions_"].data is not None, "buffers keep their values"


def test_weights_come_back_after_a_capture() -> None:
    module = Model()
    before = [id(tensor) for tensor in module.state_dict(keep_vars=True).values()]
    with pytest.raises(ZeroDivisionError), fake_weights(module) as fakes:
        assert not has_weights(module)
        assert module.head.weight is module.embedding.weight
        assert fakes.originals[id(module.scale)].tolist() == [0.5] * 8
        raise ZeroDivisionError
    assert [id(tensor) for tensor in module.state_dict(keep_vars=True).values()] == before


def test_building_elsewhere_is_as_before() -> None:
    with without_weights():
        nn.Linear(2, 2)
    assert not nn.Linear(2, 2).weight.is_meta


def test_a_model_too_large_for_memory_is_captured() -> None:
    with without_weights():
        module = nn.Sequential(*(nn.Linear(60_000, 60_000) for _ in range(40)))
    wrapped = extract(name="test/large")(module.bfloat16())
    with torch.no_grad():
        output = wrapped(torch.zeros(1, 60_000, dtype=torch.bfloat16))
    assert output.shape == (1, 60_000)
    assert wrapped.samples[0].num_params == 40 * 60_000 * 60_001


def test_tensors_cached_by_a_module_are_constants_with_statistics() -> None:
    class Caching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4))
            self.cache: dict[str, torch.Tensor] = {}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if "scale" not in self.cache:
                self.cache["scale"] = self.weight * 2
            return x * self.cache["scale"]

    with without_weights():
        module = Caching()
    (constant,) = inputs_by_role(capture_one(module, torch.ones(4)), "constant")
    assert constant.source_name == "L_self_cachescale"
    assert constant.statistics is not None and not constant.statistics.is_measured


def test_the_experts_of_a_layer_take_no_memory_even_before_a_module_takes_them() -> None:
    with without_weights():
        experts = torch.nn.Parameter(torch.empty(2**12, 2**14, 2**10))  # 256 GiB
        torch.nn.init.normal_(experts, std=0.02)
        layer = torch.nn.Module()
        layer.experts = experts
        buffer = torch.empty(2**10)
    assert layer.experts.is_meta and not buffer.is_meta
    statistics = initial_statistics(layer.experts)
    assert statistics is not None and statistics.std == 0.02

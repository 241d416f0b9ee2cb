"""Each thing that a model can do to a tracer, and what the sample says of it."""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graphnet_datasets import materialize
from graphnet_datasets.analysis.hashes import signature_hash, structure_hash
from graphnet_datasets.errors import CaptureError
from graphnet_datasets.frameworks.torch.building.unchecked import check_operators
from graphnet_datasets.frameworks.torch.capture.dynamo import CaptureSettings, capture
from graphnet_datasets.frameworks.torch.extract import extract
from graphnet_datasets.sample import Statistics, Value
from graphnet_datasets.sample.arguments import Named, Ref
from graphnet_datasets.sample.symbols import evaluate

from .capturing import capture_one, inputs_by_role, op_named, run_captured, targets


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.dropout = nn.Dropout(0.25)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.norm(self.linear(x)).relu())


def test_a_module_gives_weights_operators_and_where_they_stand() -> None:
    module, x = nn.Sequential(Block()).eval(), torch.randn(3, 4)
    sample = capture_one(module, x, task="cv")
    assert targets(sample) == [
        "torch.nn.functional.linear",
        "torch.nn.functional.batch_norm",
        "torch.Tensor.relu",
        "torch.nn.functional.dropout",
    ]
    assert [op.module for op in sample.ops] == ["0.linear", "0.norm", "0", "0.dropout"]
    assert [op.results for op in sample.ops] == [(Value("float32", (3, 4)),)] * 4
    assert {each.source_name for each in inputs_by_role(sample, "parameter")} == {
        "L_self_modules_0_modules_linear_parameters_weight_",
        "L_self_modules_0_modules_linear_parameters_bias_",
        "L_self_modules_0_modules_norm_parameters_weight_",
        "L_self_modules_0_modules_norm_parameters_bias_",
    }
    assert len(inputs_by_role(sample, "input")) == 1
    assert sample.task == "cv"
    assert sample.provenance.model_name == "Sequential"
    assert sample.provenance.capture == "dynamo"
    assert sample.provenance.mode == "eval"
    assert torch.__version__.startswith(sample.provenance.framework_version)
    (output,) = run_captured(sample, module, [x])
    assert torch.equal(output, module(x))


class Repeats(nn.Module):
    """Has two sizes that depend on data."""

    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        repeated = torch.repeat_interleave(x, counts, dim=0)
        size = counts.max().item()
        torch._check(size >= 1)
        torch._check(size <= 3)
        return repeated.relu(), x.new_zeros(size)


def test_a_sample_holds_no_names_of_the_tracer() -> None:
    sample = capture_one(Repeats(), torch.randn(3, 2), torch.tensor([1, 2, 3]))
    messages = [op.args[1] for op in sample.ops if op.target.endswith("_assert_scalar.default")]
    prefix = "Runtime assertion failed for expression"
    assert messages == [f"{prefix} {text}" for text in ("u0 >= 0", "u1 >= 1", "u1 <= 3")]


def test_a_capture_of_a_capture_has_the_same_hash() -> None:
    arguments = torch.randn(3, 2), torch.tensor([1, 2, 3])
    sample = capture_one(Repeats(), *arguments)

    class Again(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.graph = materialize(sample, allow_unchecked_operators=True)

        def forward(self, *inputs: torch.Tensor) -> Any:
            return self.graph(*inputs)

    again = capture_one(Again(), *arguments)
    assert signature_hash(again) == signature_hash(sample)


def test_the_wrapper_is_the_module_in_every_other_way() -> None:
    module, x = Block().eval(), torch.randn(3, 4)
    wrapped = extract(name="test/wrapper")(module)
    assert wrapped.samples == []
    assert wrapped.eval() is wrapped
    assert wrapped.linear is module.linear
    assert wrapped.state_dict().keys() == module.state_dict().keys()
    first = wrapped(x)
    samples = wrapped.samples
    assert torch.equal(first, module(x))
    assert torch.equal(wrapped(torch.ones(7, 4)), module(torch.ones(7, 4)))
    assert wrapped.samples is samples, "only the first call is captured"


def test_a_decorated_class_captures_the_first_call_of_each_instance() -> None:
    @extract(name="test/class", task="nlp")
    class Doubling(nn.Module):
        def __init__(self, factor: float = 2.0) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

    twice, thrice = Doubling(), Doubling(factor=3.0)
    assert Doubling.__name__ == "Doubling"
    assert torch.equal(twice(torch.ones(2)), torch.full((2,), 2.0))
    assert torch.equal(thrice(torch.ones(2)), torch.full((2,), 3.0))
    assert [each.samples[0].ops[0].args for each in (twice, thrice)] == [
        (Ref(0), 2.0),
        (Ref(0), 3.0),
    ]


def test_objects_that_are_no_module_are_refused() -> None:
    with pytest.raises(CaptureError) as caught:
        extract(name="test/function")(torch.relu)
    assert str(caught.value) == (
        "`extract` accepts a `torch.nn.Module`, a subclass of it, or a Python function, not a "
        "`builtin_function_or_method`. Call it in a function and decorate the function."
    )


def test_autocast_regions_are_kept() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.linear(x)
            return y + self.linear(x)

    module, x = Mixed(), torch.randn(3, 4)
    sample = capture_one(module, x)
    enter, inside, leave = sample.ops[:3]
    assert enter.target == "torch.amp.autocast_mode._enter_autocast"
    assert enter.args[:3] == ("cpu", Named("dtype", "bfloat16"), True)
    assert inside.results == (Value("bfloat16", (3, 4)),)
    assert leave.target == "torch.amp.autocast_mode._exit_autocast"
    assert leave.args == (Ref(len(sample.inputs)),)
    assert sample.ops[3].results == (Value("float32", (3, 4)),)
    (output,) = run_captured(sample, module, [x])
    assert torch.equal(output, module(x))


@pytest.mark.parametrize("is_training", [False, True])
def test_dropout_records_whether_it_drops(is_training: bool) -> None:
    module = nn.Sequential(nn.Dropout(0.25)).train(is_training)
    sample = capture_one(module, torch.ones(8))
    assert sample.ops[0].args == (Ref(0), 0.25, is_training, False)
    assert sample.provenance.mode == ("train" if is_training else "eval")


def test_tied_weights_are_one_parameter() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(10, 4)
            self.head = nn.Linear(4, 10, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embedding(ids))

    sample = capture_one(Tied(), torch.tensor([[1, 2, 3]]))
    (weight,) = inputs_by_role(sample, "parameter")
    assert weight.source_name == "L_self_modules_embedding_parameters_weight_"
    position = sample.inputs.index(weight)
    assert Ref(position) in sample.ops[0].args and Ref(position) in sample.ops[1].args


def test_buffers_have_their_role_and_small_integer_buffers_their_elements() -> None:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("shift", torch.tensor([0.5, 1.5]))
            self.register_buffer("order", torch.tensor([1, 0]), persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + self.shift)[:, self.order]

    sample = capture_one(Shifted(), torch.randn(3, 2))
    shift, order = inputs_by_role(sample, "buffer")
    assert (shift.source_name, shift.statistics, shift.data) == (
        "L_self_buffers_shift_",
        Statistics(1.0, 0.5, 0.5, 1.5),
        None,
    )
    assert order.data == np.array([1, 0], "<i8").tobytes()


def test_none_and_dict_outputs_reach_the_caller_and_the_sample_holds_the_tensors() -> None:
    class Structured(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, Any]:
            return {"sum": x.sum(), "nothing": None, "pair": (x + 1, [x * 2])}

    wrapped = extract(name="test/structured")(Structured())
    outputs = wrapped(torch.ones(2))
    assert outputs["nothing"] is None and torch.equal(outputs["pair"][1][0], torch.full((2,), 2.0))
    (sample,) = wrapped.samples
    assert [sample.ops[ref.index - 1].target for ref in sample.outputs] == [
        "torch.Tensor.sum",
        "operator.add",
        "operator.mul",
    ]


def test_python_scalars_are_constants_unless_sizes_are_symbols() -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor, count: int, factor: float, flag: bool) -> torch.Tensor:
            return x * count * factor if flag else x

    static = capture_one(Scaled(), torch.ones(4), 3, 0.5, True)
    assert [op.args[1] for op in static.ops] == [3, 0.5]
    assert [each.role for each in static.inputs] == ["input"]
    dynamic = capture_one(Scaled(), torch.ones(4), 3, 0.5, True, dynamic=True)
    assert [each.role for each in dynamic.inputs] == ["input", "symbol"]
    assert dynamic.hints[dynamic.inputs[1].source_name] == 3
    assert [op.args[1] for op in dynamic.ops] == [Ref(1), 0.5]


class Windows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, int]:
        assert x.shape[0] < 100
        both = torch.cat([x, y])
        if x.shape[0] == y.shape[0]:
            both = both + 1
        return self.linear(both.reshape(-1, 2, 4)), x.shape[0] * 3


def test_dynamic_sizes_are_symbols_with_ranges_guards_and_expressions() -> None:
    module, data = Windows(), [torch.randn(6, 4), torch.randn(6, 4)]
    sample = capture_one(module, *data, dynamic=True)
    (symbol,) = sample.symbols
    assert (symbol.name, symbol.hint, symbol.lower, symbol.upper) == ("s0", 6, 2, 99)
    assert [each.value.shape for each in inputs_by_role(sample, "input")] == [("s0", 4)] * 2
    assert op_named(sample, "torch.cat").results == (Value("float32", ("2*s0", 4)),)
    assert op_named(sample, "torch.nn.functional.linear").results == (
        Value("float32", ("s0", 2, 4)),
    )
    relations = [f"{each.left} {each.relation} {each.right}" for each in sample.constraints]
    assert "s0 < 100" in relations
    for size in (6, 10):  # the graph holds for other sizes too
        data = [torch.randn(size, 4), torch.randn(size, 4)]
        output, tripled = run_captured(sample, module, data, {"s0": size})
        assert torch.equal(output, module(*data)[0]) and tripled == 3 * size
        assert evaluate("2*s0", {"s0": size}) == 2 * size


def test_a_marked_dimension_alone_becomes_a_symbol() -> None:
    x = torch.randn(6, 4)
    torch._dynamo.mark_dynamic(x, 0)
    sample = capture_one(nn.ReLU(), x)
    assert sample.inputs[0].value.shape == ("s0", 4)
    assert sample.is_dynamic


def test_plain_tensors_of_a_module_keep_their_sizes_when_those_of_data_are_symbols() -> None:
    class Biased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = torch.arange(8.0).reshape(2, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.bias.sum(0)

    sample = capture_one(Biased(), torch.randn(6, 4), dynamic=True)
    (constant,) = inputs_by_role(sample, "constant")
    assert constant.value.shape == (2, 4)
    assert constant.data == np.arange(8, dtype="<f4").tobytes()


def test_sizes_that_depend_on_elements_are_unknown() -> None:
    class Masked(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[x > 0] * x.sum().item()

    module, x = Masked(), torch.randn(6)
    sample = capture_one(module, x)
    assert sample.ops[-1].results == (Value("float32", None),)
    (output,) = run_captured(sample, module, [x])
    assert torch.equal(output, module(x))


def test_a_message_to_a_logger_breaks_no_graph() -> None:
    logger = logging.getLogger("talks")

    class Talks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x.relu()
            logger.warning("x has %d rows", x.shape[0])
            return x + 1

    module, x = Talks(), torch.randn(3, 4)
    wrapped = extract(name="test/talks")(module)
    wrapped(x)
    (sample,) = wrapped.samples
    assert targets(sample) == ["torch.Tensor.relu", "operator.add"]
    (output,) = run_captured(sample, module, [x])
    assert torch.equal(output, module(x))


def test_a_graph_break_gives_linked_samples_with_the_reason() -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.second = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.first(x)
            torch._dynamo.graph_break()
            return self.second(x)

    module, x = Broken(), torch.randn(3, 4)
    wrapped = extract(name="test/broken")(module)
    with torch.no_grad():
        output = wrapped(x)
    assert [sample.id for sample in wrapped.samples] == [
        "test/broken/subgraph_0",
        "test/broken/subgraph_1",
    ]
    links = [sample.provenance for sample in wrapped.samples]
    assert [(p.parent_id, p.graph_index, p.graph_count) for p in links] == [
        ("test/broken", 0, 2),
        ("test/broken", 1, 2),
    ]
    assert "graph_break" in links[0].break_reason
    assert links[1].break_reason == ""
    assert [
        each.source_name
        for sample in wrapped.samples
        for each in inputs_by_role(sample, "parameter")
    ] == [
        f"L_self_modules_{layer}_parameters_{name}_"
        for layer in ("first", "second")
        for name in ("weight", "bias")
    ]
    (middle,) = run_captured(wrapped.samples[0], module, [x])
    (last,) = run_captured(wrapped.samples[1], module, [middle])
    assert torch.equal(last, output)


def test_constants_of_the_program_are_stored() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.tensor([[0.25, 0.5]])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.table + torch.tensor([1.0, 2.0])

    sample = capture_one(Weighted(), torch.randn(3, 2))
    (constant,) = inputs_by_role(sample, "constant")
    assert constant.data == np.array([0.25, 0.5], "<f4").tobytes()
    assert targets(sample) == ["operator.mul", "torch.tensor", "operator.add"]


def test_in_place_operators_stay_in_place_and_statistics_are_those_before_the_call() -> None:
    class InPlace(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x += 1
            x[:, 0] = 5.0
            x.mul_(2)
            return x.relu_()

    x = torch.zeros(2, 3)
    sample = capture_one(InPlace(), x)
    assert targets(sample) == [
        "operator.iadd",
        "operator.setitem",
        "torch.Tensor.mul_",
        "torch.Tensor.relu_",
    ]
    assert sample.inputs[0].statistics == Statistics(0.0, 0.0, 0.0, 0.0)
    assert sample.ops[1].results == ()
    assert x[0].tolist() == [10.0, 2.0, 2.0], "the call itself happens once"
    data = torch.zeros(2, 3)
    (output,) = run_captured(sample, InPlace(), [data])
    assert torch.equal(output, x) and torch.equal(data, x)


def test_a_result_that_a_call_writes_elsewhere_is_copied_there() -> None:
    class Sums(nn.Module):
        def forward(self, x: torch.Tensor, is_of_elements: bool) -> torch.Tensor:
            x = x[x > 1] if is_of_elements else x
            sums = x.new_zeros(x.shape[0] + 1)
            torch.cumsum(x, 0, out=sums.narrow(0, 1, x.shape[0]))
            return sums

    for is_of_elements in (False, True):
        sample = capture_one(Sums(), torch.arange(5.0), is_of_elements)
        assert "torch.Tensor.copy_" in targets(sample)
        check_operators(sample, allow_unchecked_operators=False)
    sample = capture_one(Sums(), torch.arange(5.0), False)
    (sums,) = run_captured(sample, Sums(), [torch.arange(4.0, -1.0, -1.0), False])
    assert sums.tolist() == [0.0, 4.0, 7.0, 9.0, 10.0, 10.0]


def test_random_operators_are_captured_as_such() -> None:
    class Noisy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.rand_like(x) + torch.randn(3)

    module, x = Noisy(), torch.zeros(3)
    sample = capture_one(module, x)
    assert {"torch.rand_like", "torch.randn"} <= set(targets(sample))
    torch.manual_seed(1)
    expected = module(x)
    torch.manual_seed(1)
    (output,) = run_captured(sample, module, [x])
    assert torch.equal(output, expected)


def test_the_warm_up_call_leaves_the_random_state_alone() -> None:
    module, x = nn.Dropout(0.5), torch.ones(64)
    torch.manual_seed(2)
    expected = module(x)
    torch.manual_seed(2)
    assert torch.equal(extract(name="test/dropout")(module)(x), expected)


def test_bfloat16_is_captured_as_it_is() -> None:
    module, x = nn.Linear(4, 4).bfloat16(), torch.randn(3, 4).bfloat16()
    sample = capture_one(module, x)
    assert [each.value.dtype for each in sample.inputs] == ["bfloat16"] * 3
    assert sample.ops[0].results == (Value("bfloat16", (3, 4)),)
    (output,) = run_captured(sample, module, [x])
    assert torch.equal(output, module(x))


def test_attributes_of_tensors_are_operators_of_their_own() -> None:
    class Parts(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.real + x.imag.mT

    module, x = Parts(), torch.randn(3, 3, dtype=torch.complex64)
    sample = capture_one(module, x)
    assert op_named(sample, "torch.Tensor.real").args == (Ref(0),)
    (output,) = run_captured(sample, module, [x])
    assert torch.equal(output, module(x))


def test_a_size_made_of_symbols_is_a_tuple() -> None:
    class Reshaped(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.flatten(0, 1).view(torch.Size([x.shape[0], x.shape[1], -1]))

    module = Reshaped()
    sample = capture_one(module, torch.randn(3, 4, 5), dynamic=True)
    x = torch.randn(2, 6, sample.hints.get("s2", 5))
    sizes = {name: x.shape[index] for index, name in enumerate(sample.hints)}
    (output,) = run_captured(sample, module, [x], sizes)
    assert torch.equal(output, x)


def test_strides_are_recorded_where_a_tensor_is_not_contiguous() -> None:
    sample = capture_one(nn.ReLU(), torch.randn(4, 3).t())
    assert sample.inputs[0].value == Value("float32", (3, 4), (1, 3))


def test_an_operator_outside_the_table_is_named() -> None:
    class Foreign(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.as_tensor(np.linalg.norm(np.ones(3)))

    with pytest.raises(CaptureError) as caught:
        capture_one(Foreign(), torch.ones(3))
    assert re.fullmatch(
        r"The graph of `test/module` cannot be captured: It calls `\w+` of NumPy\. Call the "
        r"function of torch, or compute constants in the constructor of the module\.",
        str(caught.value),
    )


def test_the_error_names_an_unsupported_control_flow_operator() -> None:
    class Mapping(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch._higher_order_ops.map(lambda row, y: row * y, x, torch.ones(3))

    with pytest.raises(CaptureError, match=r"map_impl` is not in the operator table"):
        capture_one(Mapping(), torch.ones(2, 3), warm_up=False)


def test_a_call_without_tensors_raises_a_capture_error() -> None:
    class Counting(nn.Module):
        def forward(self, count: int) -> int:
            return count + 1

    with pytest.raises(CaptureError) as caught:
        capture_one(Counting(), 3)
    assert str(caught.value) == (
        "No graph was captured for `test/module`. Torch reports no reason: it traced no function "
        "that computes on tensors. Check that the module computes on tensors, and that neither it "
        "nor its caller is disabled with `torch.compiler.disable`."
    )


def test_an_error_of_the_module_itself_stays_the_error() -> None:
    class Refusing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError(f"I take no tensors of rank {x.ndim}.")

    with pytest.raises(ValueError, match=r"^I take no tensors of rank 1\.$"):
        capture_one(Refusing(), torch.ones(3))


def test_a_class_captured_many_times_never_falls_back_to_eager() -> None:
    for size in range(1, 20):
        assert capture_one(nn.Linear(size, 1), torch.ones(1, size)).num_params == size + 1


class _Adding(nn.Module):
    def __init__(self, *, breaks: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.breaks = breaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        if self.breaks:
            torch._dynamo.graph_break()
        return self.linear(x)


def test_the_structure_alone_is_that_of_a_capture_that_runs_and_runs_nothing() -> None:
    module, x = _Adding(breaks=False), torch.zeros(3, 2)
    settings = CaptureSettings("test/adding", warm_up=False, is_structure_alone=True)
    outputs, (sample,) = capture(module, module.__call__, (x,), {}, settings)
    assert outputs is None
    assert x.abs().max() == 0
    assert {each.statistics for each in sample.inputs} == {None}
    wanted = capture_one(module, torch.zeros(3, 2), warm_up=False)
    assert structure_hash(sample) == structure_hash(wanted)


def test_a_graph_that_another_follows_is_run_where_the_structure_alone_is_asked_for() -> None:
    module, x = _Adding(breaks=True), torch.zeros(3, 2)
    settings = CaptureSettings("test/adding", warm_up=False, is_structure_alone=True)
    outputs, samples = capture(module, module.__call__, (x,), {}, settings)
    assert [each.num_ops for each in samples] == [1, 1]
    assert samples[0].provenance.break_reason
    assert x.min() == 1
    assert outputs is not None

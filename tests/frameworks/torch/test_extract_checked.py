"""A capture is the whole call or an error, and leaves everything as one call does."""

from __future__ import annotations

import collections
import contextlib
import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graphnet_datasets.errors import CaptureError
from graphnet_datasets.frameworks.torch.capture.export import extract_export
from graphnet_datasets.frameworks.torch.extract import extract
from graphnet_datasets.sample import Sample

from .capturing import capture_one, run_captured, targets


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def capture(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Any, list[Sample]]:
    wrapped = extract(name="test/module")(module)
    return wrapped(*args, **kwargs), wrapped.samples


class EarlyExit(nn.Module):
    def __init__(self, block: type[nn.Module] = nn.Linear) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block(4, 4) for _ in range(3))
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x).relu() + 0.5
            if x.sum() > 1e6:
                break
        return self.head(x.exp())


class Affine(nn.Module):
    def __init__(self, num_inputs: int, num_outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_outputs, num_inputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.T


@pytest.mark.parametrize("block", [nn.Linear, Affine])
def test_a_loop_that_torch_runs_outside_of_graphs_is_an_error_with_its_reason(
    block: type[nn.Module],
) -> None:
    with pytest.raises(CaptureError, match="Torch reports: Data-dependent branching") as caught:
        capture(EarlyExit(block), torch.randn(2, 4))
    assert "no tensor operation" not in str(caught.value)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_disabled_layer_is_an_error_with_the_reason(position: int) -> None:
    layers = [Affine(4, 4) for _ in range(3)]
    layers[position].forward = torch.compiler.disable(layers[position].forward)  # type: ignore[method-assign]

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(layers)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a, b, c = self.layers
            return c(b(a(x)).relu())

    with pytest.raises(
        CaptureError, match=r"Skip calling `torch\.compiler\.disable\(\)`d function"
    ) as caught:
        capture(Chain(), torch.randn(2, 4))
    assert " at 0x" not in str(caught.value)


def test_each_call_of_a_graph_is_a_piece() -> None:
    class Blocks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(Affine(4, 4) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch._dynamo.graph_break()
            for block in self.blocks:
                x = block(x)
                torch._dynamo.graph_break()
            return x

    module, x = Blocks(), torch.randn(2, 4)
    try:
        outputs, samples = capture(module, x)
    except CaptureError as error:
        assert "Torch reports: " in str(error)
        return
    for sample in samples:
        (x,) = run_captured(sample, module, [x])
    assert torch.equal(x, outputs)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x * self.count


class Rebinding(Counter):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count = self.count + 1
        return x * self.count


class PythonCounter(nn.Module):
    total = 0

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.seen: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        type(self).total += 1
        self.seen.append(x)
        return x * self.count + len(self.seen)


class Drawing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, 0.5) + torch.rand_like(x)


class WritingToItsInput(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(1).sin()


@pytest.mark.parametrize(
    "module",
    [
        Counter(), Rebinding(), PythonCounter(), Drawing(), WritingToItsInput(),
        nn.BatchNorm1d(4).train(), nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)).train(),
    ],
    ids=lambda module: type(module).__name__,
)  # fmt: skip
def test_outputs_and_state_are_those_of_one_call(module: nn.Module) -> None:
    x = torch.randn(2, 4)
    PythonCounter.total = 0
    reference, data = copy.deepcopy(module), x.clone()
    generators = torch.get_rng_state(), random.getstate(), np.random.get_state()
    expected = reference(data)
    after = torch.get_rng_state(), random.getstate(), np.random.get_state()
    torch.set_rng_state(generators[0])
    PythonCounter.total = 0
    outputs, (sample,) = capture(module, x)
    assert torch.equal(outputs, expected)
    assert torch.equal(x, data)
    for (name, tensor), other in zip(
        module.state_dict().items(), reference.state_dict().values(), strict=True
    ):
        assert torch.equal(tensor, other), name
    assert torch.equal(torch.get_rng_state(), after[0])
    assert random.getstate() == after[1]
    assert np.array_equal(np.random.get_state()[1], after[2][1])
    if isinstance(module, PythonCounter):
        assert (module.count, PythonCounter.total, len(module.seen)) == (1, 1, 1)
    assert sample.num_ops


def test_gradients_flow_through_the_outputs_of_a_captured_call() -> None:
    module, x = Counter(), torch.randn(2, 4, requires_grad=True)
    outputs, _ = capture(module, x)
    outputs.sum().backward()
    assert x.grad is not None and torch.equal(x.grad, torch.ones(2, 4))
    assert module.count == 1


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, w: torch.Tensor, power: int) -> Any:
        ctx.save_for_backward(a, w)
        return a * w**power, a + 1

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        a, w = ctx.saved_tensors
        return grads[0] * w + grads[1], (grads[0] * a).sum(), None


def test_an_autograd_function_is_its_forward_graph() -> None:
    class UsesFunction(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.full((), 3.0))

        def forward(self, a: torch.Tensor) -> torch.Tensor:
            y, z = Scaled.apply(a, self.w, 2)
            return y - z

    module, x = UsesFunction(), torch.randn(2, 4)
    outputs, (sample,) = capture(module, x)
    assert targets(sample) == ["operator.pow", "operator.mul", "operator.add", "operator.sub"]
    (replayed,) = run_captured(sample, module, [x])
    assert torch.equal(replayed, outputs)


def test_a_graph_module_is_captured() -> None:
    module = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    assert capture_one(module, torch.randn(2, 4)).num_ops == 2


def test_the_autocast_of_the_caller_is_part_of_the_graph() -> None:
    module, x = nn.Linear(4, 4), torch.randn(2, 4)
    wrapped = extract(name="test/module")(module)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = wrapped(x)
    (sample,) = wrapped.samples
    (replayed,) = run_captured(sample, module, [x])
    assert replayed.dtype == outputs.dtype == torch.bfloat16
    assert torch.equal(replayed, outputs)


class Decorated(nn.Linear):
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)


class Broken(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = super().forward(x)
        torch._dynamo.graph_break()
        return super().forward(x)


@pytest.mark.parametrize("way", ["extract", "export"])
@pytest.mark.parametrize("kind", [Decorated, Broken])
def test_every_graph_opens_the_autocast_around_it(kind: type[nn.Linear], way: str) -> None:
    module, x = kind(4, 4), torch.randn(2, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if way == "extract":
            outputs, samples = capture(module, x)
        else:
            outputs, samples = module(x), [extract_export(module, (x,), name="test/module")]
    for sample in samples:
        (x,) = run_captured(sample, module, [x])
    assert x.dtype == outputs.dtype == torch.bfloat16
    assert torch.equal(x, outputs)


def test_a_graph_without_gradients_says_so() -> None:
    class Frozen(nn.Linear):
        @torch.no_grad()
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x)

    _, (sample,) = capture(Frozen(4, 4), torch.randn(2, 4))
    grad_mode = "torch._C._set_grad_enabled"
    assert targets(sample) == [grad_mode, "torch.nn.functional.linear", grad_mode]
    assert targets(capture_one(Frozen(4, 4), torch.randn(2, 4))) == ["torch.nn.functional.linear"]


def test_views_of_arguments_and_weights_are_outputs() -> None:
    class Views(nn.Linear):
        def forward(self, x: torch.Tensor) -> Any:
            return x.mT, x.real, self.weight.T, x.sin()

    module, x = Views(4, 4), torch.randn(2, 4, dtype=torch.complex64)
    outputs, (sample,) = capture(module, x)
    replayed = run_captured(sample, module, [x])
    assert all(map(torch.equal, replayed, outputs)) and len(replayed) == len(outputs)


@pytest.mark.parametrize("base", [2, 0.5, -2, -0.5])
def test_a_power_of_a_number_stays_in_one_graph(base: float) -> None:
    from graphnet_datasets.frameworks import make_inputs, materialize

    class Power(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return base**x

    module, x = Power(), torch.tensor([1.0, 2.0, 3.0])
    sample = capture_one(module, x)
    runnable = materialize(sample)
    assert torch._dynamo.explain(runnable)(**make_inputs(sample)).graph_count == 1
    assert torch.equal(runnable(x)[0], module(x))
    assert targets(capture_one(runnable, x)) == targets(sample) == ["operator.pow"]


def test_an_argument_that_an_export_specializes_on_is_no_input() -> None:
    class Mode(nn.Module):
        def forward(self, x: torch.Tensor, mode: str = "mean") -> torch.Tensor:
            return x.mean() if mode == "mean" else x.sum()

    sample = extract_export(Mode(), (torch.ones(3), "sum"), name="test/mode")
    assert targets(sample) == ["torch.ops.aten.sum.default"]
    assert len(sample.inputs) == 1


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_a_sparse_input_is_refused(layout: torch.layout) -> None:
    class Product(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.sparse.mm(a, b)

    args = (torch.eye(4).to_sparse(layout=layout), torch.ones(4, 2))
    with pytest.raises(CaptureError, match=rf"has the layout {layout}"):
        extract_export(Product(), args, name="test/sparse")
    with pytest.raises(CaptureError):
        capture(Product(), *args)


def test_an_export_leaves_the_module_as_it_was() -> None:
    module = Counter()
    state = torch.get_rng_state()
    extract_export(module, (torch.ones(3),), name="test/export")
    assert module.count == 0
    assert torch.equal(torch.get_rng_state(), state)


def test_graphs_that_compute_something_else_are_refused() -> None:
    class Generating(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + next(numbers)

    numbers = iter(range(1, 100))
    with pytest.raises(CaptureError, match=r"`outputs` differs .* A second call from the same"):
        capture(Generating(), torch.ones(3))


def test_the_padding_mask_of_an_encoder_layer_runs_again() -> None:
    from graphnet_datasets.frameworks import make_inputs, materialize

    module = nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
    mask = torch.tensor([[False] * 5, [False, False, False, True, True]])
    wrapped = extract(name="test/module")(module)
    with torch.no_grad():
        wrapped(torch.randn(2, 5, 8), src_key_padding_mask=mask)
    (sample,) = wrapped.samples
    assert "torch._transformer_encoder_layer_fwd" in targets(sample)
    (output,) = materialize(sample)(**make_inputs(sample))
    assert output.shape == (2, 5, 8)


CONTEXTS = {
    "grad": contextlib.nullcontext, "no_grad": torch.no_grad, "inference": torch.inference_mode,
}  # fmt: skip
PADDED = torch.tensor([[False] * 5, [False, False, False, True, True]])
CAUSAL = torch.ones(5, 5).triu(1).bool()


def encoder(**options: Any) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, 2, **options).eval()


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    ("module", "args", "kwargs"),
    [
        (encoder(enable_nested_tensor=False), [(2, 5, 8)], {"src_key_padding_mask": PADDED}),
        (encoder(), [(2, 5, 8)], {"mask": CAUSAL, "src_key_padding_mask": PADDED}),
        (
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(),
            [(2, 5, 8)],
            {"src_key_padding_mask": PADDED},
        ),
        (
            nn.MultiheadAttention(8, 2, batch_first=True).eval(),
            [(2, 5, 8)] * 3,
            {"key_padding_mask": PADDED, "need_weights": False},
        ),
        (
            nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval(),
            [(2, 5, 8), (2, 4, 8)],
            {"memory_key_padding_mask": PADDED},
        ),
    ],
    ids=["encoder", "encoder with causal mask", "layer", "attention", "transformer"],
)
def test_transformers_are_captured_in_every_mode(
    module: nn.Module, args: list[tuple[int, ...]], kwargs: dict[str, Any], context: str
) -> None:
    first, *others = [torch.randn(shape) for shape in args]
    inputs = [first, *(others if len(set(args)) > 1 else [first] * len(others))]
    with CONTEXTS[context]():
        expected = module(*inputs, **kwargs)
        outputs, samples = capture(module, *inputs, **kwargs)
    assert samples
    for actual, other in zip(flat(outputs), flat(expected), strict=True):
        assert torch.equal(actual, other)


def flat(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else [*filter(torch.is_tensor, value)]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_module_that_computes_something_else_in_a_trace_is_refused_with_the_reason() -> None:
    class Asking(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sin() if torch.compiler.is_compiling() else x.cos()

    with pytest.raises(CaptureError, match=r"while `torch\.compiler\.is_compiling\(\)` is true"):
        capture(Asking(), torch.ones(3))
    with pytest.raises(CaptureError, match=r"while `torch\.compiler\.is_compiling\(\)` is true"):
        extract_export(Asking(), (torch.ones(3),), name="test/asking")
    with torch.no_grad(), pytest.raises(CaptureError, match="`enable_nested_tensor=False`"):
        capture(encoder(), torch.randn(2, 5, 8), src_key_padding_mask=PADDED)
    assert not torch.compiler.is_compiling()


def test_a_branch_of_a_function_of_torch_breaks_the_graph_there() -> None:
    outputs, samples = capture(encoder(), torch.randn(2, 5, 8), mask=CAUSAL)
    assert outputs.shape == (2, 5, 8)
    assert len(samples) == 3
    assert "item()" in str(samples[0].provenance.break_reason)


def test_problems_that_torch_logs_are_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    marked = torch.randn(2, 4)
    torch._dynamo.mark_dynamic(marked, 1)
    with pytest.raises(CaptureError):
        capture(nn.Linear(4, 3), marked)
    capture(encoder(), torch.randn(2, 5, 8), mask=CAUSAL)
    assert capfd.readouterr() == ("", "")


def test_a_marked_dimension_that_is_a_constant_is_named() -> None:
    x = torch.randn(2, 4)
    torch._dynamo.mark_dynamic(x, 1)
    with pytest.raises(
        CaptureError, match=r"dimension 1 of `x` is marked .* works with the size 4 only\. Remove"
    ):
        capture(Affine(4, 3), x)
    single = torch.randn(1, 4)
    torch._dynamo.mark_dynamic(single, 0)
    with pytest.raises(CaptureError, match=r"dimension 0 of `L_x_` .* the constant 1"):
        capture(Affine(4, 3), single)
    unbacked = torch.randn(2, 4)
    torch._dynamo.decorators.mark_unbacked(unbacked, 0)
    with pytest.raises(CaptureError, match=r"has no value in the trace\. Mark .* instead of"):
        capture(Affine(4, 3), unbacked)
    with pytest.raises(CaptureError, match="the size `n` is marked as dynamic"):
        extract_export(
            Affine(4, 3),
            (torch.randn(2, 4),),
            name="test/affine",
            dynamic_shapes={"x": {1: torch.export.Dim("n")}},
        )


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_input_is_refused_before_the_call(layout: torch.layout) -> None:
    class Counting(nn.Module):
        calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x * 2

    nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=layout)
    module = Counting()
    with pytest.raises(CaptureError, match=r"takes a nested tensor .* \(`x\.to_padded_tensor"):
        capture(module, nested)
    with pytest.raises(CaptureError, match=r"takes a nested tensor .* \(`x\.to_padded_tensor"):
        extract_export(module, (nested,), name="test/nested")
    assert module.calls == 0


def test_elements_that_are_indices_run_again() -> None:
    from graphnet_datasets.frameworks import make_inputs, materialize

    class Picking(nn.Module):
        def forward(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
            return torch.stack([x[row] for row in rows.tolist()])

    module, x, rows = Picking(), torch.randn(3, 4), torch.tensor([2, 0])
    sample = capture_one(module, x, rows)
    assert torch.equal(run_captured(sample, module, [rows, x])[0], x[rows])
    assert materialize(sample)(**make_inputs(sample))[0].shape == (2, 4)


@torch.compiler.disable
def _mean(x: torch.Tensor) -> float:
    return float(x.detach().mean())


class UsesNumbers(nn.Linear):
    def __init__(self, use: Callable[[Any, torch.Tensor], torch.Tensor]) -> None:
        super().__init__(4, 4)
        self.use = use

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.use(super().forward, x)


@pytest.mark.parametrize(
    "use",
    [
        lambda layer, x: layer(x + _mean(x)),
        lambda layer, x: layer(x * 2) * _mean(x),
        lambda layer, x: layer(torch.stack([torch.tensor(row) for row in x.tolist()])),
        lambda layer, x: layer(x) * (sum(x.tolist()[0]) / 4),
    ],
    ids=["function", "function after an operator", "list", "sum of a list"],
)
def test_numbers_that_would_be_constants_are_refused(use: Callable[..., torch.Tensor]) -> None:
    with pytest.raises(
        CaptureError, match=r"is valid only for the number .* Torch reports: (Skip|Tensor)"
    ):
        capture(UsesNumbers(use), torch.randn(2, 4))


def test_numbers_that_no_graph_uses_are_ignored() -> None:
    def use(layer: Any, x: torch.Tensor) -> torch.Tensor:
        scale = 4**-0.5
        _mean(x)
        return layer(x) * scale

    x = torch.randn(2, 4)
    module = UsesNumbers(use)
    output, samples = capture(module, x)
    assert torch.equal(output, module(x))
    assert [targets(sample) for sample in samples] == [
        ["torch.nn.functional.linear", "operator.mul"]
    ]


@pytest.mark.parametrize(
    ("scale", "name"), [(lambda: np.sqrt(8), "sqrt"), (lambda: np.float32(2), "float32")]
)
def test_a_function_of_numpy_is_an_error_that_names_it(scale: Callable[[], Any], name: str) -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / scale()

    with pytest.raises(CaptureError, match=rf"It calls `{name}` of NumPy. Call the function"):
        capture(Scaled(), torch.ones(3))


@pytest.mark.parametrize("base", [np.float32(2), np.float64(2), np.int64(2)])
def test_a_power_of_a_number_of_numpy_is_one_operator(base: Any) -> None:
    class Power(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = base

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.base**x

    sample = capture_one(Power(), torch.ones(3))
    assert "builtins.pow" not in targets(sample)
    assert sample.num_ops <= 2


def test_a_number_that_python_draws_is_no_tensor_from_elsewhere() -> None:
    class Drawing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sin() * random.randint(1, 100) + random.choice([1, 2, 3])  # noqa: S311

    random.seed(0)
    outputs, samples = capture(Drawing(), torch.ones(3))
    after = random.getstate()
    random.seed(0)
    assert torch.equal(Drawing()(torch.ones(3)), outputs)
    assert random.getstate() == after
    assert samples


def test_a_module_that_is_compiled_already_is_captured_as_the_original() -> None:
    module, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(2, 4)
    sample = capture_one(torch.compile(module, backend="eager"), x)  # type: ignore[arg-type]
    assert sample.num_ops == 2
    assert sample.provenance.model_name == "Sequential"


def test_modules_that_torch_does_not_trace_are_errors_with_its_reason() -> None:
    disabled = Affine(4, 4)
    disabled.forward = torch.compiler.disable(disabled.forward)  # type: ignore[method-assign]
    with pytest.raises(CaptureError, match=r"forward` is wrapped with `torch\.compiler\.disable`"):
        capture(disabled, torch.randn(2, 4))
    with pytest.raises(CaptureError, match=r"Torch reports: torch\.jit\.script/freeze modules"):
        capture(torch.jit.script(nn.Linear(4, 4)), torch.randn(2, 4))


def test_a_break_before_the_first_operator_is_an_error_with_its_reason() -> None:
    module = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5])
    reason = r"Torch reports: .*Could not guard on data-dependent expression .*row_indices\.numel"
    with pytest.raises(CaptureError, match=reason) as caught:
        capture(module, torch.randn(3, 8), torch.tensor([0, 7, 19]))
    assert "TORCH_LOGS" not in str(caught.value)


def test_hooks_are_part_of_the_graph() -> None:
    module, x = Affine(4, 4), torch.randn(2, 4)
    module.register_forward_pre_hook(
        lambda _module, args, kwargs: ((args[0] * 2,), kwargs), with_kwargs=True
    )
    module.register_forward_hook(lambda _module, _args, output: output + 1)
    sample = capture_one(module, x)
    assert targets(sample)[0] == "operator.mul" and targets(sample)[-1] == "operator.add"


def test_tied_weights_are_exported() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(10, 4)
            self.head = nn.Linear(4, 10, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embedding(ids))

    assert extract_export(Tied(), (torch.tensor([1, 2]),), name="test/tied").num_ops == 2


def test_the_transpose_of_a_matrix_is_exported() -> None:
    sample = extract_export(Affine(4, 2), (torch.randn(3, 4),), name="test/affine")
    assert "torch.ops.aten.numpy_T.default" in targets(sample)


def test_an_argument_that_an_export_keeps_as_a_constant_is_refused() -> None:
    class Jacobian(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.func.jacrev(lambda row: row * row.sum())(x)

    with pytest.raises(CaptureError, match="of which torch traced no elements"):
        extract_export(Jacobian(), (torch.ones(3),), name="test/jacobian")


@pytest.mark.parametrize("is_written", [False, True])
def test_a_write_to_memory_that_two_inputs_share_is_refused(is_written: bool) -> None:
    class Shifting(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            (x if is_written else x.clone()).add_(1)
            return y + torch.rand(4)

    rows = torch.randn(4, 4)
    calls = (
        lambda: capture(Shifting(), rows[:2], rows[1:]),
        lambda: extract_export(Shifting(), (rows[:2], rows[1:]), name="test/module"),
    )
    for call in calls:
        outcome = pytest.raises(CaptureError, match="shares memory with another one")
        with outcome if is_written else contextlib.nullcontext():
            call()
    capture(Shifting(), rows[:2], rows[2:])


class Registry(collections.OrderedDict[str, Any]):
    """A dictionary of factories that makes an object at each access, and is never written to."""

    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(key)()

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self:
            raise KeyError(key)
        super().__setitem__(key, value)


def test_computing_containers_are_left_alone() -> None:
    class Activated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.registry = Registry(relu=nn.ReLU)
            self.calls: list[int] = []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls.append(1)
            return self.registry["relu"](x)

    module = Activated()
    capture(module, torch.ones(3))
    assert dict.__getitem__(module.registry, "relu") is nn.ReLU
    assert module.calls == [1]


def test_a_capture_without_weights_says_that_it_is_unchecked() -> None:
    from graphnet_datasets import without_weights

    with without_weights():
        light = nn.Linear(4, 4)
    assert capture_one(light, torch.ones(2, 4)).provenance.metadata == '{"is_checked": false}'
    assert capture_one(nn.Linear(4, 4), torch.ones(2, 4)).provenance.metadata == "{}"

"""A model with operators of `torch.library` goes the whole way, and nothing of it runs unasked."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from graphnet_datasets import Sample, extract, load_dataset, make_inputs, materialize, write_table
from graphnet_datasets.analysis.hashes import signature_hash, structure_hash
from graphnet_datasets.directory import read_directory, write_directory
from graphnet_datasets.errors import CaptureError, MaterializeError, UntrustedCodeError
from graphnet_datasets.frameworks.torch.building import custom_operators
from graphnet_datasets.frameworks.torch.costs import measure
from graphnet_datasets.sample import CustomOperator, Input, Op, Value, hash_source
from graphnet_datasets.sample.arguments import Ref

from .custom import Model, NotAlone

SOURCE = """\
import math
import torch
DTYPE = torch.float32
FACTOR = 1.5


def scale_and_shift(x, by, parts=2):
    \"\"\"Return the parts of a tensor, scaled and shifted.\"\"\"
    scaled = _shifted(x * FACTOR, by)
    return [part.clone() for part in scaled.chunk(parts)]


def _shifted(x, by):
    \"\"\"Return what the operator below needs: a function of its own file.\"\"\"
    return x.to(DTYPE) + by * math.pi


def scale_and_shift_fake(x, by, parts=2):
    return [torch.empty_like(part) for part in x.chunk(parts)]
"""


@pytest.fixture(scope="module")
def captured() -> tuple[Sample, torch.Tensor, torch.Tensor]:
    """Return the sample of the model, an input of it and what the live model gives for it."""
    torch.manual_seed(0)
    model = Model().eval()
    x = torch.randn(6, 4)
    wrapped: Any = extract(name="test/custom-operators")(model)
    with torch.no_grad():
        expected = wrapped(x)
    (sample,) = wrapped.samples
    return sample, x, expected


def made(source: str, schema: str = "(Tensor x) -> Tensor", name: str = "mylib::act") -> Sample:
    value = Value("float32", (2, 3))
    operator = CustomOperator(name, schema, source, hash_source(source))
    return Sample(
        "test/made", "torch", "other", (Input("input", value),),
        (Op(f"torch.ops.{name.replace('::', '.')}.default", (Ref(0),), results=(value,)),),
        (Ref(1),), custom_operators=(operator,),
    )  # fmt: skip


def test_an_operator_is_captured_with_all_that_its_source_needs(captured: Any) -> None:
    sample = captured[0]
    first, second = sample.custom_operators
    assert (first.name, second.name) == ("graphnet_tests::scale_and_shift", "graphnet_tests::clip")
    assert first.source == SOURCE
    assert first.schema == "(Tensor x, float by, SymInt parts=2) -> Tensor[]"
    assert first.is_intact
    targets = [op.target for op in sample.ops if "graphnet_tests" in op.target]
    assert targets == [
        "torch.ops.graphnet_tests.scale_and_shift.default",
        *["torch.ops.graphnet_tests.clip.default"] * 2,
    ]


def test_it_goes_the_whole_way(
    captured: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sample, x, expected = captured
    path = write_table([sample], tmp_path / "one.parquet")
    loaded = Sample.from_row(load_dataset(path, split="train")[0])
    assert loaded == sample
    (read,) = read_directory(write_directory(sample, tmp_path / "directory"))
    assert read == sample
    with pytest.raises(UntrustedCodeError) as refused:
        materialize(loaded)
    assert str(refused.value) == (
        "`test/custom-operators` calls the custom operator `graphnet_tests::scale_and_shift`, "
        "whose source came with the sample and would run on this machine. Read it "
        "(`sample.custom_operators`); if you trust it, pass `trust_remote_code=True` "
        "(`--trust-remote-code`), otherwise skip the sample."
    )
    custom_operators._registered.clear()
    with caplog.at_level(logging.WARNING, logger="graphnet_datasets"):
        module = materialize(loaded, trust_remote_code=True)
    assert "Running the source of the custom operator `graphnet_tests::clip`" in caplog.text
    assert "return x.clamp_min(low)" in caplog.text
    # The live model's weights instead of drawn ones: the outputs are then those of the live model.
    torch.manual_seed(0)
    weights = Model()
    inputs = make_inputs(loaded)
    for name, each in zip(loaded.input_names, loaded.inputs, strict=True):
        if each.role == "parameter":
            inputs[name] = getattr(weights.linear, each.source_name.strip("_").split("_")[-1])
        else:
            inputs[name] = x
    with torch.no_grad():
        (given,) = module(**inputs)
        assert torch.equal(given, expected)
        assert torch.equal(torch.compile(module, backend="aot_eager")(**inputs)[0], expected)


def test_a_materialized_sample_is_captured_unchanged(captured: Any) -> None:
    sample = captured[0]
    module = materialize(sample, trust_remote_code=True)
    wrapped: Any = extract(name="test/again", warm_up=False)(Around(module))
    with torch.no_grad():
        wrapped(**make_inputs(sample))
    (again,) = wrapped.samples
    assert again.custom_operators == sample.custom_operators
    assert structure_hash(again) == structure_hash(sample)


class Around(torch.nn.Module):
    """Calls a graph from code that has a file."""

    def __init__(self, graph: torch.nn.Module) -> None:
        super().__init__()
        self.graph = graph

    def forward(self, **inputs: Any) -> Any:
        return self.graph(**inputs)


def test_another_source_is_another_graph() -> None:
    one, other = made("def act(x): return x + 1"), made("def act(x): return x + 2")
    assert structure_hash(one) != structure_hash(other)
    assert signature_hash(one) != signature_hash(other)
    x = torch.zeros(2, 3)
    with torch.no_grad():
        results = [materialize(each, trust_remote_code=True)(x)[0] for each in (one, other, one)]
    assert [float(each.max()) for each in results] == [1.0, 2.0, 1.0]


def test_a_source_that_was_changed_does_not_run() -> None:
    sample = made("def act(x): return x")
    (operator,) = sample.custom_operators
    changed = dataclasses.replace(operator, source="import os; os.abort()")
    sample = dataclasses.replace(sample, custom_operators=(changed,))
    with pytest.raises(
        UntrustedCodeError, match=r"^The source of the custom operator `mylib::act`"
    ):
        materialize(sample, trust_remote_code=True)


def test_nothing_runs_of_a_sample_that_is_refused_for_another_reason(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    sample = made(f"open({str(trace)!r}, 'w').close()\ndef act(x): return x.clone()")
    unknown = dataclasses.replace(sample, ops=(*sample.ops, Op("torch.load", (Ref(0),))))
    with pytest.raises(LookupError):
        materialize(unknown, trust_remote_code=True)
    with pytest.raises(MemoryError):
        materialize(sample, trust_remote_code=True, memory_limit_bytes=1)
    uncalled = dataclasses.replace(sample, ops=(), outputs=(Ref(0),))
    materialize(uncalled)
    materialize(uncalled, trust_remote_code=True)
    measure(sample)
    assert not trace.exists()
    materialize(sample, trust_remote_code=True)
    assert trace.exists()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def other(x): return x", "KeyError: 'act'"),
        ("raise SystemError('no')", "SystemError: no"),
        ("def act(x: return", "SyntaxError"),
    ],
)
def test_a_source_that_does_not_define_its_operator_is_refused(source: str, reason: str) -> None:
    sample = made(source)
    with pytest.raises(MaterializeError) as caught:
        materialize(sample, trust_remote_code=True)
    assert str(caught.value).startswith(
        "The source of the custom operator `mylib::act` of `test/made` does not define it: "
        + reason
    )


def test_an_operator_that_writes_is_known_by_its_schema() -> None:
    sample = made("def act(x): x.add_(1)", "(Tensor(a!) x) -> ()")
    sample = dataclasses.replace(
        sample, ops=(dataclasses.replace(sample.ops[0], results=()),), outputs=(Ref(0),)
    )
    x = torch.zeros(2, 3)
    (given,) = materialize(sample, trust_remote_code=True)(x)
    assert given is x and float(x.max()) == 1.0


def test_custom_operators_lower_the_coverage(captured: Any) -> None:
    sample = captured[0]
    num_custom = sum("graphnet_tests" in op.target for op in sample.ops)
    assert measure(sample).flops_coverage == pytest.approx(1 - num_custom / sample.num_ops)


def test_a_source_that_does_not_stand_on_its_own_is_refused_when_captured() -> None:
    wrapped: Any = extract(name="test/not-alone")(NotAlone())
    with pytest.raises(CaptureError) as caught:
        wrapped(torch.ones(2))
    assert str(caught.value).startswith(
        "The custom operator `graphnet_tests::decorated` cannot be captured with its source: "
        "It uses `_cached`, a `_lru_cache_wrapper`. Write it as a plain function"
    )

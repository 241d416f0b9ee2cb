"""Models are built without weights, except those whose constructors call them."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from builder import models
from builder.catalog import CatalogError, parse_line
from builder.libraries import LIBRARIES
from builder.models import build_model, weigh

LINE = "torch/looks-first | other | torch | mlp | | input=normal(2,4) | float32 | eval | |"


class LooksFirst(torch.nn.Module):
    """Sizes its second layer by what comes out of the first one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 6)
        self.second = torch.nn.Linear(self.first(torch.zeros(1, 4)).shape[-1], 2)


class IsBroken(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        raise RuntimeError("the sizes do not fit")


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch):
    def build_class(module_class: type[torch.nn.Module]) -> torch.nn.Module:
        library = dataclasses.replace(LIBRARIES["torch"], build=lambda _: module_class())
        monkeypatch.setattr(models, "library_of", lambda _: library)
        return models.build_model(parse_line(LINE))

    return build_class


def test_parameters_have_no_elements() -> None:
    model = models.build_model(parse_line(LINE))
    assert all(parameter.is_meta for parameter in model.parameters())


def test_a_constructor_that_calls_its_parts_gets_weights(build) -> None:
    model = build(LooksFirst)
    assert model.second.in_features == 6
    assert not any(parameter.is_meta for parameter in model.parameters())


class KeepsSome(torch.nn.Module):
    """As models of transformers do: a router that is added up in float32."""

    _keep_in_fp32_modules_strict = ("gate.weight", "bias_of_scores")
    _keep_in_fp32_modules = ("out",)

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.gated, self.out = (torch.nn.Linear(4, 4) for _ in range(3))
        self.register_buffer("bias_of_scores", torch.zeros(4))
        self.register_buffer("places", torch.arange(4))


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        ("bfloat16", {"gate.weight", "bias_of_scores"}),
        ("float16", {"gate.weight", "bias_of_scores", "out.weight", "out.bias"}),
    ],
)
def test_modules_kept_in_float32_stay_in_float32(
    monkeypatch: pytest.MonkeyPatch, dtype: str, kept: set[str]
) -> None:
    library = dataclasses.replace(LIBRARIES["torch"], build=lambda _: KeepsSome())
    monkeypatch.setattr(models, "library_of", lambda _: library)
    model = models.build_model(parse_line(LINE.replace("float32", dtype)))
    dtypes = {
        name: each.dtype for name, each in (*model.named_parameters(), *model.named_buffers())
    }
    assert dtypes.pop("places") == torch.int64
    assert {name for name, found in dtypes.items() if found == torch.float32} == kept
    assert set(dtypes.values()) <= {torch.float32, getattr(torch, dtype)}


def test_any_other_error_of_a_constructor_stands(build) -> None:
    with pytest.raises(RuntimeError, match="the sizes do not fit"):
        build(IsBroken)


def test_a_wrong_override_names_the_entry() -> None:
    line = LINE.replace("| mlp | |", "| mlp | sides=[4,2] |")
    with pytest.raises(CatalogError, match="torch/looks-first"):
        models.build_model(parse_line(line))


def test_failures_on_fake_elements_are_distinguished() -> None:
    from builder.worker import is_data_dependent

    class GuardOnDataDependentSymNode(RuntimeError):  # noqa: N818 (torch calls it so)
        """Named as torch's."""

    assert is_data_dependent(GuardOnDataDependentSymNode("u0 > 3"))
    wrapped = ValueError("capture failed")
    wrapped.__cause__ = RuntimeError("Could not guard on data-dependent expression Eq(u0, 1)")
    assert is_data_dependent(wrapped)
    assert not is_data_dependent(RuntimeError("shapes do not match"))


def test_a_model_can_be_built_with_weights_after_all() -> None:
    entry = parse_line(
        "torch/a | other | torch | mlp | sizes=[4,8,2] | input=normal(2,4) | float32 | eval | |"
    )
    bare, whole = build_model(entry), build_model(entry, with_weights=True)
    assert {each.device.type for each in bare.parameters()} == {"meta"}
    assert {each.device.type for each in whole.parameters()} == {"cpu"}
    assert weigh(bare) == weigh(whole) == 4 * (4 * 8 + 8 + 8 * 2 + 2)


class Spectral(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3, dtype=torch.complex64))
        self.scale = torch.nn.Parameter(torch.zeros(3))


def test_complex_weights_stay_complex_in_every_dtype(build, monkeypatch) -> None:
    assert build(Spectral).weight.dtype == torch.complex64
    monkeypatch.setattr("tests.builder.test_models.LINE", LINE.replace("float32", "bfloat16"))
    model = build(Spectral)
    assert (model.weight.dtype, model.scale.dtype) == (torch.complex64, torch.bfloat16)

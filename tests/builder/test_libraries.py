"""Models that a line names by module and class, and those that take features of a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from builder.capturing import BUILDER
from builder.catalog import LIBRARIES as NAMES
from builder.catalog import CatalogError, Entry, parse_line, read_catalog
from builder.libraries import LIBRARIES, modules
from builder.libraries.imports import submodule
from builder.libraries.licenses import SPANDREL
from builder.libraries.rechub import Fields
from builder.provenance import model_source_hash
from builder.walks import pytorchcv, rechub
from graphnet_datasets.errors import GraphNetError

NETS = """
import torch

PIXELS = 4

class Net(torch.nn.Linear):
    def __init__(self, width: int = PIXELS) -> None:
        super().__init__(width, width)

    @classmethod
    def narrow(cls):
        return cls(2)

def wide():
    return Net(8)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A library of models with one module, under the name of one that catalogs may name."""
    (tmp_path / "vit_pytorch").mkdir()
    (tmp_path / "vit_pytorch" / "__init__.py").write_text("")
    (tmp_path / "vit_pytorch" / "nets.py").write_text(NETS)
    (tmp_path / "vit_pytorch" / "deep").mkdir()
    (tmp_path / "vit_pytorch" / "deep" / "__init__.py").write_text("from ..nets import Net\n")
    (tmp_path / "vit_pytorch" / "deep" / "wider.py").write_text("from ..nets import wide\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "vit_pytorch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "vit_pytorch"]:
        del sys.modules[name]


def entry(builder: str, overrides: str = "") -> Entry:
    fields = ("v/a", "cv", "vit_pytorch", builder, overrides, "_0=normal(1,4)", "float32", "eval")
    return parse_line(" | ".join((*fields, "", "")))


@pytest.mark.usefixtures("package")
def test_a_builder_names_a_module_and_a_factory() -> None:
    made = modules.build(entry("nets.Net", "width=6"))
    assert isinstance(made, torch.nn.Linear) and made.in_features == 6
    for builder, width in (("nets.wide", 8), ("nets.Net.narrow", 2), ("deep.Net", 4),
                           ("deep.wider.wide", 8)):  # fmt: skip
        assert modules.build(entry(builder)).in_features == width


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    "builder", ["nets.Missing", "nets.PIXELS", "nets.torch", "nets.Net.missing", "nets"]
)
def test_builders_without_a_model_are_refused(builder: str) -> None:
    with pytest.raises(CatalogError, match="is not a model of vit_pytorch"):
        modules.build(entry(builder))


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("builder", ["os.system", "Net", "..nets.Net", ""])
def test_only_modules_of_the_library_are_imported(builder: str) -> None:
    with pytest.raises(GraphNetError, match="has no module"):
        modules.build(entry(builder))


def test_a_library_that_is_not_listed_has_no_modules() -> None:
    with pytest.raises(GraphNetError, match="is not a library of the catalogs"):
        submodule("json", "decoder")  # pyright: ignore[reportArgumentType]


def test_the_catalog_names_the_libraries_that_there_are() -> None:
    assert set(NAMES) == set(LIBRARIES)


def test_recommenders_have_a_field_for_every_feature() -> None:
    entries = [parse_line(line) for line in rechub.walk()]
    assert len(entries) == len(rechub.CALLS)
    for each in entries:
        names = [spec.name for spec in each.inputs]
        assert len(names) == len(set(names))
        assert {feature[0] for feature in features(list(each.overrides.values()))} == set(names)
        assert each.dynamic in ((), tuple(f"{name}.0" for name in names))


def features(values: list[object]) -> set[tuple[object, ...]]:
    found: set[tuple[object, ...]] = set()
    for value in values:
        if isinstance(value, list):
            found |= features(value)
        elif isinstance(value, tuple):
            found.add(value)
    return found


def test_a_recommender_takes_fields_by_name_and_its_source_is_the_library_s() -> None:
    class Sum(torch.nn.Linear):
        def forward(self, fields: dict[str, torch.Tensor]) -> torch.Tensor:
            return fields["a"] + fields["b"]

    model = Fields(Sum(1, 1))
    assert model(a=torch.ones(2), b=torch.ones(2)).tolist() == [2, 2]
    assert model_source_hash(model) == model_source_hash(model.model) is not None
    assert model_source_hash(model) != model_source_hash(torch.nn.Linear(1, 1))


def test_histories_are_padded_with_an_identifier_that_none_of_them_draws() -> None:
    (stamp,) = [each for each in map(parse_line, rechub.walk()) if "STAMP" in each.name]
    (session,) = stamp.inputs
    assert session.shape == (rechub.BATCH, rechub.HISTORY)
    assert session.arguments == (1.0, 43098.0)


def test_one_network_of_each_kind_stands_for_the_datasets_that_it_was_trained_on() -> None:
    names = [f"net{depth}_{data}" for depth in (20, 56, 110) for data in ("cifar10", "svhn")]
    assert pytorchcv._chosen(names) == ["net110_cifar10", "net56_cifar10"]
    assert pytorchcv._chosen(["net_coco"]) == ["net_coco"]


def test_architectures_of_spandrel_have_their_own_licences() -> None:
    entries = read_catalog(BUILDER / "catalogs" / "spandrel.txt")
    assert {entry.builder.partition(".")[0] for entry in entries} <= SPANDREL.keys()
    assert LIBRARIES["spandrel"].license_of("LaMa.LaMa") == "Apache-2.0"
    assert LIBRARIES["torchvision"].license_of("resnet18") == "BSD-3-Clause"

"""Models of packages for paddle, read from a package in a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from builder import paddle_packages
from builder.paddle_packages import PACKAGES, Package, member, preload, resolve
from builder.sources import FILES as CATALOGS
from builder.sources import entries_of
from graphnet_datasets.errors import MissingExtraError

FILES = {
    "toolkit/__init__.py": "raise ImportError('the top-level package is not executed')",
    "toolkit/models/__init__.py": "raise ImportError('nor is this package')",
    "toolkit/models/small.py": (
        "import json\n"
        "from missing.metrics import Score, register\n"
        "from .. import __version__\n"
        "@register\n"
        "class Small(Score):\n"
        "    kind = json.__name__ + __version__\n"
    ),
    "toolkit/models/broken.py": "import another_missing_package\n",
}

TOOLKIT = Package("toolkit", "owner/toolkit", "toolkit", ("", "models"), ("missing", "json"))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    paddle_packages.prepare.cache_clear()
    yield
    paddle_packages.prepare.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.usefixtures("installed")
def test_models_are_imported_without_the_packages_above_them_and_what_they_require() -> None:
    import json

    small = member(TOOLKIT, "models.small.Small")
    assert small.__name__ == "Small"
    assert "missing" not in sys.modules
    assert sys.modules["json"] is json  # replaced only during the import


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("path", ["models.small.Large", "models.large.Large"])
def test_a_model_that_does_not_exist_is_a_key_error(path: str) -> None:
    with pytest.raises(KeyError):
        member(TOOLKIT, path)


@pytest.mark.usefixtures("installed")
def test_a_missing_requirement_is_reported_as_such() -> None:
    with pytest.raises(ModuleNotFoundError, match="another_missing_package"):
        member(TOOLKIT, "models.broken.Model")


def test_without_the_package_there_is_an_error_that_names_it() -> None:
    package = PACKAGES["paddleseg"]
    if find_spec(package.root) is not None:
        preload(package)
        return
    with pytest.raises(MissingExtraError, match="paddleseg"):
        member(package, "models.unet.UNet")


def test_calls_and_members_in_overrides_are_resolved() -> None:
    names = {"dict": dict, "max": max}
    value = {"a": {"()": "dict", "key": {"&": "max"}}, "b": ({"()": "max", "*": [1, 3]},)}
    assert resolve(value, names.__getitem__) == {"a": {"key": max}, "b": (3,)}


@pytest.mark.parametrize("library", sorted(PACKAGES))
def test_the_catalog_of_a_package_has_models_of_that_package(library: str) -> None:
    entries = entries_of(library)
    assert CATALOGS[library] == (f"catalogs/{library}.txt",)
    assert entries
    assert {entry.library for entry in entries} == {library}
    assert {entry.dtype for entry in entries} == {"float32"}

"""The front door: what can be imported from the package, and what importing it costs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import graphnet_datasets

from .imports import imported_by

SOURCE = ast.parse(Path(graphnet_datasets.__file__).read_text())


def names_for_type_checkers() -> dict[str, str]:
    """Return name -> module of the imports under `if TYPE_CHECKING`."""
    (block,) = (node for node in SOURCE.body if isinstance(node, ast.If))
    return {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_see_the_names_that_exist_at_run_time() -> None:
    assert names_for_type_checkers() == graphnet_datasets._HOME_OF
    assert set(graphnet_datasets.__all__) == {*graphnet_datasets._HOME_OF, "__version__"}


@pytest.mark.parametrize("name", graphnet_datasets.__all__)
def test_every_public_name_can_be_imported_and_is_listed(name: str) -> None:
    assert getattr(graphnet_datasets, name) is not None
    assert name in dir(graphnet_datasets)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(
        AttributeError, match=r"^The module `graphnet_datasets` has no attribute `sampel`$"
    ):
        graphnet_datasets.sampel  # noqa: B018


def test_importing_the_package_imports_no_framework_and_no_heavy_library() -> None:
    script = "import graphnet_datasets\ngraphnet_datasets.Sample, dir(graphnet_datasets)"
    heavy = "torch paddle datasets evaluate pyarrow numpy pandas huggingface_hub"
    assert imported_by(script, heavy) == []

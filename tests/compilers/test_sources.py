"""The identity of a compiler's own code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphnet_datasets.compilers import source_hash

Lay = Callable[[dict[str, str]], None]


@pytest.fixture
def lay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lay:
    """Return a function that writes files of a package that Python finds."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


PACKAGE = {
    "house9/__init__.py": "",
    "house9/entrance.py": "from .rooms import kitchen\nfrom . import cellar\n",
    "house9/rooms/__init__.py": "from house9 import attic\n",
    "house9/rooms/kitchen.py": "def cook():\n    import house9.rooms.larder\n",
    "house9/rooms/larder.py": "import json\n",
    "house9/cellar.py": "WINE = 1\n",
    "house9/attic.py": "from ..house9 import nothing\n",
    "house9/garden.py": "ROSES = 1\n",
}


@pytest.mark.parametrize(
    ("edited", "is_part"),
    [(name, name != "house9/garden.py") for name in PACKAGE],
)
def test_the_source_of_a_module_includes_its_imports_from_the_package(
    lay: Lay, edited: str, is_part: bool
) -> None:
    lay(PACKAGE)
    before = source_hash("house9.entrance:compile")
    assert before == source_hash("house9.entrance:other")
    lay({edited: PACKAGE[edited] + "# edited\n"})
    assert (source_hash("house9.entrance:compile") != before) is is_part
    lay(PACKAGE)
    assert source_hash("house9.entrance:compile") == before
    assert not any(name.startswith("house9") for name in sys.modules)  # nothing was imported


@pytest.mark.parametrize("edited", ["mine.py", "helper9.py", "tools9/__init__.py"])
def test_the_source_of_a_file_includes_neighbouring_imports(
    lay: Lay, tmp_path: Path, edited: str
) -> None:
    files = {
        "mine.py": "import helper9, json\n",
        "helper9.py": "from tools9 import use\n",
        "tools9/__init__.py": "",
    }
    lay(files)
    reference = f"{tmp_path / 'mine.py'}:compile"
    before = source_hash(reference)
    lay({edited: "X = 1\n" + files[edited]})
    assert source_hash(reference) != before


@pytest.mark.parametrize("edited", [None, "house9/cellar.py", "house9/__init__.py"])
def test_a_file_in_a_package_is_the_module(lay: Lay, tmp_path: Path, edited: str | None) -> None:
    """How a compiler is found must not tell apart two runs of the same code."""
    lay(PACKAGE)
    path = tmp_path / "house9" / "entrance.py"
    before = source_hash("house9.entrance:compile")
    if edited is not None:
        lay({edited: PACKAGE[edited] + "# edited\n"})
    assert source_hash(f"{path}:compile") == source_hash("house9.entrance:compile")
    assert (source_hash(f"{path}:compile") == before) is (edited is None)


def test_unparsable_files_count_with_their_bytes(lay: Lay, tmp_path: Path) -> None:
    lay({"odd.py": "def (\n"})
    before = source_hash(f"{tmp_path / 'odd.py'}:x")
    lay({"odd.py": "def ((\n"})
    assert source_hash(f"{tmp_path / 'odd.py'}:x") != before != ""


def test_objects_without_a_file_have_no_source(tmp_path: Path) -> None:
    assert source_hash("sys:exit") == source_hash(f"{tmp_path / 'missing.py'}:x") == ""

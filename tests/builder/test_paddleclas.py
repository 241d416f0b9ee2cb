"""The backbones of PaddleClas, as read out of a distribution that lies in a folder."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from builder import paddleclas
from builder.catalog import parse_line
from builder.walks.paddleclas import LEFT_OUT, walk
from graphnet_datasets.errors import MissingExtraError

FILES = {
    "paddleclas/__init__.py": "raise ImportError('what the front door needs is not installed')",
    "paddleclas/ppcls/arch/__init__.py": "raise ImportError('nor this')",
    "paddleclas/ppcls/arch/backbone/__init__.py": (
        "import os\nfrom .zoo import SVTR_tiny, Swin_384\n"
    ),
    "paddleclas/ppcls/arch/backbone/zoo.py": (
        "from ...utils import tools\n"
        "def Swin_384(): return tools.SCALE\n"
        "def SVTR_tiny(): return 0\n"
    ),
    "paddleclas/ppcls/utils/tools.py": "SCALE = 0\n",
    "paddleclas/ppcls/utils/logger.py": (
        "from . import tools\ndef init_logger(log_level): tools.SCALE = log_level\n"
    ),
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    paddleclas.names.cache_clear()
    yield
    paddleclas.names.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.usefixtures("installed")
def test_backbones_are_imported_without_the_packages_above_them() -> None:
    assert paddleclas.names() == ("SVTR_tiny", "Swin_384")
    assert paddleclas.backbone("Swin_384")() == logging.ERROR  # it speaks to a logger that is there
    with pytest.raises(KeyError):
        paddleclas.backbone("os")  # a name of the module, and no backbone


@pytest.mark.usefixtures("installed")
def test_the_walk_takes_each_backbone_at_its_own_size_in_float32() -> None:
    entries = {entry.builder: entry for entry in map(parse_line, walk())}
    assert entries.keys() == {"Swin_384", "SVTR_tiny"}
    assert entries["Swin_384"].inputs[0].shape[1:] == (3, 384, 384)
    assert entries["SVTR_tiny"].inputs[0].shape[1:] == (3, 48, 320)
    assert {entry.dtype for entry in entries.values()} == {"float32"}
    assert {entry.library for entry in entries.values()} == {"paddleclas"}


def test_without_the_library_there_is_an_error_that_names_it() -> None:
    if find_spec("paddleclas") is not None:
        assert len(paddleclas.names()) > 300
        assert LEFT_OUT.keys() <= set(paddleclas.names())
        return
    paddleclas.names.cache_clear()
    with pytest.raises(MissingExtraError, match="paddleclas"):
        paddleclas.names()

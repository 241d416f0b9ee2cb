"""`from .installed import paddle`: skips a whole module, with a reason, where paddle is missing."""

from __future__ import annotations

from typing import Any

import pytest

REASON = "paddlepaddle is not installed: pip install 'graphnet-datasets[paddle]'"

paddle: Any = pytest.importorskip("paddle", reason=REASON)

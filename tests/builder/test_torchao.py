"""Quantised models are captured with plain operators on plain tensors."""

from __future__ import annotations

import pytest

pytest.importorskip("torchao", reason="needs the extra `catalogs`")

from builder.catalog import CatalogError, parse_line
from builder.libraries.torchao import SCHEMES
from builder.models import build_model
from builder.worker import capture_entry

LINE = (
    'torchao/mlp | other | torchao | torch.mlp | sizes=[64,32,8] scheme="{}" '
    "| input=normal(2,64) | {} | eval | | "
)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_are_plain_tensors_of_the_scheme(scheme: str, dtype: str) -> None:
    (sample,) = capture_entry(parse_line(LINE.format(scheme, dtype)))
    assert all(op.target.startswith(("torch.ops.aten.", "operator.")) for op in sample.ops)
    dtypes = {item.value.dtype for item in sample.inputs if item.value.shape == (32, 64)}
    assert dtypes == {"float8_e4m3fn" if scheme.startswith("float8") else "int8"}


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(CatalogError, match="and a scheme of int8-weight-only, int8"):
        build_model(parse_line(LINE.format("int3", "float32")))

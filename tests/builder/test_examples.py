"""Example inputs: equal everywhere, and of the kind that the catalog names."""

from __future__ import annotations

import hashlib

import pytest
import torch

from builder.catalog import CatalogError, parse_line
from builder.examples import make_examples


def examples(inputs: str, dtype: str = "float32") -> dict[str, torch.Tensor]:
    return make_examples(parse_line(f"a | cv | torch | x | | {inputs} | {dtype} | eval | |"))


def test_each_kind_has_its_range_dtype_and_shape() -> None:
    made = examples(
        "a=normal(400,50) b=uniform(1000; -2, 3) c=ids(1000; 7) d=ids(1000; 5, 9) e=full(2,2; 1) "
        "f=range(2,4) g=bools(1000; 0.25) "
        "h=boxes(9,4; 50)"
    )
    assert made["a"].shape == (400, 50) and made["a"].dtype == torch.float32
    assert abs(made["a"].mean()) < 0.02 and abs(made["a"].std() - 1) < 0.02
    assert -2 <= made["b"].min() < -1.9 and 2.9 < made["b"].max() <= 3
    assert (made["c"].min(), made["c"].max(), made["c"].dtype) == (0, 6, torch.int64)
    assert (made["d"].min(), made["d"].max()) == (5, 8)
    assert made["e"].tolist() == [[1, 1], [1, 1]]
    assert made["f"].tolist() == [[0, 1, 2, 3]] * 2
    assert (made["h"][:, :2] <= made["h"][:, 2:]).all() and made["h"].max() > 9
    assert 0.2 < made["g"].float().mean() < 0.3


def test_elements_never_change() -> None:
    made = examples("a=normal(100) b=ids(100; 1000)")
    digest = hashlib.sha256(made["a"].numpy().tobytes() + made["b"].numpy().tobytes())
    assert digest.hexdigest()[:16] == "69a0e27d8984485f"


def test_floats_have_the_dtype_of_the_entry() -> None:
    made = examples("a=normal(4) b=ids(4; 2)", "bfloat16")
    assert (made["a"].dtype, made["b"].dtype) == (torch.bfloat16, torch.int64)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(CatalogError) as caught:
        examples("a=gaussian(4)")
    assert str(caught.value) == (
        "`a` has an input of the kind `gaussian` (accepted: normal, uniform, ids, prompt, boxes, "
        "full, grid, patches, positions, range, count, bools, number, shapes)."
    )


def test_numbers_and_shapes_are_given_as_they_are_and_not_as_tensors() -> None:
    assert examples("count=number(; 7) sizes=shapes(1,16,24)") == {
        "count": 7, "sizes": [(1, 16, 24)],
    }  # fmt: skip


def test_inputs_of_image_grids() -> None:
    made = examples("sizes=grid(2,3; 1,4,6) x=patches(2,24,5) at=positions(2,7; 3) n=grid(2; 9)")
    assert made["sizes"].tolist() == [[1, 4, 6]] * 2
    assert made["x"].shape == (48, 5) and made["x"].dtype == torch.float32
    assert made["at"].shape == (3, 2, 7) and made["at"][2, 1].tolist() == list(range(7))
    assert made["n"].tolist() == [9, 9]

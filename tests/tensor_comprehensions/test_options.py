"""Options and presets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.errors import TensorComprehensionError
from graphnet_datasets.tensor_comprehensions.options import CudaOptions, Options
from graphnet_datasets.tensor_comprehensions.presets import PRESETS, preset

options = st.builds(
    Options,
    outer_fusion=st.sampled_from(["max", "preserve3", "min"]),
    tile=st.lists(st.integers(0, 300), max_size=5).map(tuple),
    unroll=st.integers(1, 256),
    micro=st.none() | st.tuples(st.integers(1, 32), st.integers(1, 8)),
    pack=st.sampled_from(["auto", "always", "never"]),
    prefetch=st.none() | st.integers(0, 64),
    extra_flags=st.sampled_from([(), ("-O3",)]),
    cuda=st.builds(
        CudaOptions,
        blocks=st.lists(st.integers(1, 500), min_size=1, max_size=3).map(tuple),
        use_shared=st.booleans(),
        shared_depth=st.none() | st.integers(0, 7),
    ),
)


@given(options)
def test_options_are_read_back_as_they_were_written(each: Options) -> None:
    assert Options.from_dict(each.to_dict()) == each


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_options(name: str) -> None:
    assert Options.from_dict(preset(name).to_dict()) == preset(name)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tile": [-1]}, "The option `tile` is \\(-1,\\)"),
        ({"unroll": 0}, "it must be from 1 to 256"),
        ({"unroll": "2"}, "it must be of type int"),
        ({"micro": [8]}, r"it must be \(rows, vectors\)"),
        ({"compiler": "sh"}, "one of gcc, clang"),
        ({"colour": 1}, "There is no option `colour`"),
        ({"cuda": {"threads": [2048]}}, "a product of at most 1024"),
        ({"cuda": {"x": 1}}, "The option `cuda`"),
        ({"extra_flags": [1]}, "a list of strings"),
    ],
)
def test_wrong_options_are_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(TensorComprehensionError, match=message):
        Options.from_dict(values)


def test_setters_chain() -> None:
    each = Options().with_fusion("max").with_micro(8, 3).with_threads(2).with_cuda(threads=(64,))
    assert (each.outer_fusion, each.intra_fusion, each.micro) == ("max", "max", (8, 3))
    assert (each.threads, each.cuda.threads, Options().micro) == (2, (64,), None)
    with pytest.raises(TensorComprehensionError, match="There is no preset `fast`"):
        preset("fast")

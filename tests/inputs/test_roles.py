"""What integers and masks are for, and what is drawn in their place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.inputs import find_roles, make_array
from graphnet_datasets.inputs.integers import natural, shuffled, uniform
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref, SliceArg

EVERYTHING = SliceArg(None, None, None)


def int64(*rows: object) -> bytes:
    return np.array(rows, "<i8").tobytes()


def sample_of(inputs: tuple[Input, ...], ops: tuple[Op, ...], framework: str = "torch") -> Sample:
    return Sample("roles/sample", framework, "nlp", inputs, ops, Ref(len(inputs) + len(ops) - 1))  # type: ignore[arg-type]


def ids(shape: tuple[int, ...], data: bytes | None = None, name: str = "") -> Input:
    return Input("input", Value("int64", shape), name, data=data)


def table(rows: int, role: str = "parameter") -> Input:
    return Input(role, Value("float32", (rows, 4)))  # type: ignore[arg-type]


def fresh(sample: Sample, index: int = 0, seed: int = 0) -> np.ndarray:
    return make_array(sample, index, seed, mode="fresh")


EMBEDDING = Op("torch.nn.functional.embedding", (Ref(0), Ref(1)))
ATEN_EMBEDDING = Op("torch.ops.aten.embedding.default", (Ref(1), Ref(0)))
PADDLE_EMBEDDING = Op("paddle._C_ops.embedding", (Ref(0), Ref(1), -1, False))


@pytest.mark.parametrize("op", [EMBEDDING, ATEN_EMBEDDING, PADDLE_EMBEDDING])
def test_tokens_stay_within_the_embedding_in_a_thousand_seeds(op: Op) -> None:
    framework = "paddle" if "paddle" in op.target else "torch"
    sample = sample_of((ids((1, 8), int64(*range(5, 45, 5))), table(50)), (op,), framework)
    assert find_roles(sample)[0].kind == "tokens"
    drawn = np.stack([fresh(sample, seed=seed) for seed in range(1000)])
    assert (drawn.min(), drawn.max()) == (0, 49)
    assert len({each.tobytes() for each in drawn}) == 1000, "every call has other tokens"
    assert make_array(sample, 0, seed=3).tobytes() == sample.inputs[0].data, "replay replays"


def test_frequent_tokens_are_few() -> None:
    drawn = natural(3, 100_000, 0, 29_999)
    counts = np.sort(np.bincount(drawn, minlength=30_000))[::-1]
    assert counts[:3000].sum() > 0.7 * counts.sum(), "a tenth of the words make most of a text"
    assert 10_000 < np.count_nonzero(counts) < 30_000, "and most words are seldom"


@given(st.integers(0, 2**63), st.integers(-(2**40), 2**40), st.integers(0, 2**40))
def test_natural_numbers_stay_within_their_range(key: int, first: int, width: int) -> None:
    drawn = natural(key, 200, first, first + width)
    assert drawn.min() >= first
    assert drawn.max() <= first + width


@given(st.integers(0, 2**63), st.integers(1, 3000))
def test_an_order_has_each_place_once(key: int, size: int) -> None:
    assert np.array_equal(np.sort(shuffled(key, size)), np.arange(size))


def test_an_offset_before_the_embedding_lowers_the_bound() -> None:
    shift = Op("operator.add", (Ref(0), 2))
    look_up = Op("torch.nn.functional.embedding", (Ref(2), Ref(1)))
    sample = sample_of((ids((1, 4), int64(3, 1, 5, 7)), table(20)), (shift, look_up))
    assert (find_roles(sample)[0].low, find_roles(sample)[0].high) == (-2, 17)


def test_an_offset_for_each_column_lowers_the_bound_by_the_largest() -> None:
    # Tabular models keep all categories in one table: column i starts at offset i.
    offsets = Input("buffer", Value("int64", (2,)), data=int64(0, 10))
    shift = Op("torch.Tensor.add", (Ref(0), Ref(2)))
    look_up = Op("torch.nn.functional.embedding", (Ref(3), Ref(1)))
    data = int64(3, 1, 5, 7)
    sample = sample_of((ids((2, 2), data), table(20), offsets), (shift, look_up))
    drawn = np.stack([fresh(sample, seed=seed) for seed in range(200)])
    assert drawn.min() == 0
    assert drawn.max() == 9


def test_padding_stays_padding_and_nothing_else_becomes_it() -> None:
    is_padding = Op("torch.Tensor.ne", (Ref(0), 1))
    sample = sample_of(
        (ids((2, 4), int64(9, 8, 1, 1, 7, 6, 5, 1)), table(12)), (EMBEDDING, is_padding)
    )
    before = make_array(sample, 0)
    for seed in range(100):
        drawn = fresh(sample, seed=seed)
        assert np.array_equal(drawn == 1, before == 1)
        assert not np.array_equal(drawn, before) or seed > 0


def test_elements_stay_on_their_side_of_a_number() -> None:
    is_seen = Op("operator.gt", (Ref(0), 0))
    sample = sample_of((ids((6,), int64(0, 4, 0, 2, 9, 3)), table(10)), (EMBEDDING, is_seen))
    for seed in range(100):
        assert np.array_equal(fresh(sample, seed=seed) > 0, make_array(sample, 0) > 0)


def test_a_label_to_be_ignored_stays() -> None:
    loss = Op("torch.nn.functional.cross_entropy", (Ref(1), Ref(0)))
    logits = Input("input", Value("float32", (4, 7)))
    sample = sample_of((ids((4,), int64(3, -100, 6, 0)), logits), (loss,))
    drawn = np.stack([fresh(sample, seed=seed) for seed in range(100)])
    assert (drawn[:, 1] == -100).all()
    assert (drawn[:, [0, 2, 3]] >= 0).all()
    assert drawn.max() == 6


MASKED = (Op("torch.Tensor.to", (Ref(0), Named("dtype", "float32"))),)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_mask_hides_the_end_of_sequences(batch: int) -> None:
    data = np.ones((batch, 16), "<i8").tobytes()
    sample = sample_of((ids((batch, 16), data, "attention_mask"),), MASKED)
    assert find_roles(sample)[0].kind == "mask"
    shares = []
    for seed in range(200):
        mask = fresh(sample, seed=seed)
        assert set(np.unique(mask)) <= {0, 1}
        assert (np.diff(mask, axis=-1) <= 0).all(), "only the end is hidden"
        assert (mask.sum(-1) >= 12).all(), "and never much of it"
        assert batch == 1 or mask[0].all(), "the longest sequence has no padding"
        shares.append(mask.mean())
    assert 0.75 <= min(shares) < max(shares) <= 1


def test_an_inverted_mask_keeps_its_meaning() -> None:
    hidden = Input("input", Value("bool", (1, 8)), data=np.array([0] * 7 + [1], bool).tobytes())
    sample = sample_of((hidden,), (Op("torch.Tensor.logical_not", (Ref(0),)),))
    for seed in range(50):
        assert not fresh(sample, seed=seed)[0, :6].any()


def test_a_causal_mask_stays() -> None:
    causal = np.tril(np.ones((6, 6), bool))
    held = Input("input", Value("bool", (6, 6)), data=causal.tobytes())
    sample = sample_of((held,), (Op("torch.Tensor.logical_not", (Ref(0),)),))
    assert np.array_equal(fresh(sample), causal)


def test_positions_count_up_from_somewhere() -> None:
    sample = sample_of((ids((1, 6), int64(*range(6))), table(20)), (EMBEDDING,))
    drawn = np.stack([fresh(sample, seed=seed)[0] for seed in range(300)])
    assert (np.diff(drawn, axis=-1) == 1).all()
    assert (drawn.min(), drawn.max()) == (0, 19)


def test_inputs_that_decide_shapes_are_unchanged() -> None:
    counts = ids((3,), int64(2, 1, 4))
    repeated = Op("torch.repeat_interleave", (Ref(1), Ref(0)))
    sample = sample_of((counts, Input("input", Value("float32", (3,)))), (repeated,))
    assert find_roles(sample)[0].kind == "fixed"
    assert fresh(sample).tobytes() == counts.data


def test_loops_of_a_graph_stay_loops_where_they_are_removed() -> None:
    edges = np.array([[0, 1, 2, 2, 4], [3, 1, 0, 2, 1]])
    sources = Op("operator.getitem", (Ref(0), 0))
    targets = Op("operator.getitem", (Ref(0), 1))
    is_edge = Op("torch.Tensor.ne", (Ref(2), Ref(3)))
    kept = Op("operator.getitem", (Ref(0), (EVERYTHING, Ref(4))))
    chosen = Op("torch.Tensor.index_select", (Ref(1), 0, Ref(2)))
    sample = sample_of(
        (ids((2, 5), edges.astype("<i8").tobytes()), table(5)),
        (sources, targets, is_edge, kept, chosen),
    )
    assert find_roles(sample)[0].kind == "edges"
    for seed in range(50):
        drawn = fresh(sample, seed=seed)
        assert np.count_nonzero(drawn[0] == drawn[1]) == 2
        assert 0 <= drawn.min() <= drawn.max() <= 4
        degrees = [np.sort(np.bincount(each[1], minlength=5)) for each in (drawn, edges)]
        assert np.array_equal(*degrees)


def test_boxes_stay_boxes_and_change_places() -> None:
    boxes = np.array([[[0, 0, 3, 4], [1, 2, 8, 9], [5, 5, 6, 6]]])
    right, left = (Op("operator.getitem", (Ref(0), (Ellipsis, place))) for place in (2, 0))
    width = Op("operator.sub", (Ref(2), Ref(3)))
    look_up = Op("torch.nn.functional.embedding", (Ref(4), Ref(1)))
    sample = sample_of(
        (ids((1, 3, 4), boxes.astype("<i8").tobytes()), table(10)), (right, left, width, look_up)
    )
    assert find_roles(sample)[0].kind == "rows"
    seen = {fresh(sample, seed=seed).tobytes() for seed in range(50)}
    assert len(seen) == 6
    assert all(
        sorted(np.frombuffer(each, "<i8").reshape(3, 4).tolist()) == boxes[0].tolist()
        for each in seen
    )


def test_unrecorded_integers_are_drawn_for_their_indexed_dimension() -> None:
    sample = sample_of((ids((1000,)), table(500)), (EMBEDDING,))
    drawn = make_array(sample, 0)
    assert drawn.max() > 100
    assert drawn.max() < 500
    known = Input("input", Value("int64", (1000,)), statistics=Statistics(249.0, 144.0, 0.0, 499.0))
    uniform_ones = make_array(sample_of((known, table(500)), (EMBEDDING,)), 0)
    assert uniform_ones.mean() == pytest.approx(249, rel=0.05), "what was measured is met"


@given(st.integers(0, 1000))
def test_stored_floats_move_and_keep_their_signs(seed: int) -> None:
    grid = np.linspace(-1, 1, 9, dtype="<f4")
    held = Input("input", Value("float32", (9,)), data=grid.tobytes())
    drawn = fresh(sample_of((held,), (Op("torch.relu", (Ref(0),)),)), seed=seed)
    assert not np.array_equal(drawn, grid)
    assert (drawn * grid >= 0).all()
    assert np.abs(drawn - grid).max() < 0.5


def test_a_mask_among_floats_stays() -> None:
    hidden = np.array([0, 0, -np.inf], "<f4")
    held = Input("input", Value("float32", (3,)), data=hidden.tobytes())
    assert np.array_equal(fresh(sample_of((held,), (Op("torch.relu", (Ref(0),)),))), hidden)


def test_uniform_numbers_reach_both_ends() -> None:
    assert np.unique(uniform(1, 1000, -3, 3)).tolist() == list(range(-3, 4))


def test_a_number_that_is_compared_with_a_filled_tensor_stays() -> None:
    # Graphs of paddle assert that a count is the one that they were captured with.
    count = Input("input", Value("int64", ()), data=int64(32620))
    filled = Op("paddle._C_ops.full", (ListArg(()), 32620.0, Named("dtype", "int64")))
    sample = sample_of((count,), (filled, Op("paddle._C_ops.equal", (Ref(0), Ref(1)))), "paddle")
    assert [int(fresh(sample, seed=seed)) for seed in range(20)] == [32620] * 20

"""Convex sets of operators, and the search for the smallest that fails."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st

from graphnet_datasets.bisection.convex import ConvexSets
from graphnet_datasets.bisection.searching import find_smallest
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.transforms import Cutter
from graphnet_datasets.transforms.dependences import find_detour

X = Input("input", Value("float32", (2,)))


@st.composite
def graphs(draw: st.DrawFn) -> Sample:
    """Return a graph of sums, each of two values before it."""
    size = draw(st.integers(1, 12))
    ops = tuple(
        Op("torch.add", (Ref(draw(st.integers(0, place))), Ref(draw(st.integers(0, place)))))
        for place in range(size)
    )
    return Sample("test/sums", "torch", "other", (X,), ops, (Ref(size),))


def is_convex(sets: ConvexSets, ops: frozenset[int]) -> bool:
    return find_detour(sets.cutter.dependences, ops) is None


@hypothesis.given(graphs(), st.data())
def test_the_smallest_set_around_operators_is_convex_and_no_smaller_one_is(
    sample: Sample, data: st.DataObject
) -> None:
    sets = ConvexSets(Cutter(sample))
    every = range(sample.num_ops)
    chosen = data.draw(st.sets(st.sampled_from(every), min_size=1))
    closed = sets.close(chosen)
    assert chosen <= closed and is_convex(sets, closed)
    for added in closed - chosen:
        assert not is_convex(sets, closed - {added}) or any(
            # one between two others may only go together with its neighbours
            other != added and not is_convex(sets, frozenset({added, other}) ^ closed)
            for other in closed - chosen
        )


@hypothesis.given(graphs(), st.data())
def test_smaller_sets_are_convex_and_within(sample: Sample, data: st.DataObject) -> None:
    sets = ConvexSets(Cutter(sample))
    every = frozenset(range(sample.num_ops))
    pieces = data.draw(st.integers(1, sample.num_ops))
    found = list(sets.smaller(every, pieces))
    assert len(set(found)) == len(found)
    for each in found:
        assert each < every and each and is_convex(sets, each)


@hypothesis.given(graphs(), st.data())
def test_the_result_fails_and_is_minimal(sample: Sample, data: st.DataObject) -> None:
    sets = ConvexSets(Cutter(sample))
    every = frozenset(range(sample.num_ops))
    culprits = frozenset(data.draw(st.sets(st.sampled_from(sorted(every)), min_size=1, max_size=3)))
    asked = []

    def fails(ops: frozenset[int]) -> bool:
        asked.append(ops)
        return culprits <= ops

    found = find_smallest(sets, every, fails)
    # Where everything that holds the culprits fails, the least convex set around them is left.
    assert found == sets.close(culprits)
    assert all(is_convex(sets, each) for each in asked)


def test_halving_finds_one_of_a_thousand_operators_in_few_trials() -> None:
    ops = tuple(Op("torch.relu", (Ref(place),)) for place in range(1000))
    chain = Sample("test/chain", "torch", "other", (X,), ops, (Ref(1000),))
    asked = []

    def fails(ops: frozenset[int]) -> bool:
        asked.append(ops)
        return 617 in ops

    assert find_smallest(ConvexSets(Cutter(chain)), frozenset(range(1000)), fails) == {617}
    assert len(asked) <= 22


def test_two_places_far_apart_in_branches_need_nothing_between_them() -> None:
    branches = [Op("torch.relu", (Ref(0),)), Op("torch.exp", (Ref(0),))]
    ops = (*branches, Op("torch.add", (Ref(1), Ref(2))))
    sample = Sample("test/branches", "torch", "other", (X,), ops, (Ref(3),))
    sets = ConvexSets(Cutter(sample))
    assert find_smallest(sets, frozenset(range(3)), lambda ops: {0, 1} <= ops) == {0, 1}


def test_a_tuple_goes_with_those_that_take_it_apart() -> None:
    ops = (
        Op("torch.Tensor.chunk", (Ref(0), 2)),
        Op("operator.getitem", (Ref(1), 0)),
        Op("torch.relu", (Ref(2),)),
    )
    sample = Sample("test/tuple", "torch", "other", (X,), ops, (Ref(3),))
    assert ConvexSets(Cutter(sample)).close({0}) == {0, 1}


def test_uncuttable_parts_are_skipped() -> None:
    ops = (Op("torch.relu", (Ref(0),)), Op("torch.exp", (Ref(1),)), Op("torch.abs", (Ref(2),)))
    sets = ConvexSets(Cutter(Sample("test/chain", "torch", "other", (X,), ops, (Ref(3),))))
    assert sets.cut({0, 2}, "part") is None
    part = sets.cut({0, 1}, "part")
    assert part is not None and part.sample.id == "test/chain/part"

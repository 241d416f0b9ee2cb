"""Sequences that recur: against a search that looks at every window by itself."""

from __future__ import annotations

import collections
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.transforms import repeats
from graphnet_datasets.transforms.repeats import Trace, find_repeats, trace

DATA = Input("input", Value("float32", (4,)))
NAMES = ("exp", "abs", "sin", "add")


def graph(*calls: tuple[str, tuple[int, ...]]) -> Sample:
    """Return a graph of operators, each with what it takes: 0 is the input, 1 the first result."""
    ops = tuple(Op(f"torch.{name}", tuple(map(Ref, refs))) for name, refs in calls)
    return Sample("test/graph", "torch", "other", (DATA,), ops, Ref(len(ops)))


def chain(*names: str) -> Sample:
    return graph(*((name, (index,)) for index, name in enumerate(names)))


@st.composite
def graphs(draw: st.DrawFn) -> list[Sample]:
    made = []
    for _ in range(draw(st.integers(1, 4))):
        calls = []
        for position in range(draw(st.integers(1, 12))):
            refs = st.integers(max(0, position - 2), position)
            calls.append((draw(st.sampled_from(NAMES)), tuple(draw(st.tuples(refs, refs)))))
        made.append(graph(*calls))
    return made


def written_out(traced: Trace, first: int, length: int) -> tuple[object, ...]:
    """Return a window as it stands, without what comes from outside."""
    inside = range(first, first + length)
    edges = sorted(
        (taker - first, maker - first, place)
        for taker, maker, place in traced.edges.tolist()
        if taker in inside and maker in inside
    )
    return (traced.targets[first : first + length], tuple(edges))


@given(graphs())
def test_windows_have_equal_hashes_where_they_are_equal(samples: list[Sample]) -> None:
    traces = [trace(sample) for sample in samples]
    windows = repeats._Windows(traces, [str(index) for index in range(len(traces))], 2)
    for length in range(1, 8):
        if length > windows.size:
            break
        hashes, is_valid = windows.hashes(length), windows.valid(length)
        texts: dict[int, object] = {}
        seen: dict[object, int] = {}
        for index, each in enumerate(traces):
            for first in range(len(each.targets) - length + 1):
                start = int(windows.starts[index]) + first
                assert is_valid[start]
                text = written_out(each, first, length)
                assert texts.setdefault(int(hashes[start]), text) == text
                assert seen.setdefault(text, int(hashes[start])) == int(hashes[start])
        assert int(is_valid.sum()) == sum(max(0, len(t.targets) - length + 1) for t in traces)


@given(graphs())
def test_chosen_repeats_recur_without_overlap(samples: list[Sample]) -> None:
    traces = [trace(sample) for sample in samples]
    families = [str(index % 3) for index in range(len(traces))]
    taken: collections.Counter[tuple[int, int]] = collections.Counter()
    for each in find_repeats(traces, families):
        assert len({families[graph] for graph, _ in each.places}) >= 2
        texts = {written_out(traces[graph], first, each.length) for graph, first in each.places}
        assert len(texts) == 1
        for place, first in each.places:
            taken.update((place, first + step) for step in range(each.length))
        assert each.num_covered == each.length * len(each.places)
    assert set(taken.values()) <= {1}
    assert not left_over(traces, families, {*taken})


def left_over(
    traces: Sequence[Trace], families: Sequence[str], taken: set[tuple[int, int]]
) -> list[object]:
    """Return the pairs of operators that nobody took although they recur across families."""
    seen: dict[object, set[str]] = {}
    for index, each in enumerate(traces):
        for first in range(len(each.targets) - 1):
            if (index, first) not in taken and (index, first + 1) not in taken:
                seen.setdefault(written_out(each, first, 2), set()).add(families[index])
    return [text for text, found in seen.items() if len(found) > 1]


def test_blocks_are_chosen_before_longer_sequences_that_do_not_follow_themselves() -> None:
    layer = ("exp", "abs", "sin", "add")
    found = find_repeats(
        [trace(chain("neg", *layer * 3, "cos")), trace(chain("neg", *layer * 3, "tan"))], ["a", "b"]
    )
    assert [(each.kind, each.length, len(each.places)) for each in found] == [("block", 4, 6)]


def test_edges_inside_tell_sequences_apart_and_those_from_outside_do_not() -> None:
    inside = graph(("exp", (0,)), ("add", (1, 1)))
    mixed = graph(("exp", (0,)), ("add", (1, 0)))
    later = graph(("tan", (0,)), ("exp", (1,)), ("add", (2, 1)))
    families = ["a", "b"]
    assert find_repeats([trace(inside), trace(mixed)], families) == []
    (found,) = find_repeats([trace(mixed), trace(later)], families)
    assert found.places == ((0, 0), (1, 1))


def test_tuples_stay_with_their_unpacking_and_views_alone_are_skipped() -> None:
    halves = (("chunk", (0,)), ("getitem", (1,)), ("getitem", (1,)), ("exp", (2,)))
    split = graph(*halves)
    split = Sample(
        split.id, "torch", "other", split.inputs,
        tuple(
            Op("operator.getitem", (op.args[0], 0)) if op.target.endswith("getitem") else op
            for op in split.ops
        ),
        split.outputs,
    )  # fmt: skip
    longer = Sample(
        "test/longer", "torch", "other", split.inputs, (*split.ops, Op("torch.abs", (Ref(4),))),
        Ref(5),
    )  # fmt: skip
    (found,) = find_repeats([trace(split), trace(longer)], ["a", "b"])
    assert (found.length, found.places) == (4, ((0, 0), (1, 0)))
    views = [trace(chain("squeeze", "t")), trace(chain("squeeze", "t", "exp"))]
    assert find_repeats(views, ["a", "b"]) == []


def test_one_family_is_not_enough_and_nothing_is_found_in_nothing() -> None:
    twice = [trace(chain("exp", "abs")), trace(chain("exp", "abs"))]
    assert find_repeats(twice, ["a", "a"]) == []
    assert len(find_repeats(twice, ["a", "a"], min_families=1)) == 1
    assert find_repeats([], []) == []
    assert find_repeats([trace(graph())], ["a"]) == []


def test_no_sequence_is_longer_than_asked_for() -> None:
    names = [NAMES[index] for index in np.random.default_rng(0).integers(0, 4, 40)]
    traces = [trace(chain(*names, "tan")), trace(chain(*names, "cos"))]
    assert find_repeats(traces, ["a", "b"])[0].length >= 4
    assert max(each.length for each in find_repeats(traces, ["a", "b"], max_length=6)) <= 6

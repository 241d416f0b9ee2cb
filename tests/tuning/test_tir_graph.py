"""The graph of a scheduled program: loops, strides, who writes what somebody reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import ProgramGraph
from graphnet_datasets.tuning import tir_graph as module
from graphnet_datasets.tuning.candidate import EdgeKind
from graphnet_datasets.tuning.tir_graph import (
    KINDS,
    NUM_EDGE_FEATURES,
    NUM_FEATURES,
    OPERATIONS,
    graph_of_function,
)
from graphnet_datasets.tuning.tir_lowering import lowered

from .live import needs_tvm

pytestmark = needs_tvm


@pytest.fixture(scope="module")
def product() -> Any:
    """max(A @ B, 0) of [8, 16] and [16, 32], its inner loop vectorized, its outer one parallel."""
    import tvm
    from tvm import te

    a, b = te.placeholder((8, 16), name="a"), te.placeholder((16, 32), name="b")
    k = te.reduce_axis((0, 16), name="k")
    c = te.compute((8, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    d = te.compute((8, 32), lambda i, j: te.max(c[i, j], 0.0), name="d")
    function = te.create_prim_func([a, b, d]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    i, j, _ = schedule.get_loops(schedule.get_sblock("c"))
    schedule.parallel(i)
    schedule.split(j, [None, 4])
    schedule.annotate(i, "pragma_auto_unroll_max_step", 128)
    *_, inner = schedule.get_loops(schedule.get_sblock("d"))
    schedule.vectorize(inner)
    return lowered(schedule.mod)["main"]


@pytest.fixture(scope="module")
def graph(product: Any) -> ProgramGraph:
    return graph_of_function(product)


def of_kind(graph: ProgramGraph, kind: str) -> np.ndarray:
    return graph.nodes[graph.nodes[:, KINDS.index(kind)] == 1]


def test_every_part_of_the_program_is_a_node(graph: ProgramGraph) -> None:
    assert graph.nodes.shape[1] == NUM_FEATURES
    assert graph.edge_features.shape == (graph.edges.shape[1], NUM_EDGE_FEATURES)
    counts = {kind: len(of_kind(graph, kind)) for kind in KINDS}
    # the initial value is stored too, in the first iteration over k; add, multiply, maximum
    assert counts["store"] == 3 and counts["load"] == 4 and counts["arithmetic"] == 3
    assert counts["call"] == 0 and counts["choice"] == 1
    assert (graph.nodes[:, : len(KINDS)].sum(axis=1) == 1).all()
    operations = of_kind(graph, "arithmetic")[:, -len(OPERATIONS) :]
    assert [OPERATIONS[each] for each in operations.argmax(axis=1)] == [
        "add",
        "multiply",
        "compare",
    ]


def test_statements_know_how_often_they_run(graph: ProgramGraph) -> None:
    statements = np.isfinite(graph.log_runs)
    assert (statements == (graph.nodes[:, KINDS.index("store")] == 1)).all()
    # what is begun stands in a choice, in all loops around it
    assert np.exp(graph.log_runs[statements]).round().tolist() == [4096, 4096, 256]


def test_loops_have_their_kind_extent_and_unrolling(graph: ProgramGraph) -> None:
    loops = of_kind(graph, "loop")
    extents = np.exp2(loops[:, 14]).round()
    assert sorted(extents.tolist()) == [4, 8, 8, 8, 16, 32]
    assert loops[0, 9] == 1 and extents[0] == 8  # parallel
    assert loops[-1, 10] == 1 and extents[-1] == 32  # vectorized
    # up to 128 steps: two stores in 16 iterations over k, in four of j, but not in the other eight
    unrolled = loops[:, 13] == 1
    assert extents[unrolled].tolist() == [4, 16]
    ((around,),) = np.nonzero(unrolled[1:] & ~unrolled[:-1])
    assert extents[around] == 8
    assert np.exp2(loops[0, 15]).round() == 129  # the pragma of all that is in it
    assert loops[-1, 15] == 0


def test_accesses_have_their_strides(graph: ProgramGraph) -> None:
    """Loads of the product: c[i, j], a[i, k], b[k, j]; the innermost loop is over k."""
    loads = of_kind(graph, "load")[:3]
    assert (np.exp2(loads[:, 24]) - 1).round().tolist() == [0, 1, 32]
    assert loads[:, 25].tolist() == [1, 0, 0] and loads[:, 26].tolist() == [0, 1, 0]
    assert np.exp2(loads[:, 20]).round().tolist()[1:] == [128, 512]
    assert loads[:, 21].tolist() == [4, 4, 4]
    assert loads[:, 22].tolist() == [1, 0, 0]  # c is the program's own
    assert loads[:, 23].tolist() == [1, 0, 0]  # and is what the statement updates


def test_edges_lead_down_up_along_and_from_writer_to_reader(graph: ProgramGraph) -> None:
    edges = {
        kind: {tuple(pair) for pair in graph.edges[:, graph.edge_kinds == kind].T.tolist()}
        for kind in EdgeKind
    }
    assert edges[EdgeKind.UP] == {(child, parent) for parent, child in edges[EdgeKind.DOWN]}
    assert edges[EdgeKind.INSIDE] == {(to, begin) for begin, to in edges[EdgeKind.AROUND]}
    assert len(edges[EdgeKind.DOWN]) == len(graph.nodes) - 2  # two nests, each with a root
    stores = np.flatnonzero(graph.nodes[:, KINDS.index("store")])
    loads = np.flatnonzero(graph.nodes[:, KINDS.index("load")])
    # c is written twice (begun, updated) and read twice; nobody reads d
    data = {(s, load) for s in stores[:2].tolist() for load in (int(loads[0]), int(loads[3]))}
    assert edges[EdgeKind.DATA] == data
    inner = {to for _, to in edges[EdgeKind.DOWN]}
    roots = [node for node in range(len(graph.nodes)) if node not in inner]
    assert tuple(roots) in edges[EdgeKind.NEXT]  # one nest after the other
    assert {to for _, to in edges[EdgeKind.PART]} == {int(stores[1]), int(stores[2])}


def test_loops_have_features_of_each_access(graph: ProgramGraph) -> None:
    """b[k, j], 512 elements of four bytes: all of it in each run of the loops over j and k."""
    load = int(np.flatnonzero(graph.nodes[:, KINDS.index("load")])[2])
    own = (graph.edge_kinds == EdgeKind.AROUND) & (graph.edges[1] == load)
    rows = graph.edge_features[own]  # innermost first: k, j inside, j outside, i
    strides = (np.exp2(rows[:, 0]) - 1).round().tolist()
    assert strides == [32, 1, 4, 0]
    assert np.exp2(rows[:, 3]).round().tolist() == [16, 4, 8, 8]
    assert (np.exp2(rows[:, 4]) - 1).round().tolist() == [64, 256, 2048, 2048]
    assert np.exp2(rows[:, 6]).round().tolist() == [1, 16, 64, 512]  # iterations inside


def test_a_program_that_is_too_large_is_refused(
    product: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_NODES", 9)
    with pytest.raises(TuningError, match="more than 9 loops and operations"):
        graph_of_function(product)

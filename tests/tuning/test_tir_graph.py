"""The graph of a scheduled program: loops, strides, who writes what somebody reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import ProgramGraph
from graphnet_datasets.tuning import tir_graph as module
from graphnet_datasets.tuning.tir_graph import KINDS, NUM_FEATURES, graph_of_function

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
    schedule.annotate(j, "pragma_auto_unroll_max_step", 16)
    *_, inner = schedule.get_loops(schedule.get_sblock("d"))
    schedule.vectorize(inner)
    return schedule.mod["main"]


@pytest.fixture(scope="module")
def graph(product: Any) -> ProgramGraph:
    return graph_of_function(product)


def of_kind(graph: ProgramGraph, kind: str) -> np.ndarray:
    return graph.nodes[graph.nodes[:, KINDS.index(kind)] == 1]


def test_every_part_of_the_program_is_a_node(graph: ProgramGraph) -> None:
    assert graph.nodes.shape[1] == NUM_FEATURES
    counts = {kind: len(of_kind(graph, kind)) for kind in KINDS}
    # the initial value is stored too; add, multiply, maximum
    assert counts == {
        **{"loop": 5, "block": 2, "store": 3, "load": 4},
        **{"arithmetic": 3, "call": 0, "choice": 0},
    }
    assert (graph.nodes[:, : len(KINDS)].sum(axis=1) == 1).all()


def test_loops_have_their_kind_extent_and_pragma(graph: ProgramGraph) -> None:
    loops = of_kind(graph, "loop")
    extents = np.exp2(loops[:, 12])
    assert extents.tolist() == [8, 32, 16, 8, 32]
    assert loops[:, 8].tolist() == [1, 0, 0, 0, 0]  # parallel
    assert loops[:, 9].tolist() == [0, 0, 0, 0, 1]  # vectorized
    assert np.exp2(loops[:, 13]).tolist() == [1, 17, 1, 1, 1]
    assert np.exp2(loops[:, 14]).tolist() == [1, 8, 256, 1, 8]  # how often each begins


def test_accesses_have_their_strides(graph: ProgramGraph) -> None:
    """Loads of the product: c[i, j], a[i, k], b[k, j]; the innermost loop is over k, then j, i."""
    loads = of_kind(graph, "load")[:3]
    strides = np.exp2(loads[:, 19::2][:, :3]) - 1
    assert strides.round().tolist() == [[0, 1, 32], [1, 0, 16], [32, 1, 0]]
    assert (loads[:, 20::2][:, :3] == (strides == 0)).all()
    assert np.exp2(loads[:, 17]).tolist() == [256, 128, 512]
    assert loads[:, 18].tolist() == [4, 4, 4]


def test_edges_lead_down_up_along_and_from_writer_to_reader(graph: ProgramGraph) -> None:
    edges = {
        kind: {tuple(pair) for pair in graph.edges[:, graph.edge_kinds == kind].T}
        for kind in range(4)
    }
    assert edges[1] == {(child, parent) for parent, child in edges[0]}
    assert len(edges[0]) == len(graph.nodes) - 2  # two nests, each with a root
    stores = np.flatnonzero(graph.nodes[:, KINDS.index("store")])
    loads = np.flatnonzero(graph.nodes[:, KINDS.index("load")])
    # c is written twice (begun, updated) and read twice; nobody reads d
    assert edges[3] == {(s, load) for s in stores[:2] for load in (loads[0], loads[3])}
    roots = [node for node in range(len(graph.nodes)) if node not in {to for _, to in edges[0]}]
    assert tuple(roots) in edges[2]  # one nest after the other


def test_a_program_that_is_too_large_is_refused(
    product: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_NODES", 9)
    with pytest.raises(TuningError, match="more than 9 loops and operations"):
        graph_of_function(product)

"""Program graphs in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.tuning.graph_files import load_graphs, save_graphs
from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import PoolSpace
from graphnet_datasets.tuning.models.arrays import load_arrays, save_arrays

from .toy import TASKS, ToySpace, make_pool


def test_graphs_are_their_file(tmp_path: Path) -> None:
    space = ToySpace()
    drawn = space.sample(TASKS[0], 5, 0)
    graphs = {each.key: space.graph(each) for each in drawn}
    save_graphs(tmp_path / "graphs.npz", graphs)
    read = load_graphs(tmp_path / "graphs.npz")
    assert list(read) == list(graphs)
    for key, graph in graphs.items():
        for ours, theirs in zip(read[key].arrays, graph.arrays, strict=True):
            assert (ours == theirs).all()
    pool = make_pool(each=6)
    own = PoolSpace(pool).enumerate(TASKS[0])
    replayed = PoolSpace(pool, graphs={own[0].key: graphs[drawn[0].key]})
    assert replayed.graph(own[0]).nodes.shape == (7, 9)
    with pytest.raises(TuningError, match="has no program graph of the candidate"):
        replayed.graph(own[1])


def test_broken_graphs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TuningError, match="`graphs` is empty"):
        save_graphs(tmp_path / "none.npz", {})
    space = ToySpace()
    drawn = space.sample(TASKS[0], 2, 0)
    path = tmp_path / "graphs.npz"
    save_graphs(path, {each.key: space.graph(each) for each in drawn})
    arrays, header = load_arrays(path, "program graphs")
    save_arrays(path, {**arrays, "edges": arrays["edges"] + 7}, header)
    with pytest.raises(TuningError, match="has an end that is not a node"):
        load_graphs(path)
    save_arrays(path, {**arrays, "num_nodes": np.array([3])}, header)
    with pytest.raises(TuningError, match="invalid program graphs"):
        load_graphs(path)
    with pytest.raises(TuningError, match="contains a `program graphs`, but a `other` is needed"):
        load_arrays(path, "other")

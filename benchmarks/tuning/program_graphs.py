"""Make the program graphs of a pool's candidates, once, for the experiment with graph networks.

    python benchmarks/tuning/program_graphs.py POOL graphs.npz

TVM replays each trace in an isolated process; a candidate whose trace does not replay has no graph.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from graph_files import save_graphs
from replaying import show

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import Pool, PoolSpace
from graphnet_datasets.tuning.isolated_space import IsolatedSpace


def main(argv: Sequence[str] | None = None) -> None:
    """Replay all traces and write the graphs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool")
    parser.add_argument("out")
    given = parser.parse_args(argv)
    pool = Pool.load(given.pool)
    graphs, num_lacking = {}, 0
    with IsolatedSpace() as space:
        for task in pool.tasks.values():
            space.add(task)
            for candidate in PoolSpace(pool).enumerate(task):
                try:
                    graphs[candidate.key] = space.graph(candidate)
                except TuningError:
                    num_lacking += 1
    save_graphs(given.out, graphs)
    nodes = sum(len(graph.nodes) for graph in graphs.values())
    show("program_graphs", graphs=len(graphs), lacking=num_lacking, nodes=nodes)


if __name__ == "__main__":
    main()

"""The case `compilers` of `input_sensitivity.py`: a compiler for each graph, from run records.

Families are held out in turn, each once: a dispatcher is fitted to the graphs of the others, and so
is the single compiler that it is compared with. What is printed is of all graphs, each judged by
what knew nothing of its family.
"""

from __future__ import annotations

import argparse
import collections
import math
from typing import Any

import numpy as np
from replaying import show

from graphnet_datasets.benchmark.records.records import read_runs
from graphnet_datasets.tuning.curves import bootstrap
from graphnet_datasets.tuning.dispatch.compilers import (
    eager_ms_of,
    graph_features,
    relative_time,
)
from graphnet_datasets.tuning.dispatch.two_level import TwoLevelDispatcher

MIN_SAMPLES = 10


def compilers(given: argparse.Namespace) -> None:
    """Choose a compiler for each sample from what its records say of the sample.

    Raises:
        SystemExit: fewer than ten samples, or fewer than two families, have what is needed.
    """
    names, features, relative, families, noisy_share = table_of(given)
    # What fails or is wrong costs what eager takes, for the dispatcher as for the single one: one
    # falls back to it.
    paid = np.where(np.isfinite(relative), relative, 1.0)
    groups = np.array(sorted(set(families)))
    np.random.default_rng(given.seed).shuffle(groups)
    single, chosen = (np.full(len(families), -1) for _ in range(2))
    classifiers: collections.Counter[str] = collections.Counter()
    for held_out in np.array_split(groups, min(given.folds, len(groups))):
        is_test = np.isin(families, held_out)
        dispatcher = TwoLevelDispatcher(seed=given.seed)
        dispatcher.fit(features[~is_test], names, paid[~is_test], np.zeros(features.shape[1]))
        classifiers[str(dispatcher.chosen)] += 1
        single[is_test] = np.log(paid[~is_test]).sum(axis=0).argmin()
        for index in np.flatnonzero(is_test):
            chosen[index] = names.index(dispatcher.choose(features[index]))
    every = np.arange(len(families))
    rows = np.log(np.stack([paid[every, single], paid[every, chosen], paid.min(axis=1)], axis=1))
    ratio, low, high = bootstrap(rows, lambda each: math.exp((each[:, 0] - each[:, 1]).mean()))
    gain = (rows[:, 0] - rows[:, 2]).sum()
    show(
        "input_sensitivity",
        case="compilers",
        test=len(rows),
        families=len(groups),
        folds=min(given.folds, len(groups)),
        t=given.t,
        noisy_share=noisy_share,
        classifiers=dict(classifiers),
        best_single=names[int(np.bincount(single).argmax())],
        over_best_single=ratio,
        interval=[low, high],
        share_of_oracle=float((rows[:, 0] - rows[:, 1]).sum() / gain) if gain > 0 else 1.0,
        speedup_of_single=float(np.exp(-rows[:, 0].mean())),
        speedup_of_chosen=float(np.exp(-rows[:, 1].mean())),
        speedup_of_oracle=float(np.exp(-rows[:, 2].mean())),
        speedups={
            name: round(float(np.exp(-np.log(paid[:, index]).mean())), 4)
            for index, name in enumerate(names)
        },
        fastest={
            name: int((paid.argmin(axis=1) == index).sum()) for index, name in enumerate(names)
        },
        chosen={name: int((chosen == index).sum()) for index, name in enumerate(names)},
    )


def table_of(
    given: argparse.Namespace,
) -> tuple[list[str], np.ndarray, np.ndarray, list[str], float]:
    """Return compilers, features [n, 2], times over eager's [n, compilers], families [n].

    The last is the share of records that were taken on a machine that was too busy: whoever always
    chooses the fastest record is paid for what it did by chance.
    """
    rows = read_runs(given.runs).to_pylist()
    names = ["eager", *sorted({row["compiler"] for row in rows} - {"eager"})]
    by_sample: dict[str, dict[str, Any]] = {}
    for row in rows:
        by_sample.setdefault(row["sample_id"], {})[row["compiler"]] = row
    features, times, families, noisy = [], [], [], []
    for each in by_sample.values():
        eager_ms = next((ms for row in each.values() if (ms := eager_ms_of(row))), None)
        if eager_ms is None or not each.keys() >= set(names[1:]):
            continue
        row = next(iter(each.values()))
        features.append(graph_features(row["num_ops"] or 0, eager_ms))
        times.append([1.0, *(relative_time(each[name], given.t) for name in names[1:])])
        families.append(row["family"] or row["sample_id"])
        noisy += [bool(each[name]["is_noisy"]) for name in names[1:]]
    if len(families) < MIN_SAMPLES or len(set(families)) < 2 or len(names) < 2:
        raise SystemExit(
            f"{len(families)} samples of {len(set(families))} families have a record of every "
            f"compiler ({', '.join(names[1:]) or 'there is none'}), and {MIN_SAMPLES} of two are "
            "needed."
        )
    return names, np.array(features), np.array(times), families, float(np.mean(noisy))

"""GPTune by replay: trials until 95 % of the pool's best, one model of many tasks against one each.

    python benchmarks/tuning/gptune.py POOL --seeds 20 --groups 2 4 6

The tasks of a group are one code with other sizes: of one family, and with the same knobs. For each
number of tasks a line per tuner (random, a process for each task, one for all), and one
with the paired ratio of both processes: trials of a group and seed, summed over its tasks.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from replaying import Kept, load, parser, replay, same_code_groups, show, with_choice
from scipy.stats import wilcoxon

from graphnet_datasets.tuning import Task
from graphnet_datasets.tuning.curves import bootstrap, trials_to

SHARE = 0.95
TUNERS = {
    "random": ("random", {}),
    "single": ("gptune", {"shared": False}),
    "shared": ("gptune", {"shared": True}),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Replay all groups, seeds and tuners, and print the figures."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--groups", type=int, nargs="+", default=[2, 4, 6, 12])
    arguments.add_argument("--cap", type=int, default=48, help="trials of a task")
    arguments.add_argument("--initial", type=int, default=6)
    arguments.add_argument("--slot", type=int, default=2, help="trials between two fits")
    arguments.add_argument("--latent", type=int, default=1, help="Q of the model")
    arguments.add_argument("--iterations", type=int, default=15)
    arguments.add_argument("--max-groups", type=int, default=8)
    arguments.add_argument("--min-candidates", type=int, default=100)
    given = arguments.parse_args(argv)
    pool, space = load(given)
    tasks = with_choice(pool, given.min_candidates)
    kept = Kept(given, pool, given.cap, given.initial, given.slot, given.latent, given.iterations)
    for size in given.groups:
        groups = spread(same_code_groups(space, tasks, size), given.max_groups)
        if not groups:
            show("gptune", tasks=size, skipped="no code of the pool has so many tasks")
            continue
        trials = {
            name: _trials(pool, space, groups, name, given, kept) for name in TUNERS
        }  # [group, seed, task]
        for name, found in trials.items():
            centre, low, high = bootstrap(found.mean(axis=1).reshape(-1))
            show(
                "gptune",
                tasks=size,
                groups=len(groups),
                seeds=given.seeds,
                tuner=name,
                trials_to_95=centre,
                interval=[low, high],
                missed_share=float((found > given.cap).mean()),
            )
        single, shared = (trials[name].sum(axis=2).ravel() for name in ("single", "shared"))
        is_equal = bool((single == shared).all())
        # groups are what is independent; of few of them the seeds are drawn anew
        pairs = np.stack([shared, single], axis=1)
        ratio, low, high = bootstrap(pairs, lambda rows: float(rows[:, 0].sum() / rows[:, 1].sum()))
        of_group = trials["shared"].sum(axis=(1, 2)) / trials["single"].sum(axis=(1, 2))
        show(
            "gptune",
            tasks=size,
            seeds=given.seeds,
            families=[group[0].family for group in groups],
            by_group=[float(each) for each in of_group],
            shared_over_single=ratio,
            interval=[low, high],
            pairs=len(single),
            p=1.0 if is_equal else float(wilcoxon(shared, single).pvalue),
        )


def spread(groups: list[list[Task]], most: int) -> list[list[Task]]:
    """Return at most so many groups, of different families first."""
    by_family: dict[str, list[list[Task]]] = {}
    for group in groups:
        by_family.setdefault(group[0].family, []).append(group)
    turns = itertools.zip_longest(*by_family.values())
    return [group for turn in turns for group in turn if group is not None][:most]


def _trials(pool, space, groups, name, given, kept) -> np.ndarray:
    tuner, options = TUNERS[name]
    if tuner == "gptune":
        options = {
            **options,
            "initial_trials": given.initial,
            "latent": given.latent,
            "iterations": given.iterations,
        }

    def run(tasks: Sequence[Task], seed: int) -> list[int]:
        rows = replay(
            space,
            tasks,
            tuner,
            seed=seed,
            trials=given.cap * len(tasks),
            slot_trials=given.slot,
            options=options,
            until=SHARE,
        )
        return [trials_to(pool, task, rows, share=SHARE, cap=given.cap) for task in tasks]

    found = []
    for tasks in groups:
        # what knows nothing of other tasks runs alone, once for all groups that hold the task
        parts = [list(tasks)] if name == "shared" else [[task] for task in tasks]
        of_group = []
        for seed in range(given.seeds):
            trials = []
            for part in parts:
                key = ("gptune", name, [task.task_id for task in part], seed)
                trials += kept.get(key, lambda part=part, seed=seed: run(part, seed))
            of_group.append(trials)
        found.append(of_group)
    return np.array(found)


if __name__ == "__main__":
    main()

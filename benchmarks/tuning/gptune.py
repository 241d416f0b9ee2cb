"""GPTune by replay: trials until 95 % of the pool's best, one model of many tasks against one each.

    python benchmarks/tuning/gptune.py POOL --seeds 20 --groups 2 4 6 12

For each number of tasks a line per tuner (random, a process for each task, one for all), and one
with the paired ratio of both processes: trials of a group and seed, summed over its tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from replaying import load, parser, replay, same_family_groups, show
from scipy.stats import wilcoxon

from graphnet_datasets.tuning.curves import bootstrap, trials_to

TUNERS = {
    "random": ("random", {}),
    "single": ("gptune", {"shared": False}),
    "shared": ("gptune", {"shared": True}),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Replay all groups, seeds and tuners, and print the figures."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--groups", type=int, nargs="+", default=[2, 4, 6, 12])
    arguments.add_argument("--cap", type=int, default=24, help="trials of a task")
    arguments.add_argument("--initial", type=int, default=6)
    arguments.add_argument("--slot", type=int, default=2, help="trials between two fits")
    arguments.add_argument("--latent", type=int, default=1, help="Q of the model")
    arguments.add_argument("--iterations", type=int, default=30)
    arguments.add_argument("--max-groups", type=int, default=3)
    given = arguments.parse_args(argv)
    pool, space = load(given)
    for size in given.groups:
        groups = same_family_groups(list(pool.tasks.values()), size)[: given.max_groups]
        if not groups:
            show("gptune", tasks=size, skipped="no family of the pool has so many tasks")
            continue
        trials = {
            name: _trials(pool, space, groups, name, given) for name in TUNERS
        }  # [group, seed, task]
        for name, found in trials.items():
            centre, low, high = bootstrap(found.reshape(len(groups), -1, size).mean(axis=1).ravel())
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
        show(
            "gptune",
            tasks=size,
            shared_over_single=float(shared.sum() / single.sum()),
            pairs=len(single),
            p=1.0 if is_equal else float(wilcoxon(shared, single).pvalue),
        )


def _trials(pool, space, groups, name, given) -> np.ndarray:
    tuner, options = TUNERS[name]
    if tuner == "gptune":
        options = {
            **options,
            "initial_trials": given.initial,
            "latent": given.latent,
            "iterations": given.iterations,
        }
    found = []
    for tasks in groups:
        of_group = []
        for seed in range(given.seeds):
            rows = replay(
                space,
                tasks,
                tuner,
                seed=seed,
                trials=given.cap * len(tasks),
                slot_trials=given.slot,
                options=options,
            )
            of_group.append([trials_to(pool, task, rows, cap=given.cap) for task in tasks])
        found.append(of_group)
    return np.array(found)


if __name__ == "__main__":
    main()

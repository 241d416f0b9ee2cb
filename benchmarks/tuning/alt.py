"""ALT by replay: measurements until 95 % of the pool's best, against greedy and other baselines.

    python benchmarks/tuning/alt.py POOL --seeds 20

A line per tuner, and one with the ratio of ALT to greedy, its interval by drawing tasks anew.
`--tuners random greedy` makes a part of the runs; with `--kept FILE` another call goes on from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from replaying import Kept, load, parser, replay, show, with_choice

from graphnet_datasets.tuning.curves import bootstrap, trials_to

SHARE = 0.95
TUNERS = {
    "random": ("random", {}),
    "greedy": ("alt", {"phases": "score", "epsilon": 0.0}),
    "greedy+epsilon": ("alt", {"phases": "score", "epsilon": 0.05}),
    "bound": ("alt", {"phases": "bound", "epsilon": 0.0}),
    "alt": ("alt", {"phases": "ping-pong"}),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Replay all tasks, seeds and tuners, and print the figures."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--cap", type=int, default=128)
    arguments.add_argument("--batch", type=int, default=8)
    arguments.add_argument("--min-candidates", type=int, default=100)
    arguments.add_argument("--trees", type=int, default=32)
    arguments.add_argument("--tuners", nargs="+", choices=TUNERS, default=list(TUNERS))
    given = arguments.parse_args(argv)
    pool, space = load(given)
    tasks = with_choice(pool, given.min_candidates)
    kept = Kept(given, pool, given.cap, given.batch, given.trees)
    found: dict[str, np.ndarray] = {}
    for name in given.tuners:
        tuner, options = TUNERS[name]
        extra = {"trees": given.trees} if tuner == "alt" else {}

        def run(task, seed, tuner=tuner, options=options, extra=extra) -> int:
            rows = replay(
                space,
                [task],
                tuner,
                seed=seed,
                trials=given.cap,
                slot_trials=given.batch,
                options={**options, **extra},
                until=SHARE,
            )
            return trials_to(pool, task, rows, share=SHARE, cap=given.cap)

        found[name] = np.array(
            [
                [
                    kept.get(("alt", name, task.task_id, seed), lambda t=task, s=seed: run(t, s))
                    for seed in range(given.seeds)
                ]
                for task in tasks
            ]
        )
        centre, low, high = bootstrap(found[name])
        show(
            "alt",
            tasks=len(tasks),
            seeds=given.seeds,
            tuner=name,
            trials_to_95=centre,
            interval=[low, high],
            missed_share=float((found[name] > given.cap).mean()),
        )
    if not {"alt", "greedy"} <= set(found):
        return
    both = np.stack([found["alt"].mean(axis=1), found["greedy"].mean(axis=1)], axis=1)
    ratio, low, high = bootstrap(both, lambda rows: float(rows[:, 0].sum() / rows[:, 1].sum()))
    show("alt", alt_over_greedy=ratio, interval=[low, high], tasks=len(tasks), seeds=given.seeds)


if __name__ == "__main__":
    main()

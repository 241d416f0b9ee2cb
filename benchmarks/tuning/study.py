"""The whole study of the tuners over a pool of records: every experiment, its figures, the page.

    python benchmarks/tuning/study.py POOL --out build/study --docs docs/studies/tuning.md
    python benchmarks/tuning/study.py POOL --out build/study --only alt gptune --seeds 5

Each experiment runs in a separate process. Its lines are stored in `OUT/lines` when it has ended,
and its runs in `OUT/runs`, so that an interruption loses at most one run and the same call
continues. Results of live runs (`ansor_live.py`, `bolt_live.py`, `tuned_scores.py`) are read from
files in the same folder. `--docs` writes the tables between its markers, and pictures beside it in
`images/`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replaying import Kept
from study_text import page

from graphnet_datasets.atomic import write_text
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.tuning import Pool

HERE = Path(__file__).parent
MARKERS = ("<!-- study: benchmarks/tuning/study.py -->", "<!-- end of study -->")

Lines = dict[str, list[dict[str, Any]]]
"""By the name of a part: the figures that it printed."""


@dataclasses.dataclass(frozen=True)
class Part:
    """One process: the script, its arguments behind the pool, what has to be done before.

    `takes_pool` is False for what measures live without records; `seeds` are at most so many.
    """

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    seeds: int | None = None
    takes_pool: bool = True

    def command(self, pool: Path, out: Path, seeds: int) -> list[str]:
        """Return the arguments of the script."""
        filled = [argument.format(out=out) for argument in self.arguments]
        command = [str(HERE / self.script)]
        if self.takes_pool:
            command.append(str(pool))
        command += filled
        if self.seeds is not None:
            command += ["--seeds", str(min(self.seeds, seeds))]
            command += ["--kept", str(out / "runs" / f"{Path(self.script).stem}.jsonl")]
        return command

    def shown(self, seeds: int) -> str:
        """Return the command as a reader would write it."""
        filled = [argument.format(out="OUT") for argument in self.arguments]
        words = ["python", f"benchmarks/tuning/{self.script}"]
        words += ["POOL"] if self.takes_pool else []
        words += filled
        words += [] if self.seeds is None else ["--seeds", str(min(self.seeds, seeds))]
        return " ".join(words)


PARTS = (
    Part("alt", "alt.py", ("--tuners", "random", "greedy", "alt"), seeds=20),
    Part("alt-others", "alt.py", ("--tuners", "greedy+epsilon", "bound"), seeds=20),
    Part("gptune-2", "gptune.py", ("--groups", "2", "--max-groups", "6"), seeds=20),
    Part("gptune-4", "gptune.py", ("--groups", "4"), seeds=20),
    Part("gptune-6", "gptune.py", ("--groups", "6"), seeds=20),
    Part("dynatune", "dynatune.py", seeds=20),
    Part("oneshot", "oneshot.py", ("--rows", "100", "300", "1000", "10000"), seeds=20),
    Part("graphs", "program_graphs.py", ("{out}/program-graphs.npz",)),
    Part(
        "gnn-random",
        "gnn.py",
        ("--graphs", "{out}/program-graphs.npz", "--splits", "random"),
        seeds=3,
    ),
    Part(
        "gnn-tasks",
        "gnn.py",
        ("--graphs", "{out}/program-graphs.npz", "--splits", "tasks"),
        seeds=1,
    ),
    Part(
        "gnn-families",
        "gnn.py",
        ("--graphs", "{out}/program-graphs.npz", "--splits", "families"),
        seeds=1,
    ),
    Part("sparsity", "input_sensitivity.py", ("sparsity", "--inputs", "400"), takes_pool=False),
    Part("sort", "input_sensitivity.py", ("sort", "--inputs", "400"), takes_pool=False),
)
LIVE = {
    "ansor": "ansor_live.jsonl",
    "bolt": "bolt_live.jsonl",
    "tuned": "tuned_scores.jsonl",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", type=Path, help="a dataset with tuning_tasks and tuning_records")
    parser.add_argument("--out", type=Path, default=Path("build/study"))
    parser.add_argument("--docs", type=Path, help="a text that holds the markers of the study")
    parser.add_argument("--only", nargs="+", help="parts whose names begin with one of these")
    parser.add_argument("--seeds", type=int, default=20, help="at most so many")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds of one part")
    parser.add_argument("--runs", type=Path, help="run records of several compilers, for dispatch")
    given = parser.parse_args(argv)
    parts = [*PARTS]
    if given.runs is not None:
        arguments = ("compilers", "--runs", str(given.runs))
        parts.append(Part("compilers", "input_sensitivity.py", arguments, takes_pool=False))
    pool = Pool.load(given.pool)
    stamp = Kept(argparse.Namespace(kept=None), pool).pool
    folder = given.out / "lines"
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for part in parts:
        if given.only and not part.name.startswith(tuple(given.only)):
            continue
        if not run(part, given, stamp, folder / f"{part.name}.jsonl"):
            failed.append(part.name)
    results = {part.name: read(folder / f"{part.name}.jsonl", part, stamp) for part in parts}
    results |= {name: read_journal(given.out / file) for name, file in LIVE.items()}
    text = page(results, summary_of(pool))
    print(text)
    write_text(given.out / "study.md", text)
    if given.docs is not None:
        fill(given.docs, text, results)
    if failed:
        raise SystemExit(f"These parts failed: {', '.join(failed)}.")


def run(part: Part, given: argparse.Namespace, stamp: str, path: Path) -> bool:
    """Run a part unless its lines are there, made of this pool and by this command."""
    command = part.command(given.pool, given.out, given.seeds)
    if path.is_file() and _header(path) == _expected(part, command, stamp):
        return True
    print(f"# {part.shown(given.seeds)}", file=sys.stderr, flush=True)
    before, started = _cpu_s(), time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603 - a script of this folder
            [sys.executable, *command], stdout=subprocess.PIPE, timeout=given.limit, check=True
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"{part.name}: {error}", file=sys.stderr)
        return False
    header = {
        **_expected(part, command, stamp),
        "shown": part.shown(given.seeds),
        "cpu_s": round(_cpu_s() - before, 1),
        "wall_s": round(time.monotonic() - started, 1),
    }
    write_text(path, f"{json.dumps(header)}\n{done.stdout.decode()}")
    return True


def _expected(part: Part, command: list[str], stamp: str) -> dict[str, Any]:
    arguments = command[2:] if part.takes_pool else command[1:]
    return {
        "part": part.name,
        "pool": stamp if part.takes_pool else "",
        "arguments": arguments,
    }


def _header(path: Path) -> dict[str, Any]:
    header = json.loads(path.read_text().partition("\n")[0])
    return {name: header.get(name) for name in ("part", "pool", "arguments")}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read(path: Path, part: Part, stamp: str) -> list[dict[str, Any]]:
    """Return the header and the figures of a part; none where they are of another pool."""
    lines = read_journal(path)
    return lines if lines and lines[0]["pool"] == (stamp if part.takes_pool else "") else []


def summary_of(pool: Pool) -> dict[str, Any]:
    """Return what the pool is, for the first line of the page."""
    rows = [row for task in pool.tasks.values() for row in pool.rows(task)]
    families: dict[str, int] = {}
    for task in pool.tasks.values():
        families[task.family] = families.get(task.family, 0) + 1
    return {
        "records": len(rows),
        "ok": sum(row.is_ok for row in rows),
        "tasks": len(pool.tasks),
        "families": families,
        "mcpu": rows[0].mcpu,
        "tvm": rows[0].tool_versions.get("tvm", "?"),
    }


def fill(path: Path, text: str, results: Lines) -> None:
    """Put the tables between the markers of a text, and the pictures beside it."""
    from study_pictures import draw

    before, first, rest = path.read_text().partition(MARKERS[0])
    _, last, after = rest.partition(MARKERS[1])
    if not first or not last:
        raise SystemExit(f"`{path}` does not hold `{MARKERS[0]}` and `{MARKERS[1]}`.")
    pictures = draw(results, path.parent / "images")
    shown = "".join(f"\n![{title}](images/{picture.name})\n" for title, picture in pictures)
    write_text(path, f"{before}{first}\n{text}{shown}{last}{after}")


if __name__ == "__main__":
    main()

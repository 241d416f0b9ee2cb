"""Every verb of the command line with arguments that work, and the leaves of the command tree."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import typer.main

from graphnet_datasets import write_directory
from graphnet_datasets.benchmark.records.records import write_runs
from graphnet_datasets.cli.app import app
from graphnet_datasets.tensor_comprehensions.tables import TC_CACHE_SCHEMA
from graphnet_datasets.tensor_comprehensions.tasks.making import make_task
from graphnet_datasets.tuning import Candidate, Measurement, Origin, TrialStatus
from graphnet_datasets.tuning.records import write_tuning
from tests.benchmark.test_upstream_log import log_of
from tests.clones import make_clone
from tests.problem_sets import softmax, write_problems
from tests.scores.run_rows import FOUR
from tests.tables import chain, write_dataset
from tests.tuning.toy import make_pool

CANDIDATE = "def candidate(x):\n    return (x.relu(),)\n"
MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
SIZES = "--shape A=3,4 --shape B=4,5"
QUICK = "--compiler eager --budget 0.05 --threads 1 --memory-limit 2 --no-oracle --no-kernels"
INVOCATIONS = {
    "bisect": "cv/chain-2 --dataset {read:dataset} --out {write:folder} --threads 1 "
    "--memory-limit 2 --compiler tests.candidates:wrong_dtype",
    "calibrate": "{read:table}",
    "check": "cv/chain-2 {read:candidate} --dataset {read:dataset} --budget 0.05 --threads 1 "
    "--memory-limit 2 --no-oracle --no-kernels",
    "compare": "{read:runs} {read:runs}",
    "compilers": "--framework torch",
    "convert": "cv/chain-2 --dataset {read:dataset} --to networkx --out {write:folder} --jobs 1",
    "device": "--threads 1",
    "doctor": "",
    "export": "{write:folder} --dataset {read:dataset}",
    "import": "{read:samples} --out {write:table.parquet} --jobs 1",
    "import-log": "{read:log} --out {write:runs.parquet}",
    "kernels": "cv/chain-2 --dataset {read:dataset} --compiler tc --out {write:mine} --jobs 1",
    "list": "--dataset {read:dataset}",
    "plot": "{read:runs} --out {write:folder}",
    "push": "{read:table} org/graphs --split train --skip-validation test",
    "records check": "{read:comprehensions} --out {write:checks.jsonl}",
    "records export": "{read:pool} --out {write:pool.npz}",
    "records import": "{read:database} --out {write:mine}",
    "report": "{read:runs} --out {write:page.html}",
    "run": f"cv/chain-2 --dataset {{read:dataset}} --out {{write:folder}} {QUICK}",
    "score": "{read:runs}",
    "select": "--dataset {read:dataset} --count 1 --out {write:ids.txt}",
    "show": "cv/chain-2 --dataset {read:dataset} --svg {write:graph.svg}",
    "submit": "{read:table} {read:clone} --split train --skip-validation test",
    "tasks": "cv/chain-2 --dataset {read:dataset} --out {write:mine} --jobs 1",
    "tc bench": f"{{read:tc}} {SIZES} --runs 1",
    "tc cache": "{read:cache}",
    "tc check": "{read:tc}",
    "tc compile": f"{{read:tc}} {SIZES}",
    "problem export": "{read:problem} --dataset {read:problems} --out {write:folder}",
    "problem show": "{read:problem} --dataset {read:problems}",
    "tc from-graph": "cv/chain-2 --dataset {read:dataset}",
    "tc infer": f"{{read:tc}} {SIZES}",
    "tc interpret": f"{{read:tc}} {SIZES} --out {{write:folder}}",
    "tc package": f"{{read:tc}} {SIZES} --out {{write:folder}}",
    "tc tasks": f"{{read:tc}} {SIZES} --out {{write:mine}}",
    "tc tune": f"{{read:tc}} {SIZES} --cache {{write:tuned}} --population 1 --generations 1",
    "transform": "cv/chain-2 --dataset {read:dataset} --parts sole_op --out {write:mine} --jobs 1",
    "translate": "cv/chain-2 --dataset {read:dataset} --out {write:table.parquet}",
    "tune": "--replay {read:pool} --trials 4 --seeds 1 --tuner random --report {write:board.md}",
    "validate": "cv/chain-2 --dataset {read:dataset} --check runnable --out {write:folder}",
}
"""What to call a verb with; `{read:…}` names something of `make_inputs`, `{write:…}` a new path."""


@functools.cache
def verbs() -> tuple[str, ...]:
    """Return every command that does something, as it is typed after `graphnet`."""
    return tuple(sorted(_leaves(typer.main.get_command(app), ())))


def _leaves(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield " ".join(path)
        return
    context = typer.Context(command)
    for name in command.list_commands(context):  # adds the commands of plugins
        yield from _leaves(command.get_command(context, name), (*path, name))


def words_of(verb: str, inputs: Mapping[str, Path], out: Path) -> list[str]:
    """Return the words after `graphnet` for one verb, with these inputs and results below `out`."""
    words = []
    for word in f"{verb} {INVOCATIONS[verb]}".split():
        kind, colon, name = word.strip("{}").partition(":")
        if word.startswith("{") and colon:
            word = str(inputs[name] if kind == "read" else out / name)
        words.append(word)
    return words


def make_inputs(root: Path) -> dict[str, Path]:
    """Write one of everything that a verb reads."""
    dataset = write_dataset(root / "dataset")
    write_directory(chain("a/relu", 2), root / "samples" / "relu")
    write_runs([{**row, "run_id": str(i)} for i, row in enumerate(FOUR)], root / "runs.parquet")
    (root / "mm.tc").write_text(MM)
    (root / "mine.py").write_text(CANDIDATE)
    (root / "upstream.log").write_text("\n".join(log_of("a/relu")))
    product = make_task(MM, "mm", [(3, 4), (4, 5)])
    crash = Measurement.of(Candidate(product.task_id, "{}", Origin.RANDOM), TrialStatus.CRASH)
    pool = make_pool(each=6)
    measured = [row for task in pool.tasks.values() for row in pool.rows(task)]
    measured = [dataclasses.replace(row, record_id=str(i)) for i, row in enumerate(measured)]
    notes = {"bytes": 0, "eager_t": None}
    (problem,) = write_problems(root / "problems", [softmax(4, 8, 1)], notes)
    empty = TC_CACHE_SCHEMA.empty_table()
    pq.write_table(empty, root / "cache.parquet")
    return {
        "candidate": root / "mine.py",
        "clone": make_clone(root / "clone"),
        "problem": Path(problem),
        "problems": root / "problems",
        "dataset": dataset,
        "table": dataset / "nlp" / "train-0000.parquet",
        "samples": root / "samples",
        "runs": root / "runs.parquet",
        "tc": root / "mm.tc",
        "log": root / "upstream.log",
        "cache": root / "cache.parquet",
        "database": Path(__file__).parents[1] / "tuning" / "tvm_database",
        "comprehensions": write_tuning(root / "comprehensions", [product], [crash]),
        "pool": write_tuning(root / "pool", pool.tasks.values(), measured),
    }

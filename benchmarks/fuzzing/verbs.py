"""Public functions of the library, each on a mutated row, record, file or folder."""

from __future__ import annotations

import contextlib
import io
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphnet_datasets import (
    Sample,
    calibrate,
    error_aware_speedup_score,
    export_dataset,
    import_log,
    load_dataset,
    make_inputs,
    materialize,
    read_directory,
    run,
    speedup_score,
    to_metric_inputs,
    translate,
    validate,
    write_directory,
    write_table,
)
from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.analysis.effects import find_effects
from graphnet_datasets.analysis.randomness import random_outputs
from graphnet_datasets.benchmark import TimingSettings
from graphnet_datasets.benchmark.judging.output_files import read_outputs_file
from graphnet_datasets.isolation import keep_servers
from graphnet_datasets.report import draw_graph, plot_runs, write_page, write_site
from graphnet_datasets.scores import by_sample, compare, from_metric_inputs, log_contributions
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.transforms import (
    Cutter,
    at_smaller_sizes,
    autocast,
    backward,
    cast,
    cut,
    decompose,
    find_fusible,
    make_ladder,
    recompose,
    reify,
    spread_sizes,
    symbolise,
)
from graphnet_datasets.tuning.models.arrays import load_arrays
from graphnet_datasets.tuning.records import read_records, read_tasks

from .mutations import mutate_bytes, mutate_folder, mutate_row
from .processes import AT_END

LIMIT_BYTES = 250_000_000
"""Memory limit of each verb; its process may take a fifth more (`processes.MAX_DATA_BYTES`)."""

TIME_LIMIT_S = 60.0
_TIMING = TimingSettings(min_pairs=3, budget_s=0.02, warmup_s=0.01, min_warmup_calls=1)


def _run_module(sample: Sample) -> None:
    limits = {"memory_limit_bytes": LIMIT_BYTES, "time_limit_s": TIME_LIMIT_S}
    module = materialize(sample, **limits)
    inputs = make_inputs(sample, **limits)
    # Whatever a graph raises when it runs is the framework's own error; a signal is what counts.
    with contextlib.suppress(Exception):
        module(**inputs)


_kept = contextlib.ExitStack()


def _keep_servers() -> None:
    """Keep the worker processes of this process from its first isolated call to its end."""
    if not AT_END:
        _kept.enter_context(keep_servers())
        AT_END.append(_kept.close)


def _validate(sample: Sample) -> None:
    _keep_servers()
    validate(sample, ["serializable", "runnable"], memory_limit_bytes=LIMIT_BYTES, timeout_s=30)


def _run(sample: Sample) -> None:
    _keep_servers()
    compiler = "eager" if sample.framework == "torch" else "paddle-eager"
    records = run(
        [sample], compiler=compiler, memory_limit_bytes=LIMIT_BYTES, num_input_sets=1,
        alone_calls=1, has_oracle=False, has_profile=False, num_threads=1, timing=_TIMING,
    )  # fmt: skip
    for record in records:
        peak_bytes = record["candidate_peak_memory_bytes"] or 0
        if peak_bytes > 1.2 * LIMIT_BYTES:
            raise MemoryError(f"A run under a limit of {LIMIT_BYTES} bytes took {peak_bytes}.")


def _of_parts(sample: Sample) -> None:
    parts = decompose(sample)
    recompose(sample, parts.parts)
    find_fusible(Cutter(sample))
    cut(sample, range(min(2, sample.num_ops)))


def _ladder(sample: Sample) -> None:
    spread_sizes(sample, 3, memory_limit_bytes=LIMIT_BYTES)
    list(make_ladder(sample, 2, memory_limit_bytes=LIMIT_BYTES))


def _table(sample: Sample) -> None:
    write_table([sample], "graph.parquet")
    load_dataset("graph.parquet")


def _folder_of(sample: Sample) -> None:
    read_directory(write_directory(sample, "written"))


ROWS: Mapping[str, Callable[[Sample], Any]] = {
    "materialize": _run_module,
    "make_inputs": lambda sample: make_inputs(sample, mode="fresh", memory_limit_bytes=LIMIT_BYTES),
    "calibrate": lambda sample: calibrate(sample, memory_limit_bytes=LIMIT_BYTES),
    "cast": lambda sample: cast(sample, "float16"),
    "cast to float64": lambda sample: cast(sample, "float64"),
    "autocast": autocast,
    "backward": backward,
    "decompose": _of_parts,
    "symbolise": lambda sample: symbolise(sample, memory_limit_bytes=LIMIT_BYTES),
    "at_smaller_sizes": lambda sample: at_smaller_sizes(sample, 0.5),
    "make_ladder": _ladder,
    "reify": lambda sample: reify(sample, memory_limit_bytes=LIMIT_BYTES),
    "translate": translate,
    "to_source": lambda sample: sample.to_source(),
    "draw_graph": draw_graph,
    "derived_columns": derived_columns,
    "analysis": lambda sample: (find_effects(sample), random_outputs(sample)),
    "select_rows": lambda sample: select_rows([sample]),
    "write_table": _table,
    "write_directory": _folder_of,
    "validate": _validate,
    "run": _run,
}
"""Verbs that take a sample.

They run in the process of the harness, whose memory is limited, except `validate` and `run`, which
use worker processes.
"""

SHARES = {
    "validate": 0.3, "run": 0.1, "symbolise": 0.3, "backward": 0.3, "write_page": 0.1,
    "write_site": 0.1, "plot_runs": 0.1,
}  # fmt: skip
"""Calls of a verb, as a share of the calls of each other verb of its kind.

A call of these verbs takes seconds: it starts processes, traces a graph many times, or plots.
"""


def _page(rows: Any) -> None:
    write_page({"runs": rows}, "page.html")


RECORDS: Mapping[str, Callable[[Any], Any]] = {
    "speedup_score": speedup_score,
    "error_aware_speedup_score": error_aware_speedup_score,
    "upstream": lambda rows: speedup_score(rows, variant="upstream"),
    "to_metric_inputs": lambda rows: _metric(to_metric_inputs(rows)),
    "by_sample": by_sample,
    "compare": lambda rows: compare(rows, rows),
    "log_contributions": log_contributions,
    "write_page": _page,
    "write_site": lambda rows: write_site({"runs": rows}, "site", dataset=None),
    "plot_runs": lambda rows: plot_runs({"runs": rows}, "plots"),
}


def _metric(inputs: Any) -> None:
    from_metric_inputs(inputs.predictions, inputs.references)


FOLDERS: Mapping[str, Callable[[Path], Any]] = {
    "read_directory": read_directory,
    "load_dataset": lambda folder: load_dataset(folder),
    "export_dataset": lambda folder: export_dataset("exported", folder),
    "read_records": read_records,
    "read_tasks": read_tasks,
    "import_log": lambda folder: import_log(next(folder.rglob("*.log"))),
}
NPZ: Mapping[str, Callable[[Path], Any]] = {
    "load_arrays": lambda path: load_arrays(path, "gbdt"),
    "read_outputs_file": read_outputs_file,
}


class Attempts:
    """Makes the mutations of one kind, each as a call of one verb in an empty folder."""

    def __init__(
        self,
        kind: str,
        rows: Sequence[dict[str, Any]],
        folders: Mapping[str, Path],
        files: Sequence[bytes],
    ) -> None:
        self.kind, self.rows, self.folders, self.files = kind, rows, folders, files
        self.verbs: Mapping[str, Callable[[Any], Any]] = {
            "rows": ROWS, "records": RECORDS, "folders": FOLDERS, "traces": FOLDERS, "npz": NPZ,
        }[kind]  # fmt: skip

    def names(self) -> list[str]:
        """Return the verbs that this kind of input is spread over."""
        if self.kind == "traces":
            return ["read_records", "read_tasks"]
        if self.kind == "folders":
            return [name for name in self.verbs if name not in ("read_records", "read_tasks")]
        return list(self.verbs)

    def make(self, verb: str, chance: random.Random) -> None:
        """Call `verb` on a new mutation, in the working directory.

        Raises:
            GraphNetError: the verb refuses it.
        """
        if self.kind == "rows":
            self.verbs[verb](
                Sample.from_row(mutate_row(chance.choice(self.rows), chance, self.rows))
            )
        elif self.kind == "records":
            rows = [
                mutate_row(row, chance, self.rows) if chance.random() < 0.5 else row
                for row in chance.sample(list(self.rows), min(6, len(self.rows)))
            ]
            self.verbs[verb](rows)
        elif self.kind == "npz":
            path = Path("arrays.npz")
            path.write_bytes(_mutate_npz(chance.choice(self.files), chance))
            self.verbs[verb](path)
        else:
            key = verb if verb in self.folders else self.kind
            shutil.copytree(self.folders[key], "folder", symlinks=True)
            mutate_folder(Path("folder"), chance)
            if verb == "import_log" and not any(Path("folder").rglob("*.log")):
                return
            self.verbs[verb](Path("folder"))


def _mutate_npz(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes of an archive with changed bytes, or with other arrays under its names."""
    if chance.random() < 0.6:
        return mutate_bytes(data, chance)
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    name = chance.choice(sorted(arrays))
    arrays[name] = chance.choice(
        (np.zeros(0), np.zeros((0, 2**40)), np.full(3, np.nan), np.arange(9).reshape(3, 3),
         np.frombuffer(mutate_bytes(arrays[name].tobytes(), chance), np.uint8))
    )  # fmt: skip
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


@contextlib.contextmanager
def empty_folder() -> Any:
    """Run in an empty working directory that is removed afterwards."""
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        yield Path(directory)

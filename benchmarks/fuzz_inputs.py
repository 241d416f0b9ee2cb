"""Mutate rows, records, traces, folders and files, and call public functions on them.

    python benchmarks/fuzz_inputs.py [--rows 4000] [--records 2000] [--traces 1000]
        [--folders 2000] [--npz 1000] [--verbs REGEX] [--seed 0] [--first 0] [--out FILE]

Each mutation is given to one verb, in a forked process that makes thousands of calls, with a memory
limit of a fifth more than the verb's own, in an empty working directory. Counted are signals,
exceptions that are not the library's (`GraphNetError`), calls that compute without end, files that
appear outside of the working directory, and processes and temporary files that are left. Prints one
JSON object per verb and a summary. The exit status is 1 if there was any of these.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
KINDS = {"rows": 4000, "records": 2000, "traces": 1000, "folders": 2000, "npz": 1000}
CALL_TIMEOUT_S = 120.0
"""Processor time after which a call counts as one without end."""


def main() -> int:
    """Run the mutations in a sandbox and look at what is left in it."""
    options = _options()
    if options.sandbox:
        return _fuzz(options)
    before = _state_of_repository()
    with tempfile.TemporaryDirectory(prefix="fuzz-inputs-") as directory:
        sandbox = Path(directory)
        for name in ("home", "tmp", "work"):
            (sandbox / name).mkdir()
        environment = {
            **{name: value for name, value in os.environ.items() if "TOKEN" not in name},
            "HOME": str(sandbox / "home"), "TMPDIR": str(sandbox / "tmp"), "HF_HUB_OFFLINE": "1",
            "XDG_CACHE_HOME": str(sandbox / "home" / ".cache"), "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1", "GLOG_minloglevel": "4", "FLAGS_call_stack_level": "0",
            # Importing `torch._dynamo` makes this directory.
            "TORCHINDUCTOR_CACHE_DIR": str(sandbox / "home" / "inductor"),
            "MPLCONFIGDIR": str(sandbox / "home" / "matplotlib"), "GRAPHNET_FUZZ": directory,
        }  # fmt: skip
        command = [
            sys.executable,
            str(Path(__file__).resolve()),
            *sys.argv[1:],
            "--sandbox",
            directory,
        ]
        code = subprocess.run(command, env=environment, check=False).returncode  # noqa: S603
        left = {
            "processes_left": _processes_with(directory),
            "files_left": sorted(path.name for path in (sandbox / "tmp").iterdir()),
            "files_outside": sorted(
                {path.name for path in sandbox.iterdir()} - {"home", "tmp", "work"}
            )
            + ([] if before == _state_of_repository() else ["the repository"]),
        }
    print(json.dumps({"benchmark": "fuzz_inputs", "seed": options.seed, **left}), flush=True)
    return int(bool(code or any(left.values())))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for kind, count in KINDS.items():
        parser.add_argument(f"--{kind}", type=int, default=count, help=f"mutations of {kind}")
    parser.add_argument("--verbs", default="", help="only verbs whose name matches")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation")
    parser.add_argument("--out", type=Path, help="a file for the details of what went wrong")
    parser.add_argument("--sandbox", help=argparse.SUPPRESS)
    return parser.parse_args()


def _fuzz(options: argparse.Namespace) -> int:
    warnings.simplefilter("ignore")
    from fuzzing.processes import run_operators
    from fuzzing.seeds import load_attempts
    from fuzzing.verbs import SHARES, empty_folder

    from graphnet_datasets.errors import GraphNetError

    sandbox = Path(options.sandbox)
    log = sandbox / "work" / "foreign.jsonl"
    num_mutations = num_foreign = num_wrong = 0
    for kind, attempts in load_attempts(sandbox / "work", {k: getattr(options, k) for k in KINDS}):
        verbs = [verb for verb in attempts.names() if re.search(options.verbs, verb)]
        if not verbs or not getattr(options, kind):
            continue
        shares = [SHARES.get(verb, 1.0) for verb in verbs]
        most_calls = getattr(options, kind) / sum(shares)

        def attempt(verb: str, number: int, attempts: Any = attempts) -> tuple[str, Any]:
            seed = f"{options.seed}:{attempts.kind}:{verb}:{options.first + number}"
            return seed, _call(attempts, verb, seed, log, empty_folder, GraphNetError)

        for verb, share in zip(verbs, shares, strict=True):
            num_calls = math.ceil(share * most_calls)
            ((_, outcome),) = run_operators(
                [verb], attempt, num_calls, call_timeout_s=CALL_TIMEOUT_S
            )
            lines = log.read_text().splitlines() if log.exists() else []
            foreign = [line for line in map(json.loads, lines) if line["verb"] == verb]
            log.unlink(missing_ok=True)
            num_mutations += outcome.calls
            num_foreign += len(foreign)
            num_wrong += len(foreign) + len(outcome.deaths) + len(outcome.slow)
            kinds = sorted({f"{line['type']}: {line['where']}" for line in foreign})
            line = {"kind": kind, "verb": verb, **dataclasses.asdict(outcome), "foreign": kinds}
            print(json.dumps(line), flush=True)
            if options.out is not None:
                with options.out.open("a") as file:
                    file.writelines(json.dumps(each) + "\n" for each in (line, *foreign))
    summary = {"mutations": num_mutations, "foreign": num_foreign, "wrong": num_wrong}
    print(json.dumps({"benchmark": "fuzz_inputs", **summary}), flush=True)
    return int(bool(num_wrong))


def _call(
    attempts: Any, verb: str, seed: str, log: Path, empty_folder: Any, own: type[Exception]
) -> Callable[[], bool]:
    """Return what makes one mutation and calls a verb: true if the verb takes it."""

    def make() -> bool:
        with empty_folder():
            try:
                attempts.make(verb, random.Random(seed))  # noqa: S311 - no secret
            except own:
                return False
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                ours = [frame for frame in frames if "graphnet_datasets/" in frame.filename]
                place = ours[-1] if ours else frames[-1]
                line = {
                    "verb": verb, "seed": seed, "type": type(error).__name__,
                    "message": str(error)[:300],
                    "where": f"{place.filename.rpartition('graphnet_datasets/')[2]}:{place.lineno}",
                }  # fmt: skip
                with log.open("a") as file:
                    file.write(json.dumps(line) + "\n")
        return True

    return make


def _processes_with(mark: str) -> list[int]:
    """Return the processes whose environment has the mark of this sandbox."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"GRAPHNET_FUZZ={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _state_of_repository() -> str:
    command = ["git", "-C", str(REPOSITORY), "status", "--porcelain"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())

"""Timed runs on a bare machine with a GPU, from a folder with everything they need.

`python -m builder gpu-folder` packs the folder and copies this file into it. The machine needs
Python and torch, and no network:

    python3 FOLDER/records.py --seconds 480 --out RECORDS

The script ends within the given seconds and writes one file, `records.parquet`.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import dataclasses
import importlib.util
import json
import os
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

PLAN, WHEELS, CACHES = "plan.json", "wheels", "caches"
"""Contents of a folder beside this file and the rows."""

RECORDS = "records.parquet"
RUNS, SITE, CACHE = "runs", "site", "cache"
"""Subdirectories of the working directory: records, unpacked wheels, unpacked compile caches."""

STARTED = "GRAPHNET_RECORDS_STARTED"
"""Environment variable with the start time, set when the wheels can be imported."""

SAVE_EVERY_S = 20.0
SAVING_S = 25.0
"""Seconds before the end at which a run is stopped, to end processes and save records."""

AGAIN_AFTER_S = 10.0
"""Seconds after which a run that does not stop is interrupted again."""

MIN_SLICE_S = 10.0
"""Minimum remaining seconds for another slice of rows."""

MAX_LOST = 8
"""Failures in a row after which the GPU is checked."""

SPARE_PROCESSORS = 3
"""Processors for this process and for the sample that is being timed."""

MAX_REASONS, MAX_CHARACTERS = 5, 160
"""Limits of the reasons of failures that are printed."""


class TimeIsUp(KeyboardInterrupt):
    """Raised when the time is over. Like Ctrl-C, it ends a run, which keeps its records."""


class DeviceLostError(KeyboardInterrupt):
    """The device no longer responds, so that all further runs would fail."""


@dataclasses.dataclass(frozen=True)
class Arm:
    """A compiler with options and settings, and the samples of a file to run.

    `rows` are pairs of a position in the queue and the id of a sample. Stages run one after the
    other, or share the time; `slice_size` is the number of positions in a slice.
    """

    name: str
    stage: str
    file: str
    compiler: str
    options: Mapping[str, Any]
    settings: Mapping[str, Any]
    slice_size: int
    rows: Sequence[tuple[int, str]] = ()


@dataclasses.dataclass
class Tally:
    """The records and the seconds of one arm."""

    seconds: float = 0.0
    statuses: Counter[str] = dataclasses.field(default_factory=Counter)
    reasons: Counter[str] = dataclasses.field(default_factory=Counter)

    @property
    def num_records(self) -> int:
        """Number of records."""
        return self.statuses.total()


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of `run`: arms with the same options and settings, and the rows that they lack."""

    arms: tuple[Arm, ...]
    ids: tuple[str, ...]


def read_plan(folder: Path, device_name: str) -> list[Arm]:
    """Return the arms of a folder, with the rows that lack a record of this device."""
    plan = json.loads((folder / PLAN).read_text())
    done = plan["done"].get(device_name, {})
    arms = []
    for fields in plan["arms"]:
        is_done = frozenset(done.get(fields["name"], ()))
        rows = [(place, name) for place, name in fields["rows"] if name not in is_done]
        arms.append(Arm(**{**fields, "rows": rows}))
    return arms


def slices(arms: Sequence[Arm]) -> Iterator[list[Call]]:
    """Yield the calls for each slice of consecutive positions, of the arms of one stage.

    All arms run a slice before the next slice, so that an interrupted run has records of the same
    samples under every arm.

    >>> first = Arm("a", "parts", "f", "x", {}, {}, 2, [(0, "s0"), (1, "s1"), (2, "s2")])
    >>> second = Arm("b", "parts", "f", "y", {}, {}, 2, [(2, "s2")])
    >>> [[(len(call.arms), call.ids) for call in calls] for calls in slices([first, second])]
    [[(1, ('s0', 's1'))], [(2, ('s2',))]]
    """
    numbers = sorted({place // arm.slice_size for arm in arms for place, _ in arm.rows})
    for number in numbers:
        lacking: dict[tuple[str, str, str], list[Arm]] = defaultdict(list)
        for arm in arms:
            alike = json.dumps([arm.options, arm.settings], sort_keys=True)
            for place, sample_id in arm.rows:
                if place // arm.slice_size == number:
                    lacking[arm.file, alike, sample_id].append(arm)
        calls: dict[tuple[str, ...], Call] = {}
        for (_, _, sample_id), together in lacking.items():
            key = tuple(arm.name for arm in together)
            ids = calls[key].ids if key in calls else ()
            calls[key] = Call(tuple(together), (*ids, sample_id))
        yield list(calls.values())


class Session:
    """Runs calls until the time is over, and maintains one file of all records."""

    def __init__(self, folder: Path, out: Path, work: Path, device: str, num_jobs: int) -> None:
        self.folder, self.out, self.work = folder, out, work
        self.device, self.num_jobs = device, num_jobs
        self.tallies: dict[str, Tally] = defaultdict(Tally)
        self.first_record_s: float | None = None
        self.ending = ""
        self._began = self._saved = time.monotonic()
        self._earlier = self._run_ids()
        self._failed: list[str] = []
        self._lost: list[str] = []
        self._rows: dict[str, dict[str, dict[str, Any]]] = {}

    def run(
        self,
        stages: Mapping[str, Iterator[list[Call]]],
        shares: Mapping[str, float],
        seconds: float,
    ) -> None:
        """Run slices of stages until none is left or the time is over.

        The next slice comes from the stage with the least time relative to its share. Stages
        without a share follow one after the other.
        """
        end = time.monotonic() + seconds
        spent = dict.fromkeys(stages, 0.0)
        waiting = dict(stages)
        try:
            with ends_after(seconds):
                while waiting and time.monotonic() < end - MIN_SLICE_S:
                    shared = [name for name in waiting if shares.get(name)]
                    name = min(shared, key=lambda name: spent[name] / shares[name], default=None)
                    name = name or next(iter(waiting))
                    calls = next(waiting[name], None)
                    if calls is None:
                        del waiting[name]
                        continue
                    began = time.monotonic()
                    for call in calls:
                        self._call(call)
                    spent[name] += time.monotonic() - began
            self.ending = "the seconds were over" if waiting else "every sample has its records"
        except TimeIsUp:
            self.ending = "the seconds were over"
        except DeviceLostError:
            self.ending = "the device was lost"

    def save(self) -> None:
        """Write all records to one file; print a failure, because a later attempt may succeed."""
        from graphnet_datasets.benchmark import read_runs, write_runs
        from graphnet_datasets.errors import DatasetNotFoundError, GraphNetError

        self._saved = time.monotonic()
        try:
            records = read_runs(self.work / RUNS)
            is_lost = [sample_id in self._lost for sample_id in records["sample_id"].to_pylist()]
            if any(is_lost):
                places = [place for place, lost in enumerate(is_lost) if not lost]
                records = records.take(places)
            write_runs(records, self.out / RECORDS)
        except DatasetNotFoundError:
            return
        except (GraphNetError, OSError) as error:
            print(f"The records could not be written to `{self.out}` yet: {error}", file=sys.stderr)

    def summary(self, arms: Sequence[Arm]) -> Iterator[str]:
        """Yield lines: records and records per minute of each arm, failures, and the next step."""
        first = "no record" if self.first_record_s is None else f"{self.first_record_s:.0f} s"
        yield f"Ended since {self.ending}; first record after {first}."
        for arm in arms:
            tally = self.tallies.get(arm.name, Tally())
            counts = ", ".join(f"{count} {name}" for name, count in tally.statuses.most_common())
            rate = 60 * tally.num_records / tally.seconds if tally.seconds else 0.0
            yield (
                f"{arm.name}: {tally.num_records} of {len(arm.rows)} records ({counts or 'none'}), "
                f"{rate:.1f} per minute in {tally.seconds:.0f} s"
            )
            for reason, count in tally.reasons.most_common(MAX_REASONS):
                yield f"    {count} x {reason}"
        num_left = sum(len(arm.rows) - self.tallies[arm.name].num_records for arm in arms)
        yield (
            f"{num_left} records are left. Next: python -m builder gpu-merge "
            f"{self.out / RECORDS}, then make gpu-folder"
        )

    def _call(self, call: Call) -> None:
        from graphnet_datasets.benchmark.runner import run_records
        from graphnet_datasets.errors import GraphNetError

        first = call.arms[0]
        rows = self._rows_of(first.file)
        cache = self.work / CACHE
        began = time.monotonic()
        try:
            run_records(
                [rows[sample_id] for sample_id in call.ids],
                [arm.compiler for arm in call.arms],
                self.device,
                self.work / RUNS,
                options=first.options,
                jobs=self.num_jobs,
                on_record=lambda record: self._take(call, record),
                **({"compile_cache": str(cache)} if cache.is_dir() else {}),
                **first.settings,
            )
        except GraphNetError as error:
            for arm in call.arms:
                self.tallies[arm.name].reasons[f"not run: {error}"[:MAX_CHARACTERS]] += 1
            self._look_for_device()
        finally:
            for arm in call.arms:
                self.tallies[arm.name].seconds += (time.monotonic() - began) / len(call.arms)
            self.save()

    def _take(self, call: Call, record: Mapping[str, Any]) -> None:
        if record["run_id"] in self._earlier:
            return
        if self.first_record_s is None:
            self.first_record_s = time.monotonic() - self._began
        (arm,) = (arm for arm in call.arms if arm.compiler == record["compiler"])
        tally = self.tallies[arm.name]
        tally.statuses[record["status"]] += 1
        if record["status"] == "ok":
            self._failed.clear()
        else:
            lines = (record["error_message"] or "").strip().splitlines() or [""]
            reason = f"{record['status']}, {record['reason']}: {lines[-1]}"
            tally.reasons[reason[:MAX_CHARACTERS]] += 1
            self._failed.append(record["sample_id"])
            if len(self._failed) >= MAX_LOST:
                self._look_for_device()
        if time.monotonic() - self._saved > SAVE_EVERY_S:
            self.save()

    def _look_for_device(self) -> None:
        """Raise `DeviceLostError` if the GPU is lost; its last failures are not recorded."""
        if not device_name(self.device):
            self._lost = list(self._failed)
            raise DeviceLostError
        self._failed.clear()

    def _run_ids(self) -> frozenset[str]:
        from graphnet_datasets.benchmark import read_runs
        from graphnet_datasets.errors import DatasetNotFoundError

        try:
            return frozenset(read_runs(self.work / RUNS)["run_id"].to_pylist())
        except DatasetNotFoundError:
            return frozenset()

    def _rows_of(self, file: str) -> dict[str, dict[str, Any]]:
        if file not in self._rows:
            from graphnet_datasets.storage.table import read_table

            rows = read_table(self.folder / file).to_pylist()
            self._rows[file] = {row["id"]: row for row in rows}
        return self._rows[file]


@contextlib.contextmanager
def ends_after(seconds: float) -> Iterator[None]:
    """Raise `TimeIsUp` in the main thread after `seconds`, or when the process is terminated.

    Repeat this every `AGAIN_AFTER_S` within the block, in case code ignores it.
    """

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise TimeIsUp

    earlier = {name: signal.signal(name, end) for name in (signal.SIGALRM, signal.SIGTERM)}
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), AGAIN_AFTER_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for name, handler in earlier.items():
            signal.signal(name, handler)


def device_name(device: str) -> str:
    """Return the name of a GPU, "" if the driver does not list it, or `cpu`."""
    if not device.startswith("cuda"):
        return device
    from graphnet_datasets.benchmark.records.environment import describe_environment

    return (describe_environment(device)["gpu"] or {}).get("name", "")


def unpack_wheels(folder: Path, work: Path) -> Path:
    """Unpack the wheels of a folder, and return the folder to import them from."""
    site = work / SITE
    shutil.rmtree(site, ignore_errors=True)
    for wheel in sorted((folder / WHEELS).glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)  # noqa: S202 (a folder of our own)
    compileall.compile_dir(site, quiet=2, workers=0)
    return site


def unpack_caches(folder: Path, work: Path) -> None:
    """Unpack the compile caches of a folder, in place of those of an earlier one."""
    shutil.rmtree(work / CACHE, ignore_errors=True)
    for cache in sorted((folder / CACHES).glob("*.tar.xz")):
        with tarfile.open(cache) as archive:
            archive.extractall(work / CACHE, filter="data")


def main() -> int:
    """Unpack the folder beside this file, run its plan, and print a summary."""
    started = float(os.environ.get(STARTED, time.time()))
    options = _parser().parse_args()
    here = Path(__file__).resolve()
    if STARTED not in os.environ and importlib.util.find_spec("graphnet_datasets") is None:
        site = unpack_wheels(here.parent, options.work)
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
        added = {STARTED: str(started), "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, str(here), *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **added})  # noqa: S606 (this file again)
    unpack_caches(here.parent, options.work)
    name = device_name(options.device)
    if not name:
        print(f"The driver lists no device `{options.device}`.", file=sys.stderr)
        return 1
    arms = [
        dataclasses.replace(arm, rows=[row for row in arm.rows if row[0] < options.limit])
        for arm in read_plan(here.parent, name)
        if not options.arm or arm.name in options.arm
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    session = Session(here.parent, options.out, options.work, options.device, options.jobs)
    print(f"{name}, {options.jobs} samples at a time", flush=True)
    _run(session, arms, dict(options.share), started + options.seconds - SAVING_S - time.time())
    print("\n".join(session.summary(arms)), flush=True)
    return 0


def _run(
    session: Session, arms: Sequence[Arm], shares: Mapping[str, float], seconds: float
) -> None:
    from graphnet_datasets.benchmark.handover import COMPILERS_VARIABLE, OPTIONS_VARIABLE
    from graphnet_datasets.isolation import keep_servers, kill_descendants

    stages: dict[str, list[Arm]] = defaultdict(list)
    for arm in arms:
        stages[arm.stage].append(arm)
    try:
        # The process that workers are forked from serves the arms of all calls.
        with keep_servers(2, ignoring=(COMPILERS_VARIABLE, OPTIONS_VARIABLE)):
            session.run({name: slices(some) for name, some in stages.items()}, shares, seconds)
    finally:
        kill_descendants()
        session.save()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--seconds", type=float, default=480.0, help="total time in seconds, including the start"
    )
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "records")))
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--jobs", type=int, default=max(1, len(os.sched_getaffinity(0)) - SPARE_PROCESSORS),
        help="samples at a time; default: processors - 3",
    )  # fmt: skip
    parser.add_argument("--arm", action="append", help="only this arm of the plan (repeatable)")
    parser.add_argument(
        "--limit",
        type=int,
        default=sys.maxsize,
        help="number of first positions of the queue to use",
    )
    parser.add_argument(
        "--share", type=_share, action="append", default=[], metavar="STAGE=SHARE",
        help="the share of the time of a stage (repeatable); default: stage after stage",
    )  # fmt: skip
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir(), "gpu-records"))
    return parser


def _share(text: str) -> tuple[str, float]:
    stage, _, share = text.partition("=")
    return stage, float(share)


if __name__ == "__main__":
    sys.exit(main())

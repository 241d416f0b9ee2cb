"""Worker jobs, written by the parent and read by the child.

A job is passed between processes as JSON, exclusively by `to_payload` and `from_payload`.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ..compilers.builtin import PROGRAMS
from ..compilers.registry import find_entry
from ..compilers.sources import directory_of_package
from .draw_plan import DrawPlan
from .handover import DrawnCalls, JudgedCall, read_judged
from .settings import Settings

OWN_PACKAGE = __name__.partition(".")[0]

Kind: TypeAlias = Literal[
    "compiler",
    "peaks",
    "candidate",
    "eager_alone",
    "eager_in_turns",
    "eager_varied",
    "candidate_varied",
]
"""The kinds of jobs: inspect a compiler, measure the device's peak rates, run a candidate next to
eager, run eager alone on the judged calls, run eager while a candidate runs in another process,
or run eager or a candidate with other sizes and numbers.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Turns:
    """The pipes with which two processes pass the turn to each other.

    `eager_ms` are known times of eager. `is_fresh` states whether inputs were redrawn in the
    doubted run.
    """

    of_eager: str
    of_candidate: str
    eager_ms: tuple[float, ...]
    is_fresh: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerJob:
    """One job of a worker.

    `settings` are the settings of the run with the machine-dependent values filled in: the number
    of threads and the memory limit. `compiler` is the name by which the worker finds it. `again`
    are calls whose inputs the first pairs use, and `judged` are calls that eager repeats. With
    `is_first` eager also computes the outputs of the first call, its times and the oracle.
    `is_fresh` states whether inputs of later sets are redrawn. `turns` is set if two processes take
    turns. `plan` is the draw plan of a graph with random outputs, and `draws` are the calls with
    different seeds that eager repeats. `is_known_to_fit` states that an earlier process has checked
    the sample's memory against the limits. `turnstile` is the pipe from which a byte is read before
    each timed phase, or "" if no other job is running. `restores_state` restores state outside the
    graph after each call of the candidate. `varying` is the plan of calls with other sizes and
    numbers (`VaryingPlan.to_json`), or empty if eager should make it. `compile_cache` is the folder
    of carried caches, which the JSON form of the settings does not contain, or "".
    """

    kind: Kind
    device: str
    settings: Settings
    framework: str = ""
    compiler: str = ""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    again: tuple[JudgedCall, ...] = ()
    judged: tuple[JudgedCall, ...] = ()
    is_first: bool = True
    is_fresh: bool = True
    turns: Turns | None = None
    plan: DrawPlan | None = None
    draws: DrawnCalls | None = None
    is_known_to_fit: bool = False
    turnstile: str = ""
    restores_state: bool = False
    varying: Mapping[str, Any] | None = None
    compile_cache: str = ""

    @property
    def threads(self) -> int:
        """The number of threads that a sample may use."""
        return self.settings.threads

    @property
    def reads(self) -> list[str]:
        """The files and folders that the compiler and its options name.

        The options of a repeated run come from a record, which may be untrusted.
        """
        options = [] if self.again else self.options.values()
        paths = [value for value in options if isinstance(value, str)]
        module, _, _ = self.compiler.rpartition(":")
        if module.endswith(".py"):
            paths.append(str(directory_of_package(Path(module))))
        if self.compile_cache:
            paths.append(self.compile_cache)
        return [path for path in paths if Path(path).is_absolute()]

    @property
    def executes(self) -> list[str]:
        """The programs, or folders of programs, that the compiler may start.

        A compiler outside of this library is the user's own code and may start any program.
        """
        if not self.compiler:
            return []
        entry = find_entry(self.compiler, self.framework)
        if entry.reference.startswith(f"{OWN_PACKAGE}."):
            return [
                path for name in PROGRAMS.get(self.compiler, ()) if (path := shutil.which(name))
            ]
        module, _, _ = entry.reference.rpartition(":")
        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
        return [*filter(None, folders), *([str(Path(module).parent)] if "/" in module else [])]

    @property
    def writes(self) -> list[str]:
        """The pipes with which two processes take turns."""
        return [] if self.turns is None else [self.turns.of_eager, self.turns.of_candidate]

    def to_payload(self) -> dict[str, Any]:
        """Return the job as a JSON-compatible object."""
        payload = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return payload | {
            "settings": self.settings.to_json(),
            "options": dict(self.options),
            "again": [call.to_json() for call in self.again],
            "judged": [call.to_json() for call in self.judged],
            **{
                name: None if value is None else dataclasses.asdict(value)
                for name, value in (
                    ("turns", self.turns),
                    ("plan", self.plan),
                    ("draws", self.draws),
                )
            },
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> WorkerJob:
        """Return the job that `to_payload` serialized.

        >>> job = WorkerJob(kind="candidate", device="cpu", settings=Settings(), compiler="eager")
        >>> WorkerJob.from_payload(job.to_payload()) == job
        True
        """
        turns = payload["turns"]
        if turns is not None:
            turns = Turns(**{**turns, "eager_ms": tuple(turns["eager_ms"])})
        plan, draws = payload["plan"], payload["draws"]
        arguments = {
            "plan": plan and DrawPlan(plan["work"], tuple(plan["outputs"]), tuple(plan["inputs"])),
            "draws": draws and DrawnCalls(**draws),
            "settings": Settings.from_json(payload["settings"]),
            "again": tuple(read_judged(payload["again"])),
            "judged": tuple(read_judged(payload["judged"])),
            "turns": turns,
        }
        return cls(**{**payload, **arguments})

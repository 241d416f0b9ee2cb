"""What a worker is told to do: one job, written by the parent and read by the child.

It crosses the process as JSON, through `to_payload` and `from_payload` and nothing else.
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
"""What a worker does: look at a compiler, measure the device's peak rates, run a candidate beside
eager, run eager alone on the calls that are judged, run eager while a candidate runs elsewhere, or
run eager or a candidate with other sizes and numbers."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Turns:
    """How two processes take turns: the pipes by which each hands over to the other.

    `eager_ms` are times of eager that are known already, `is_fresh` whether its inputs were drawn
    anew in the run that is doubted.
    """

    of_eager: str
    of_candidate: str
    eager_ms: tuple[float, ...]
    is_fresh: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerJob:
    """One job of a worker.

    `settings` are those of the run with what depends on the machine filled in: the number of
    threads and the limit of memory. `compiler` is the name under which the worker finds it. `again`
    are calls whose inputs the first pairs take, and `judged` those that eager repeats; with
    `is_first` it also makes the outputs of the first call, its times and the oracle. `is_fresh`
    says whether inputs of later sets are drawn anew. `turns` is set where two processes take turns.
    `plan` is the plan of the draws of a graph whose outputs are random, and `draws` are the calls
    with other seeds that eager repeats. `is_known_to_fit` says that an earlier process has compared
    with the limits the memory of the sample. `turnstile` is the pipe from which a byte is read
    before each phase that is timed, "" where nothing else is under way. `restores_state` says that
    state outside the graph is restored after each call of the candidate. `varying` is the plan of
    calls with other sizes and numbers (`VaryingPlan.to_json`), empty where eager is to make it.
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

    @property
    def threads(self) -> int:
        """The number of threads that a sample may use."""
        return self.settings.threads

    @property
    def reads(self) -> list[str]:
        """The files and folders that the compiler and its options name.

        A run that is repeated has its options from a record, which may be a stranger's.
        """
        options = [] if self.again else self.options.values()
        paths = [value for value in options if isinstance(value, str)]
        module, _, _ = self.compiler.rpartition(":")
        if module.endswith(".py"):
            paths.append(str(directory_of_package(Path(module))))
        return [path for path in paths if Path(path).is_absolute()]

    @property
    def executes(self) -> list[str]:
        """The programs, or folders of programs, that the compiler may start.

        A compiler that does not come with this library is its user's own code, and may start any.
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
        """The pipes by which two processes take turns."""
        return [] if self.turns is None else [self.turns.of_eager, self.turns.of_candidate]

    def to_payload(self) -> dict[str, Any]:
        """Return the job as an object that JSON can hold."""
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
        """Return the job that `to_payload` gave.

        >>> job = WorkerJob(kind="candidate", device="cpu", settings=Settings(), compiler="eager")
        >>> WorkerJob.from_payload(job.to_payload()) == job
        True
        """
        turns = payload["turns"]
        if turns is not None:
            turns = Turns(**{**turns, "eager_ms": tuple(turns["eager_ms"])})
        plan, draws = payload["plan"], payload["draws"]
        given = {
            "plan": plan and DrawPlan(plan["work"], tuple(plan["outputs"])),
            "draws": draws and DrawnCalls(**draws),
            "settings": Settings.from_json(payload["settings"]),
            "again": tuple(read_judged(payload["again"])),
            "judged": tuple(read_judged(payload["judged"])),
            "turns": turns,
        }
        return cls(**{**payload, **given})

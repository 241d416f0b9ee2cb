"""Run settings, and the reasons for their defaults."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from ..errors import RunError
from ..isolation import Limits
from ..isolation.limits import THREADS_PER_CPU
from ..schema.runs import CARRIED
from ..timing.pairs import TimingSettings
from .records.records import hash_json, to_plain

MIN_VARIATIONS, MAX_VARIATIONS = 3, 16
"""The second value of a number causes a recompilation; stale answers show from the third on."""

PHASE_TIMEOUTS_S: Mapping[str, float] = {
    "load": 300.0,
    "baseline": 300.0,
    "compile": 1200.0,
    "run": 600.0,
    "profile": 120.0,
    "oracle": 300.0,
}
"""Compilers that tune take minutes for one graph; a run is bounded by its own time budget and needs
the rest only for calls that take seconds each. A run whose profile or oracle takes too long has
none."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings for running samples.

    `weights`: "parameters" stores them in the module, as in deployment, so that a compiler may fold
    them; "inputs" passes them with each call, as GraphNet does. `num_input_sets`: the number of
    sets of data inputs that calls cycle through. `num_variations`: 0, or the number of sizes and
    scalar input values with which the compiled graph is called and judged after the timed run.
    `num_threads`: per arm; None means one per CPU available to this process. `memory_limit_bytes`:
    the limit for all processes of one sample; None means nine tenths of the free memory when the
    run starts. `alone_calls`: the number of eager calls timed in a separate process. `cache_mode`:
    "cold" overwrites the caches of the processor or GPU before each timed call. `launch_mode`:
    "cuda_graph" captures both arms in a CUDA graph and times its replay, if both can be captured;
    it has no effect on a CPU. `compile_cache`: None for empty compile caches, or a folder of caches
    that were filled elsewhere; each run reads them through links and writes to caches of its own.
    TorchInductor unpickles its caches, so only use a folder that you filled or trust. `has_oracle`:
    also run eager in float64 if this fits. `has_profile`: record a few additional calls with
    torch's profiler. `trust_remote_code`: allow the source code of custom operators, which comes
    with a sample, to run. `phase_timeouts_s`: overrides for individual phases of
    `PHASE_TIMEOUTS_S`.
    """

    weights: Literal["parameters", "inputs"] = "parameters"
    input_mode: Literal["replay", "probe"] = "replay"
    cache_mode: Literal["warm", "cold"] = "warm"
    launch_mode: Literal["stream", "cuda_graph"] = "stream"
    compile_cache: str | None = None
    seed: int = 0
    num_input_sets: int = 2
    num_variations: int = 0
    num_threads: int | None = None
    alone_calls: int = 60
    memory_limit_bytes: int | None = None
    has_oracle: bool = True
    has_profile: bool = True
    trust_remote_code: bool = False
    phase_timeouts_s: Mapping[str, float] = dataclasses.field(default_factory=dict)
    timing: TimingSettings = dataclasses.field(default_factory=TimingSettings)

    def __post_init__(self) -> None:
        for name, accepted in (
            ("weights", ("parameters", "inputs")),
            ("input_mode", ("replay", "probe")),
            ("cache_mode", ("warm", "cold")),
            ("launch_mode", ("stream", "cuda_graph")),
        ):
            if getattr(self, name) not in accepted:
                raise RunError(
                    f"The setting `{name}` is {getattr(self, name)!r}; it must be "
                    f"{' or '.join(repr(option) for option in accepted)}."
                )
        for name in ("num_input_sets", "alone_calls"):
            if getattr(self, name) < 1:
                raise RunError(
                    f"The setting `{name}` is {getattr(self, name)}; it must be at least 1."
                )
        if self.num_variations and not MIN_VARIATIONS <= self.num_variations <= MAX_VARIATIONS:
            raise RunError(
                f"The setting `num_variations` is {self.num_variations}; it must be 0, or from "
                f"{MIN_VARIATIONS} to {MAX_VARIATIONS}."
            )
        if self.num_threads is not None and self.num_threads < 1:
            raise RunError(
                f"The setting `num_threads` is {self.num_threads}; it must be at least 1."
            )
        if not -(2**63) <= self.seed < 2**63:
            raise RunError(f"The setting `seed` is {self.seed}; it must fit into 64 bits.")
        if self.compile_cache is not None:
            object.__setattr__(self, "compile_cache", str(Path(self.compile_cache).resolve()))
        if self.compile_cache is not None and not Path(self.compile_cache).is_dir():
            raise RunError(
                f"The setting `compile_cache` is `{self.compile_cache}`, which is not a folder. "
                "Fill one with `python -m builder gpu-cache`, or omit the setting."
            )
        object.__setattr__(self, "phase_timeouts_s", {**PHASE_TIMEOUTS_S, **self.phase_timeouts_s})
        unknown = sorted(set(self.phase_timeouts_s) - set(PHASE_TIMEOUTS_S))
        if unknown:
            raise RunError(
                f"There is no phase `{unknown[0]}`. A timeout can be set for "
                f"{', '.join(PHASE_TIMEOUTS_S)}."
            )

    @property
    def threads(self) -> int:
        """The number of threads of each arm.

        Raises:
            RunError: a worker of this machine may not start that many threads.
        """
        most = THREADS_PER_CPU * (os.cpu_count() or 1)
        if self.num_threads is not None and self.num_threads > most:
            raise RunError(
                f"The setting `num_threads` is {self.num_threads}; on this machine it must be at "
                f"most {most}. Choose the number of physical cores or fewer."
            )
        return self.num_threads or len(os.sched_getaffinity(0))

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a JSON-compatible object.

        The folder of carried caches belongs to one machine. It is replaced by the word "carried",
        from which `from_json` returns settings with empty caches.
        """
        plain = to_plain(self)
        if not self.num_variations:  # omitted to preserve the ids of older runs
            del plain["num_variations"]
        if self.compile_cache is None:
            del plain["compile_cache"]
        else:
            plain["compile_cache"] = CARRIED
        return plain

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Settings:
        """Return the settings that `to_json` serialized.

        Raises:
            RunError: a setting is unknown to this version.

        >>> Settings.from_json(Settings(seed=3).to_json()) == Settings(seed=3)
        True
        """
        timing = values.get("timing", {})
        for kind, names in ((cls, values), (TimingSettings, timing)):
            field_names = {field.name for field in dataclasses.fields(kind)}
            for name in names:
                if name not in field_names:
                    raise RunError(
                        f"There is no setting `{name}` in this version. Install the version of "
                        "`graphnet-datasets` in the environment of the record."
                    )
        plain = {
            name: _number(value)
            for name, value in values.items()
            if name not in ("timing", "compile_cache")
        }
        times = {name: _number(value) for name, value in timing.items()}
        return cls(**{**plain, "timing": TimingSettings(**times)})

    def hash(self) -> str:
        """Return the hash that identifies runs with the same settings."""
        return hash_json(self.to_json())

    def limits(self, device: str) -> Limits:
        """Return the resource limits for the processes of one sample."""
        timeouts_s = self.phase_timeouts_s
        limits = Limits(
            phase_timeouts_s={"first": timeouts_s["baseline"], **timeouts_s},
            memory_bytes=self.memory_limit_bytes,
            is_memory_enforced=device == "cpu",
        )
        return dataclasses.replace(limits, memory_bytes=limits.tree_bytes)


def _number(value: Any) -> Any:
    """Return a JSON value with infinities converted from strings."""
    if isinstance(value, Mapping):
        return {name: _number(item) for name, item in value.items()}
    return float(value) if value in ("inf", "-inf", "nan") else value

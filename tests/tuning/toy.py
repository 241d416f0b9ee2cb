"""A space of tilings with a made-up machine: structured like real ones, and free to measure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

import numpy as np

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import (
    Candidate,
    Measurement,
    Measurer,
    Origin,
    Pool,
    ProgramGraph,
    Space,
    Task,
    TaskSource,
    TrialStatus,
    task_key,
    trace_knobs,
)

TILES = [1, 2, 4, 8, 16, 32]
VECTORS = [1, 4, 8, 16]
UNROLLS = [0, 16, 64]
SIZES = (len(TILES), len(TILES), len(TILES), len(VECTORS), len(UNROLLS), 2)
COUNT = math.prod(SIZES)


def make_task(m: int, n: int, k: int, *, count: int = 1, family: str = "matmul") -> Task:
    workload, target = json.dumps([family, m, n, k]), '{"kind": "toy"}'
    return Task(
        task_id=task_key(workload, target),
        workload_json=workload,
        target_json=target,
        task_name=f"{family}_{m}_{n}_{k}",
        family=family,
        arg_shapes=((m, k), (k, n), (m, n)),
        arg_dtypes=("float32",) * 3,
        flops=2 * m * n * k,
        bytes=4 * (m * k + k * n + m * n),
        sources=(TaskSource("toy/model", "00", count),),
    )


TASKS = [make_task(64, 64, 64, count=4), make_task(128, 64, 256), make_task(32, 512, 64, count=2)]


def trace_of(choice: Sequence[int]) -> str:
    ti, tj, tk, vector, unroll, parallel = map(int, choice)
    instructions = [
        *(["SamplePerfectTile", ["l"], [2, 64], ["o", "i"]] for _ in range(3)),
        *(["SampleCategorical", [], [], ["c"]] for _ in range(3)),
    ]
    decisions = [
        *([index, [64 // TILES[tile], TILES[tile]]] for index, tile in enumerate((ti, tj, tk))),
        *([3 + index, value] for index, value in enumerate((vector, unroll, parallel))),
    ]
    return json.dumps([instructions, decisions])


def choice_of(candidate: Candidate) -> tuple[int, ...]:
    knobs = trace_knobs(candidate.trace_json)
    tiles = [int(knobs[f"tile.{index}.1"]) for index in range(3)]
    return (*tiles, *(int(knobs[f"category.{index}"]) for index in range(3)))


def latency_ms(task: Task, choice: Sequence[int]) -> float:
    """Tiles should fill a small cache, fit the vector, and be unrolled a bit; shapes shift it."""
    ti, tj, tk = (TILES[each] for each in choice[:3])
    vector, unroll, parallel = VECTORS[choice[3]], UNROLLS[choice[4]], choice[5]
    m, k = task.arg_shapes[0]
    held = 4 * (ti * tk + tk * tj + ti * tj)
    room = 2048 + 16 * min(m, 128)
    cost = task.flops / 1e7
    cost *= (16 / min(vector, tj)) ** 0.7
    cost *= 1 + (held / room) ** 2 if held > room else 1.0
    cost *= 1 + 4 / (ti * tj) + 2 / tk + 8 * tk / k / 32
    cost *= {0: 1.25, 16: 1.0, 64: 1.1}[unroll]
    return cost * (0.6 if parallel else 1.0)


def fails(choice: Sequence[int]) -> bool:
    return UNROLLS[choice[4]] == 64 and TILES[choice[0]] * TILES[choice[1]] > 256


class ToySpace(Space):
    feature_set = "toy-1"
    machine_code_set = "toy-code-1"

    def __init__(self, tasks: Sequence[Task] = TASKS) -> None:
        self.tasks = {task.task_id: task for task in tasks}

    def make(self, task: Task, choice: Sequence[int], origin: Origin = Origin.RANDOM) -> Candidate:
        return Candidate(task.task_id, trace_of(choice), origin)

    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        rng = np.random.default_rng(seed)
        flat = rng.choice(COUNT, min(n, COUNT), replace=False)
        return [self.make(task, np.unravel_index(each, SIZES)) for each in flat]

    def mutate(self, candidate: Candidate, seed: int) -> Candidate | None:
        rng = np.random.default_rng(seed)
        choice = list(choice_of(candidate))
        where = int(rng.integers(len(SIZES)))
        choice[where] = int(rng.integers(SIZES[where]))
        mutated = self.make(self.tasks[candidate.task_id], choice, Origin.MUTATE)
        return None if mutated.trace_json == candidate.trace_json else mutated

    def crossover(self, first: Candidate, second: Candidate, seed: int) -> Candidate | None:
        rng = np.random.default_rng(seed)
        pairs = zip(choice_of(first), choice_of(second), strict=True)
        mixed = [pair[int(rng.integers(2))] for pair in pairs]
        return self.make(self.tasks[first.task_id], mixed, Origin.MUTATE)

    def machine_code(self, candidate: Candidate) -> np.ndarray:
        choice = choice_of(candidate)
        if fails(choice):
            raise TuningError("It does not compile.")
        ti, tj, tk = (TILES[tile] for tile in choice[:3])
        cycles = latency_ms(self.tasks[candidate.task_id], choice)
        return np.array([ti * tj, tk, VECTORS[choice[3]], 1e3 * cycles], np.float32)

    def features(self, candidate: Candidate) -> np.ndarray:
        choice = choice_of(candidate)
        if fails(choice) and choice[5]:
            raise TuningError("This candidate cannot be scheduled.")
        task = self.tasks[candidate.task_id]
        ti, tj, tk = (TILES[each] for each in choice[:3])
        held = math.log2(ti * tk + tk * tj + ti * tj)
        own = [*choice, held, math.log2(task.flops), math.log2(min(task.arg_shapes[0]))]
        return np.array([own, [choice[0], choice[1], *[0] * 7]], np.float32)

    def knobs(self, candidate: Candidate) -> dict[str, float]:
        return trace_knobs(candidate.trace_json)

    def graph(self, candidate: Candidate) -> ProgramGraph:
        """Six loops in a chain above a block: kind one-hot, value."""
        choice = choice_of(candidate)
        size = math.log2(self.tasks[candidate.task_id].flops)
        nodes = np.zeros((7, 9), np.float32)
        nodes[np.arange(7), np.arange(7)] = 1
        nodes[:6, 7] = choice
        nodes[6, 8] = size
        down = np.array([range(6), range(1, 7)])
        edges = np.concatenate([down, down[::-1]], axis=1).astype(np.int64)
        kinds = np.repeat([0, 1], 6).astype(np.int64)
        runs = np.where(np.arange(7) < 6, -np.inf, 0).astype(np.float32)  # one statement
        return ProgramGraph(nodes, edges, kinds, np.zeros((12, 2), np.float32), runs)


class SmallSpace(ToySpace):
    """Few candidates, all known: what templates give."""

    def enumerate(self, task: Task) -> list[Candidate]:
        choices = np.unravel_index(range(0, COUNT, 97), SIZES)
        return [self.make(task, each, Origin.TEMPLATE) for each in zip(*choices, strict=True)]


class ToyMeasurer(Measurer):
    """Six repetitions with 2 % of noise, the same each time; a thousand seconds a trial."""

    is_replay = True

    def __init__(self, space: ToySpace, repetitions: int = 6) -> None:
        self.space = space
        self.repetitions = repetitions
        self.measured = 0

    def measure(self, candidates: Sequence[Candidate]) -> Iterator[Measurement]:
        for candidate in candidates:
            self.measured += 1
            choice = choice_of(candidate)
            if fails(choice):
                yield Measurement.of(
                    candidate, TrialStatus.BUILD_FAILED, error="too much unrolled", trial_s=500.0
                )
                continue
            latency = latency_ms(self.space.tasks[candidate.task_id], choice)
            rng = np.random.default_rng(int(candidate.trace_hash[:8], 16))
            times = latency * np.exp(rng.normal(0, 0.02, self.repetitions))
            yield Measurement.of(
                candidate,
                TrialStatus.OK,
                times_ms=tuple(map(float, times)),
                features=self.space.features(candidate),
                feature_set=self.space.feature_set,
                trial_s=1000.0 + latency,
                repeat=self.repetitions,
            )


def best_known_ms(task: Task) -> float:
    choices = np.stack(np.unravel_index(range(COUNT), SIZES), axis=1)
    return min(latency_ms(task, each) for each in choices if not fails(each))


def make_pool(tasks: Sequence[Task] = TASKS, each: int = 60, seed: int = 0) -> Pool:
    space = ToySpace(tasks)
    measurer = ToyMeasurer(space)
    rows = [row for task in tasks for row in measurer.measure(space.sample(task, each, seed))]
    return Pool(tasks, rows)

"""The worker process of a trial: runs eager, then the compiler, on the same inputs."""

from __future__ import annotations

import dataclasses
import math
import statistics
from pathlib import Path
from typing import Any

from ..benchmark.child import worker
from ..benchmark.child.arms import Arm
from ..benchmark.child.draws import choose_draws, complete_plan, hand_over_draws
from ..benchmark.child.setup import load_workload, make_clock, waiting_for
from ..benchmark.child.sorted_keys import hand_over_keys
from ..benchmark.draw_plan import FURTHER_DRAWS
from ..benchmark.handover import DRAWS
from ..compilers import make_compiler
from ..frameworks import module
from ..frameworks.outputs import OutputTypeError
from ..frameworks.protocols import Runtime
from ..frameworks.runtime import make_runtime
from ..frameworks.stepping import steps
from ..isolation import Reporter
from ..sample import Sample
from ..schema.sample_files import read_sample
from ..timing.calls import ArmFailedError
from ..timing.pairs import measure_pairs
from .elements import with_elements
from .trial_job import EAGER_DRAWS, NUM_CALLS, TrialJob

prepare = worker.prepare


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Run one job: try a part, store the values of a whole graph, or inspect a compiler."""
    match payload["kind"]:
        case "trial":
            run_trial(TrialJob.from_payload(payload), reporter, directory)
        case "values":
            store_values(payload, reporter, directory)
        case _:
            worker.work(payload, reporter, directory)


def run_trial(job: TrialJob, reporter: Reporter, directory: Path) -> None:
    """Run eager, compile, run the compiled graph, and store the outputs of both."""
    worker_job = job.worker
    sample = with_elements(read_sample(directory), job.elements)
    workload = load_workload(worker_job, directory, sample)
    runtime = workload.runtime
    reporter.enter("baseline")
    workload.note_writes()
    baseline = Arm(workload, workload.module)
    sizes = _call(baseline, runtime, reporter, directory, "eager")
    draws = None
    plan = complete_plan(worker_job.plan, workload, reporter)
    if plan is not None:
        draws = choose_draws(plan, sizes, worker_job.settings.num_input_sets)
    if draws is not None:
        # A trial's inputs come from the whole graph, which has values for the first input set only.
        draws = dataclasses.replace(draws, set_index=0)
        further = dataclasses.replace(draws, count=draws.count + FURTHER_DRAWS)
        path = directory / EAGER_DRAWS
        hand_over_draws(baseline, runtime, reporter, path, further, EAGER_DRAWS)
    is_fresh = workload.is_fresh
    written = (*workload.written, *workload.state)
    hand_over_keys(worker_job, sample, reporter, directory, [0], is_fresh=is_fresh, written=written)
    reporter.enter("compile")
    compiler = make_compiler(worker_job.compiler, worker_job.framework, worker_job.options)
    compiler.trust_remote_code = worker_job.settings.trust_remote_code
    compiler.use_caches(directory / "cache")
    own = workload.for_candidate()
    arguments = own.arguments(0)
    runtime.seed(workload.seed)
    candidate = Arm(own, compiler.compile(own.module, arguments))
    del arguments
    reporter.enter("run")
    try:
        for call in range(NUM_CALLS):
            is_handed_over = call in (0, NUM_CALLS - 1)
            _call(candidate, runtime, reporter, directory, f"call {call}" if is_handed_over else "")
        if draws is not None:
            hand_over_draws(candidate, runtime, reporter, directory / DRAWS, draws, DRAWS)
        if job.is_timed:
            arms = {"baseline": baseline, "candidate": candidate}
            times = measure_pairs(
                baseline,
                candidate,
                settings=worker_job.settings.timing,
                clock=waiting_for(compiler, make_clock(worker_job, runtime)),
                before_each=lambda arm, _: arms[arm].prepare(0),
                num_compilations=compiler.num_compilations,
            )
            lost_ms = statistics.median(times.candidate_ms) - statistics.median(times.baseline_ms)
            reporter.send(
                {
                    "speedup": times.speedup,
                    "speedup_low": times.speedup_low,
                    "speedup_high": times.speedup_high,
                    "lost_ms": lost_ms,
                }
            )
    except Exception as error:
        cause = error.__cause__ if isinstance(error, ArmFailedError) else error
        failed = cause if isinstance(cause, Exception) else error
        reporter.send({"failed_phase": compiler.phase_of(failed)})
        raise failed from None


def _call(arm: Arm, runtime: Runtime, reporter: Reporter, directory: Path, name: str) -> list[int]:
    """Call an arm; if `name` is set, store its outputs and return their numbers of elements."""
    arm.prepare(0)
    arm()
    if not name:
        return []
    described = runtime.write_outputs(arm.results(), directory / f"{name}.bin")
    reporter.send({f"outputs {name}": described})
    return [math.prod(output["shape"]) for output in described]


def store_values(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Run a whole graph once and store its tensor values while there is space."""
    sample = read_sample(directory)
    runtime = make_runtime(sample.framework, "cpu", payload["threads"])
    place, left = Path(payload["place"]), payload["max_bytes"]
    observing = module(sample.framework, "observing")
    options = {"trust_remote_code": payload["trust_remote_code"]}
    with observing.stepping(
        sample, payload["seed"], allow_unchecked_operators=True, **options
    ) as stepper:
        runtime.seed(payload["seed"])
        for value in _values(sample, stepper):
            tensor = stepper.tensor(value)
            if tensor is None:
                continue
            num_bytes = runtime.num_bytes(tensor)
            if num_bytes > left:
                continue
            try:
                (described,) = runtime.write_outputs((tensor,), place / f"{value}.bin")
            except OutputTypeError:  # sparse or quantized
                continue
            left -= num_bytes
            measured = observing.look_at(tensor).statistics
            reporter.send(
                {
                    f"value {value}": {
                        "dtype": described["dtype"],
                        "shape": described["shape"],
                        "statistics": measured and dataclasses.asdict(measured),
                    }
                }
            )


def _values(sample: Sample, stepper: Any) -> Any:
    yield from range(len(sample.inputs))
    yield from steps(stepper)

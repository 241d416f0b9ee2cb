"""Two samples under way at once: nothing of one runs while the other is timed."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphnet_datasets.benchmark import TimeSpent, run
from graphnet_datasets.benchmark.executors import executors
from graphnet_datasets.benchmark.executors.overlap import (
    TIMED_PHASES,
    TIMED_PHASES_OF_GPU,
    Lane,
    TimingGate,
)
from graphnet_datasets.errors import RunError
from graphnet_datasets.isolation import Ending, ForkServer, Limits, descendants
from graphnet_datasets.sample import Op
from graphnet_datasets.sample.arguments import Ref
from tests.benchmark.samples import LINEAR, make_sample, quick
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
CHILD = ROOT / "graphnet_datasets" / "benchmark" / "child"
SHORT_S = 0.4


@pytest.fixture
def server() -> Iterator[ForkServer]:
    environment = {"PYTHONPATH": str(ROOT)}
    with ForkServer("tests.isolation.jobs", environment=environment, is_confined=False) as running:
        running.start()
        yield running


def lanes(gate: TimingGate, server: ForkServer | None = None) -> tuple[Lane, Lane]:
    return gate.lane(list), gate.lane(lambda: [] if server is None else [server])


def processor_ticks(pids: list[int]) -> int:
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields)


def test_other_lanes_and_their_time_limits_pause(server: ForkServer) -> None:
    timed, other = lanes(TimingGate(), server)
    gate = timed.gate
    # In processor time less than its limit, on the wall far more.
    limits = Limits(default_timeout_s=20, phase_timeouts_s={"second": 60.0})
    with server.directory() as directory, ThreadPoolExecutor(1) as thread:
        job = thread.submit(
            server.run,
            {"do": "spin", "seconds": 0.3},
            directory,
            phases=("first", "second"),
            limits=limits,
            now_s=other.now_s,
        )
        wait_until(lambda: server.pid is not None and len(descendants(server.pid)) == 2)
        assert server.pid is not None
        spinning = descendants(server.pid)
        wait_until(lambda: job.done() or processor_ticks(spinning) > 0)
        with gate.timed(timed), gate.timed(timed):  # within itself it changes nothing
            before, clock_s = processor_ticks(spinning), other.now_s()
            time.sleep(SHORT_S)
            assert processor_ticks(spinning) == before
            assert other.now_s() == clock_s
        outcome = job.result()
    assert outcome.ending is Ending.FINISHED
    assert other.pauses[0][1] - other.pauses[0][0] >= SHORT_S
    assert other.now_s() <= time.monotonic() - SHORT_S


def test_a_stopped_job_is_killed_as_ever(server: ForkServer) -> None:
    timed, _ = lanes(TimingGate(), server)
    with server.directory() as directory, ThreadPoolExecutor(1) as thread:
        job = thread.submit(server.run, {"do": "sleep"}, directory, phases=("first", "second"))
        wait_until(lambda: server.pid is not None and descendants(server.pid))
        timed.gate.begin_timed(timed)
        server.close()
        assert job.result().ending is Ending.CRASH


@pytest.mark.parametrize(
    ("kind", "module"), [("candidate", "worker"), ("eager_alone", "eager_alone")]
)
def test_a_worker_waits_for_its_turn_before_each_phase_that_is_timed(
    kind: str, module: str
) -> None:
    """One that did not wait would find the leave for a phase at the next one."""
    text = (CHILD / f"{module}.py").read_text()
    assert set(re.findall(r'turnstile\.enter\("(\w+)"\)', text)) == TIMED_PHASES[kind]
    assert TIMED_PHASES_OF_GPU[kind] < TIMED_PHASES[kind]


def is_stopped(server: ForkServer) -> bool:
    assert server.pid is not None
    states = [
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        for pid in descendants(server.pid)
    ]
    return bool(states) and set(states) == {"T"}


def test_on_a_gpu_only_lanes_that_may_launch_kernels_are_stopped(server: ForkServer) -> None:
    timed, other = lanes(TimingGate(is_of_gpu=True), server)
    gate = timed.gate
    with server.directory() as directory, ThreadPoolExecutor(1) as thread:
        job = thread.submit(server.run, {"do": "sleep"}, directory, phases=("first", "second"))
        wait_until(lambda: server.pid is not None and descendants(server.pid))
        gate.begin_job(other)
        gate.enter(other, "load")
        with gate.timed(timed):
            assert is_stopped(server)
        assert not is_stopped(server)
        gate.enter(other, "compile")
        gate.begin_work(other)  # judging does not prevent timing
        with gate.timed(timed):
            assert not is_stopped(server) and not other.pauses[1:]
            gate.enter(other, "run")  # it would launch kernels now
            assert is_stopped(server)
        assert not is_stopped(server) and len(other.pauses) == 2
        with gate.timed(timed):
            gate.begin_job(other)  # a process that starts meanwhile
            assert is_stopped(server)
        gate.end_work(other)
        server.close()
        assert job.result().ending is Ending.CRASH


def test_a_run_needs_at_least_one_job() -> None:
    with pytest.raises(RunError, match="at least one job"):
        run(LINEAR, "eager", jobs=0)


def test_a_cluster_overlaps_no_samples() -> None:
    with pytest.raises(RunError, match="Omit `jobs`"):
        run(LINEAR, "eager", jobs=2, executor="ray")


def test_one_lane_is_timed_at_a_time_and_not_beside_work() -> None:
    gate = TimingGate()
    first, second = lanes(gate)
    order: list[str] = []

    def time_second() -> None:
        with gate.timed(second):
            order.append("second")

    gate.begin_work(first)
    thread = threading.Thread(target=time_second)
    thread.start()
    wait_until(lambda: second.now_s() < time.monotonic() - 0.05)  # its clock stands
    with gate.timed(first):  # a lane's own work does not keep it
        gate.end_work(first)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_samples_that_need_too_much_together_are_run_one_after_another() -> None:
    gate = TimingGate(capacity_bytes=10)
    first, second = lanes(gate)
    entered = threading.Event()

    def run_second() -> None:
        gate.begin_work(second)
        with gate.admitted(second, 6):
            entered.set()
        gate.end_work(second)

    gate.begin_work(first)
    thread = threading.Thread(target=run_second)
    with gate.admitted(first, 6):
        thread.start()
        assert not entered.wait(0.2)
        assert not first.had_company
    assert entered.wait(30)
    thread.join()
    with gate.admitted(first, 4), gate.admitted(second, 6):
        assert first.had_company
        assert second.had_company
    with gate.admitted(first, 100):  # more than there is, but alone
        pass


def test_two_that_want_to_be_alone_do_not_wait_for_each_other() -> None:
    gate = TimingGate()
    both = lanes(gate)
    inside: list[Lane] = []

    def run_alone(lane: Lane) -> None:
        gate.begin_work(lane)
        with gate.admitted(lane, 1), gate.alone(lane):
            inside.append(lane)
            assert len(inside) == 1
            time.sleep(0.05)
            inside.remove(lane)
        gate.end_work(lane)

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(run_alone, lane) for lane in both]:
            done.result()


def test_two_at_work_that_want_to_be_timed_take_turns() -> None:
    gate = TimingGate()
    both = lanes(gate)
    are_at_work = threading.Barrier(2)
    inside: list[Lane] = []

    def time_at_work(lane: Lane) -> None:
        gate.begin_work(lane)
        are_at_work.wait()
        with gate.timed(lane):
            inside.append(lane)
            assert len(inside) == 1
            time.sleep(0.05)
            inside.remove(lane)
        assert lane.num_working == 1
        gate.end_work(lane)

    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(time_at_work, lane) for lane in both]
        try:
            for done in running:
                done.result()
        finally:
            gate.close()  # so that a test that fails ends


def test_waiting_lanes_are_notified_of_the_end() -> None:
    gate = TimingGate()
    first, second = lanes(gate)
    gate.begin_timed(first)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(gate.begin_timed, second)
        wait_until(lambda: second.now_s() < time.monotonic() - 0.05)  # it waits
        gate.close()
        with pytest.raises(RunError, match="while a sample waited"):
            waiting.result()


@pytest.mark.parametrize("jobs", [pytest.param(None, marks=pytest.mark.slow), 3])
def test_overlapping_runs_return_the_same_records_as_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int | None
) -> None:
    monkeypatch.setattr(executors, "_is_worth_overlapping", lambda jobs: len(jobs) > 1)
    failing = make_sample("fails", Op("torch.reshape", (Ref(0), (5, 5))))
    samples = [LINEAR, failing, make_sample("tanh", Op("torch.tanh", (Ref(0),)))]
    spent = TimeSpent()
    runs = run(
        samples,
        ["eager", "torchscript"],
        out=tmp_path,
        settings=quick(),
        time_spent=spent,
        jobs=jobs,
    )
    assert [(each["sample_id"], each["compiler"]) for each in runs] == [
        (sample.id, compiler) for sample in samples for compiler in ("eager", "torchscript")
    ]
    assert [each["status"] for each in runs] == ["ok", "ok", *2 * ["baseline_failed"], "ok", "ok"]
    assert "s saved." in str(spent)
    again = run(samples, ["eager", "torchscript"], out=tmp_path, settings=quick(), jobs=1)
    assert again["started_at"] == runs["started_at"]  # the same identity: nothing is run twice

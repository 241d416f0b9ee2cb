"""Every way in which a job can end, with real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.errors import DiskError, RunError
from graphnet_datasets.isolation import Ending, ForkServer, Limits, Outcome, client
from tests.waiting import wait_until, wait_until_gone

MODULE = "tests.isolation.jobs"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(MODULE, environment={"PYTHONPATH": str(ROOT)}, is_confined=False) as running:
        yield running


def run(server: ForkServer, do: str, limits: Limits | None = None, **payload: Any) -> Outcome:
    with server.directory() as directory:
        return server.run(
            {"do": do, **payload},
            directory,
            phases=("first", "second"),
            limits=limits or Limits(default_timeout_s=10_000),
            environment={"OF_JOB": "set"},
        )


def test_a_job_that_returns_is_finished_and_its_messages_arrive(server: ForkServer) -> None:
    outcome = run(server, "answer")
    assert outcome.ending is Ending.FINISHED
    assert (outcome.phase, outcome.exit_code, outcome.error) == ("second", 0, None)
    assert outcome.merged()["value"] == "set"
    assert set(outcome.phase_s) == {"first", "second"}


def test_messages_of_an_earlier_phase_cannot_be_revoked(server: ForkServer) -> None:
    outcome = run(server, "take_back")
    assert outcome.merged() == {"early": "said first", "list": [1], "late": 2}
    assert outcome.message_phases == ["first", "second", "second"]
    assert [stamp.label for stamp in outcome.stamps] == ["phase second", "middle"]


def test_the_kernel_notes_when_a_job_says_something(server: ForkServer) -> None:
    outcome = run(server, "stamp", times=2, seconds=0.05)
    assert [stamp.label for stamp in outcome.stamps] == ["begin", "end"] * 2
    times = [stamp.at_ns for stamp in outcome.stamps]
    assert times == sorted(times)
    assert all(
        ended - began >= 50_000_000 for began, ended in zip(times[::2], times[1::2], strict=True)
    )
    assert outcome.is_kernel_time


def test_a_job_with_many_stamps_waits_for_its_reader_between_them_and_not_within(
    server: ForkServer,
) -> None:
    outcome = run(server, "stamp", times=1000, seconds=0)
    assert len(outcome.stamps) == 2000


def test_a_stamp_that_does_not_come_from_the_job_is_a_protocol_error(server: ForkServer) -> None:
    outcome = run(server, "stamp_without_key")
    assert outcome.ending is Ending.PROTOCOL
    assert outcome.error == {
        "type": "ProtocolError",
        "message": "The job sent a stamp that is not one of ours.",
    }


def test_messages_from_elsewhere_are_ignored(server: ForkServer) -> None:
    outcome = run(server, "write_to_every_file")
    assert outcome.ending is Ending.PROTOCOL
    assert outcome.merged() == {}


def test_each_job_has_a_process_of_its_own_out_of_one_server(server: ForkServer) -> None:
    pids = {run(server, "answer").merged()["pid"] for _ in range(3)}
    assert len(pids) == 3
    assert server.num_starts == 1
    assert server.pid not in pids


def test_errors_have_a_type_and_text_unlike_crashes(server: ForkServer) -> None:
    outcome = run(server, "raise", length=100_000)
    assert outcome.ending is Ending.ERROR
    assert outcome.phase == "first"
    assert outcome.error == {"type": "ValueError", "message": "x" * 20_000}
    assert "Traceback" in outcome.log


def test_a_failed_job_on_a_full_device_has_no_outcome(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_full(**_: Any) -> Any:
        return open("/dev/full", "wb", buffering=0)  # noqa: PTH123

    monkeypatch.setattr(tempfile, "TemporaryFile", open_full)
    assert run(server, "answer").ending is Ending.FINISHED
    with pytest.raises(DiskError, match="no space left for temporary files in "):
        run(server, "raise", length=1)
    monkeypatch.setattr(client, "_MAX_OWN_BYTES", 0)
    assert run(server, "raise", length=1).ending is Ending.ERROR


def test_an_error_that_can_be_neither_pickled_nor_printed_is_still_named(
    server: ForkServer,
) -> None:
    outcome = run(server, "raise_unprintable")
    assert outcome.ending is Ending.ERROR
    assert outcome.error == {
        "type": "tests.isolation.jobs.UnprintableError",
        "message": "(the error's text cannot be had: RuntimeError)",
    }


def test_a_segfault_is_a_crash_in_its_phase(server: ForkServer) -> None:
    outcome = run(server, "segfault")
    assert (outcome.ending, outcome.phase) == (Ending.CRASH, "second")
    assert outcome.exit_code == -signal.SIGSEGV
    assert outcome.error == {
        "type": "SIGSEGV",
        "message": "The worker process was ended by SIGSEGV.",
    }
    assert "Segmentation fault" in outcome.log


@pytest.mark.parametrize("code", [0, 3])
def test_leaving_early_is_a_crash_even_with_exit_code_zero(server: ForkServer, code: int) -> None:
    outcome = run(server, "exit", code=code)
    assert (outcome.ending, outcome.exit_code) == (Ending.CRASH, code)
    assert outcome.error == {
        "type": "SystemExit",
        "message": f"The worker process exited with code {code} before it had finished.",
    }


def test_sys_exit_is_an_error(server: ForkServer) -> None:
    outcome = run(server, "system_exit")
    assert outcome.ending is Ending.ERROR
    assert outcome.error == {"type": "SystemExit", "message": "0"}


def test_a_hang_ends_with_the_timeout_of_its_phase(server: ForkServer) -> None:
    limits = Limits(phase_timeouts_s={"second": 0.3}, default_timeout_s=20)
    outcome = run(server, "sleep", limits)
    assert (outcome.ending, outcome.phase) == (Ending.TIMEOUT, "second")
    assert outcome.error == {
        "type": "TimeoutError",
        "message": "The phase `second` took longer than its limit of 0.3 s.",
    }
    assert 0.3 <= outcome.phase_s["second"] < 5


def test_a_job_cannot_put_off_its_timeout_by_going_back_a_phase(server: ForkServer) -> None:
    outcome = run(server, "stay_by_going_back")
    assert outcome.ending is Ending.PROTOCOL
    assert outcome.error == {
        "type": "ProtocolError",
        "message": "The job went from phase `second` to `first`.",
    }


def test_of_one_gigabyte_of_output_the_ends_are_kept(server: ForkServer) -> None:
    outcome = run(server, "print", Limits(log_bytes=1000, default_timeout_s=10_000), mib=1024)
    assert outcome.ending is Ending.FINISHED
    assert outcome.num_log_bytes == 2**30 + 7
    assert len(outcome.log) < 1100
    assert outcome.log.endswith("the end")
    assert f"[... {2**30 + 7 - 1000} bytes left out ...]" in outcome.log


def test_an_allocation_over_the_limit_raises_inside_the_job(server: ForkServer) -> None:
    outcome = run(server, "allocate", Limits(memory_bytes=200 * 2**20), mib=400)
    assert outcome.ending is Ending.ERROR
    assert outcome.error == {"type": "MemoryError", "message": ""}


def test_an_allocation_under_the_limit_is_counted(server: ForkServer) -> None:
    outcome = run(server, "allocate", Limits(memory_bytes=400 * 2**20), mib=200)
    assert outcome.ending is Ending.FINISHED


def test_the_memory_of_all_processes_counts_together(server: ForkServer) -> None:
    outcome = run(
        server,
        "children_allocate",
        Limits(memory_bytes=300 * 2**20, default_timeout_s=10_000),
        mib=150,
    )
    assert outcome.ending is Ending.OUT_OF_MEMORY
    assert outcome.peak_memory_bytes > 300 * 2**20
    assert outcome.error == {
        "type": "MemoryError",
        "message": "The job took more memory than its limit.",
    }


def test_a_job_without_a_limit_is_watched_from_outside(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "graphnet_datasets.isolation.limits.available_memory_bytes", lambda: 300 * 2**20
    )
    limits = Limits(default_timeout_s=10_000, is_memory_enforced=False)
    outcome = run(server, "children_allocate", limits, mib=150)
    assert outcome.ending is Ending.OUT_OF_MEMORY


def test_a_job_with_too_many_processes_is_ended(server: ForkServer) -> None:
    outcome = run(server, "fork_bomb", Limits(max_processes=20, default_timeout_s=10_000))
    assert outcome.ending is Ending.TOO_MANY_PROCESSES
    assert outcome.error == {
        "type": "TooManyProcesses",
        "message": "The job started more than 20 processes.",
    }


def test_a_child_in_another_session_dies_with_a_job_that_returns(
    server: ForkServer, tmp_path: Path
) -> None:
    outcome = run(server, "orphan", path=str(tmp_path / "pid"))
    assert outcome.ending is Ending.FINISHED
    assert outcome.num_leftovers == 1
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


def test_a_child_in_another_session_dies_with_a_job_that_hangs(
    server: ForkServer, tmp_path: Path
) -> None:
    outcome = run(
        server, "orphan_and_sleep", Limits(default_timeout_s=1), path=str(tmp_path / "pid")
    )
    assert outcome.ending is Ending.TIMEOUT
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


def test_garbage_on_the_pipes_is_refused(server: ForkServer) -> None:
    outcome = run(server, "garbage")
    assert outcome.ending is Ending.PROTOCOL
    assert outcome.error == {
        "type": "ProtocolError",
        "message": "The job sent a message that is not a JSON object.",
    }


def test_a_file_stops_growing_at_its_limit(server: ForkServer) -> None:
    outcome = run(server, "write_file", Limits(file_bytes=2**21), mib=3)
    assert outcome.ending is Ending.ERROR
    assert outcome.error is not None
    assert outcome.error["message"] == "[Errno 27] File too large"


def test_a_job_killed_by_itself_is_a_crash(server: ForkServer) -> None:
    outcome = run(server, "kill_self")
    assert (outcome.ending, outcome.exit_code) == (Ending.CRASH, -signal.SIGKILL)


def test_a_signal_without_a_name_is_a_crash_too(server: ForkServer) -> None:
    outcome = run(server, "kill_self", signal=signal.SIGRTMIN + 6)
    assert outcome.ending is Ending.CRASH
    assert outcome.error is not None
    assert outcome.error["type"] == f"signal {signal.SIGRTMIN + 6}"


def test_a_job_that_kills_the_server_costs_only_itself() -> None:
    with ForkServer(MODULE, environment={"PYTHONPATH": str(ROOT)}, is_confined=False) as own:
        assert run(own, "kill_parent").ending is Ending.CRASH
        assert run(own, "answer").ending is Ending.FINISHED
        assert own.num_starts == 2


def test_the_directory_of_a_job_goes_with_it(server: ForkServer) -> None:
    with server.directory() as directory:
        server.run({"do": "write_file", "mib": 1}, directory, phases=("only",))
        assert (directory / "big").stat().st_size == 2**20
    assert not directory.exists()


def test_a_job_needs_space_for_temporary_files(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MIN_FREE_BYTES", 2**62)
    with pytest.raises(DiskError, match=r"are free for temporary files in .*set `TMPDIR`"):
        run(server, "answer")
    monkeypatch.undo()
    assert run(server, "answer").ending is Ending.FINISHED


def test_closing_leaves_no_process_and_no_directory() -> None:
    own = ForkServer(MODULE, environment={"PYTHONPATH": str(ROOT)}, is_confined=False)
    with own.directory() as directory:
        own.run({"do": "answer"}, directory, phases=("first", "second"))
    pid, session = own.pid, directory.parent
    assert pid is not None
    own.close()
    wait_until_gone(pid)
    assert not session.exists()


def test_all_ends_when_the_parent_is_killed(tmp_path: Path) -> None:
    code = f"""
import sys
from graphnet_datasets.isolation import ForkServer
server = ForkServer({MODULE!r}, is_confined=False)
with server.directory() as directory:
    print(server.pid, directory, flush=True)
    job = {{"do": "orphan_and_sleep", "path": {str(tmp_path / "pid")!r}}}
    server.run(job, directory, phases=["only"])
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        server_pid, directory = parent.stdout.readline().split()
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        parent.kill()
        parent.wait()
    wait_until_gone(int((tmp_path / "pid").read_text()))
    wait_until_gone(int(server_pid))
    assert not Path(directory).parent.exists()


def test_a_payload_that_is_too_large_is_refused_and_costs_nothing(server: ForkServer) -> None:
    with pytest.raises(RunError) as caught:
        run(server, "answer", text="x" * 70_000)
    assert "Put larger data into a file in the job's directory." in str(caught.value)
    assert run(server, "answer").ending is Ending.FINISHED


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(RunError) as caught:
        ForkServer("tests.isolation.no_such_module").start()
    assert str(caught.value).startswith(
        "The worker process `tests.isolation.no_such_module` did not start within 300 s. "
        "It printed: "
    )
    assert "No module named" in str(caught.value)

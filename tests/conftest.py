"""Isolation of every test (own caches, own Hub, no network) and the meaning of the markers."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphnet_datasets.atomic import temporary_directory

from .hub_server import TOKEN, Hub, HubState, running_hub
from .upstream import upstream_file, upstream_place, why_no_upstream

# The Hugging Face libraries read their settings when they are imported, so the settings come first.
_stack = contextlib.ExitStack()
atexit.register(_stack.close)
_HUB = _stack.enter_context(running_hub())
# Two gigabytes of prepared datasets, which must not stay behind when pytest is killed.
_CACHE = str(_stack.enter_context(temporary_directory("graphnet-tests-")))
os.environ.update(
    HF_ENDPOINT=_HUB.endpoint,
    HF_TOKEN=TOKEN,
    HF_HOME=_CACHE,
    HF_HUB_DISABLE_XET="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
)
os.environ.pop("GRAPHNET_DATASETS_REPO", None)
# Threads of OpenMP wait for each other in a loop. Where other processes take the processors too,
# they wait for one that such a loop holds, and a small run takes up to three times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import filelock  # noqa: E402 - after the environment is set
import hypothesis  # noqa: E402
import pytest  # noqa: E402
import typer.main  # noqa: E402
import typer.testing  # noqa: E402

from graphnet_datasets import verbosity  # noqa: E402
from graphnet_datasets.isolation import keep_servers  # noqa: E402

# The tree of commands is the same in each call of the command line; to build it takes 40 ms.
typer.testing._get_command = functools.cache(typer.main.get_command)

# The first example of a test pays for imports; how long one takes says nothing on a shared machine.
# The same examples every time, so that a change is judged by what it changed; new ones are looked
# for with HYPOTHESIS_PROFILE=explore.
hypothesis.settings.register_profile("graphnet", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "graphnet"))


@pytest.fixture(autouse=True)
def progress_bars_as_before() -> Iterator[None]:
    """Undo what `--quiet` does to the whole process when a command runs inside of a test."""
    was_disabled = "datasets" in sys.modules and verbosity.are_progress_bars_disabled()
    yield
    if "datasets" in sys.modules and not was_disabled and verbosity.are_progress_bars_disabled():
        verbosity.enable_progress_bars()


@pytest.fixture(scope="session", autouse=True)
def servers_are_kept() -> Iterator[None]:
    """Have tests take over each other's worker processes: most of a small run is their imports."""
    with keep_servers(most=10, ignoring=["PYTEST_CURRENT_TEST"]):
        yield


@pytest.fixture
def fresh_servers() -> Iterator[None]:
    """Start and end worker processes as outside of tests, where their processes are looked at."""
    with keep_servers(most=0):
        yield


@pytest.fixture
def unconfined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start workers without confinement, for jobs that write outside or kill other processes."""
    monkeypatch.setenv("GRAPHNET_DATASETS_CONFINED", "1")


@pytest.fixture(scope="session")
def upstream_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with upstream's real samples (`samples/`, `paddle_samples/`), extracted once."""
    place = upstream_place()
    if place is None:
        pytest.skip(why_no_upstream())
    if place.is_dir():
        return place
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # all workers of a run share it
    folder = root / "upstream"
    with filelock.FileLock(root / "upstream.lock"):
        if not folder.is_dir():
            partial = root / "upstream.partial"
            with tarfile.open(place) as archive:
                archive.extractall(partial, filter="data")
            partial.rename(folder)
    return folder


@pytest.fixture
def hub() -> Iterator[Hub]:
    """An empty Hub that `huggingface_hub` and `datasets` talk to by default."""
    _HUB.state.__dict__.update(HubState().__dict__)
    yield _HUB
    _HUB.state.__dict__.update(HubState().__dict__)


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    server_module = pytest.importorskip(
        "moto.server", reason="moto is not installed: pip install 'graphnet-datasets[dev]'"
    )
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'graphnet-datasets[s3]'")
    server = server_module.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def bucket(s3_endpoint: str) -> Iterator[dict[str, Any]]:
    """The options that reach an empty bucket `graphs`."""
    options = {"endpoint_url": s3_endpoint}
    import fsspec

    file_system = fsspec.filesystem("s3", **options)
    file_system.mkdir("graphs")
    yield options
    file_system.rm("graphs", recursive=True)


_LEFT_OUT = pytest.StashKey[int]()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say in one line what needs upstream's samples, which a newcomer does not have."""
    count = config.stash.get(_LEFT_OUT, 0)
    if count or (hasattr(config.option, "dist") and upstream_place() is None):
        number = f"{count} tests" if count else "some tests"
        terminalreporter.write_line(f"{number} left out: {why_no_upstream()}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip, in one place, what this machine lacks."""
    skips = {}
    if importlib.util.find_spec("paddle") is None:
        skips["paddle"] = "paddlepaddle is not installed: pip install 'graphnet-datasets[paddle]'"
    if importlib.util.find_spec("torch") is None:
        skips["torch"] = "torch is not installed: pip install 'graphnet-datasets[torch]'"
    if any("gpu" in item.keywords for item in items) and not _has_cuda():
        skips["gpu"] = "no CUDA device is visible to torch"
    if not os.environ.get("GRAPHNET_DATASETS_TEST_NETWORK"):
        skips["network"] = "the real Hub is asked only where GRAPHNET_DATASETS_TEST_NETWORK is set"
    # One line at the end instead of a skip for each test.
    left_out = [item for item in items if _lacks_upstream(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        config.stash[_LEFT_OUT] = len(left_out)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        for marker, reason in skips.items():
            if item.get_closest_marker(marker):  # the keywords also hold the names of folders
                item.add_marker(pytest.mark.skip(reason=reason))


def _lacks_upstream(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("upstream")
    if marker is not None:
        return not upstream_file(marker.args[0]).is_file()
    return upstream_place() is None and "upstream_samples" in getattr(item, "fixturenames", ())


def _has_cuda() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


@pytest.fixture(autouse=True)
def gradients_as_before() -> Iterator[None]:
    """Undo what the runtime of a benchmark, made inside of a test, does to torch's grad mode."""
    yield
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "set_grad_enabled"):
        torch.set_grad_enabled(True)

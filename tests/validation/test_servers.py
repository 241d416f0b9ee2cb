"""The processes of a validator: which there are, when they start, and that all of them end."""

from __future__ import annotations

import pytest

from graphnet_datasets.errors import RunError
from graphnet_datasets.validation import Validator
from graphnet_datasets.validation.servers import CheckServers

from .graphs import VALID

APART = [1, 2]


def test_checks_that_need_no_framework_start_no_process() -> None:
    servers = CheckServers()
    with Validator(servers=servers) as validator:
        validator.validate(VALID, ["serializable", "custom_operators_accessible"])
        assert not len(servers)


def test_captures_have_a_separate_server_on_two_processors() -> None:
    alone, apart = CheckServers(jobs=1), CheckServers(jobs=2)
    assert alone.of("torch", "runnable") is alone.of("torch", "reextractable")
    assert apart.of("torch", "runnable") is not apart.of("torch", "reextractable")
    assert apart.of("torch", "runnable") is apart.of("torch", "decomposable")
    assert apart.of("torch", "runnable") in apart
    assert apart.of("torch", "runnable") not in alone


@pytest.mark.parametrize("jobs", APART)
def test_early_servers_serve_the_first_checks_and_end_with_the_context(
    jobs: int,
) -> None:
    servers = CheckServers(jobs)
    servers.start("torch")
    servers.start("torch")
    with Validator(servers=servers) as validator:
        found = validator.validate(VALID)
        assert found.is_valid, found
        started = [servers.of("torch", check) for check in ("runnable", "reextractable")]
        assert len(servers) == jobs
        assert [each.num_starts for each in started] == [1, 1]
    assert [each.pid for each in started] == [None, None]


def test_only_the_servers_of_the_checks_that_are_asked_for_are_started() -> None:
    servers = CheckServers(jobs=2)
    servers.start("torch", ["serializable", "runnable"])
    assert len(servers) == 1
    servers.close()


@pytest.mark.parametrize("jobs", APART)
def test_unused_servers_end_too(jobs: int) -> None:
    servers = CheckServers(jobs)
    servers.start("torch")
    started = [servers.of("torch", check) for check in ("runnable", "reextractable")]
    with Validator(servers=servers):
        pass
    assert [each.pid for each in started] == [None, None]
    assert not len(servers)


@pytest.mark.slow
def test_the_outcomes_are_the_same_in_one_process_and_beside_each_other() -> None:
    with Validator(jobs=1) as one, Validator(jobs=2) as two:
        assert one.validate(VALID) == two.validate(VALID)


def test_an_error_in_one_check_ends_the_one_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = CheckServers(jobs=2)
    with Validator(servers=servers) as validator:
        assert validator.validate(VALID, ["runnable", "reextractable"]).is_valid
        running, capturing = (servers.of("torch", name) for name in ("runnable", "reextractable"))

        def fail(*_: object, **__: object) -> None:
            raise RunError("The server was lost.")

        monkeypatch.setattr(running, "run", fail)
        with pytest.raises(RunError, match="lost"):
            validator.validate(VALID, ["runnable", "reextractable"])
        assert capturing.pid is None
        assert validator.validate(VALID, ["runnable", "reextractable"]).is_valid

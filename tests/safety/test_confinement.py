"""What runs samples has neither the network nor the tokens of whoever started it."""

from __future__ import annotations

import pytest

from graphnet_datasets.isolation import ForkServer
from graphnet_datasets.isolation.confinement import can_leave_network, without_secrets


@pytest.mark.parametrize("is_confined", [True, False])
def test_a_confined_job_reaches_no_network_and_no_token(
    is_confined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_not_a_real_one")
    with (
        ForkServer("tests.safety.confined_jobs", is_confined=is_confined) as server,
        server.directory() as directory,
    ):
        outcome = server.run({}, directory, phases=("load",))
        has_network = server.has_network
    (told,) = [each for each in outcome.messages if "interfaces" in each]
    assert told["has_token"] is not is_confined
    if is_confined:
        assert has_network is not can_leave_network()
        if not has_network:
            assert told["interfaces"] == ["lo"]
            assert told["routes"] <= 0


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID",
     "GITHUB_TOKEN", "WANDB_API_KEY", "OPENAI_APIKEY", "PGPASSWORD", "SSH_AUTH_SOCK",
     "https_proxy"],
)  # fmt: skip
def test_secrets_are_told_by_their_names(name: str) -> None:
    assert without_secrets({name: "x", "PATH": "/bin", "LD_LIBRARY_PATH": "/lib"}) == {
        "PATH": "/bin", "LD_LIBRARY_PATH": "/lib"
    }  # fmt: skip

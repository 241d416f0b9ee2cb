"""Caches filled in one process are used by another, and a fill that was killed goes on."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from builder.__main__ import main
from builder.gpu_cache.cards import CARDS
from builder.gpu_cache.command import read_in_order
from builder.gpu_cache.cubin import count_registers
from builder.gpu_cache.filled import Filled
from builder.gpu_cache.stand_in import card_named, missing
from graphnet_datasets.benchmark import run
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.storage.table import write_table
from tests.benchmark.samples import LINEAR, quick

NEEDS_CUDA_BUILD = pytest.mark.skipif(bool(missing()), reason=missing() or "a build for CUDA")
FIGURES = {"torch_key": "a", "system_hash": "b", "module_of_torch": "torch._utils"}


def archive(**contents: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as packed:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"fxgraph/{name}/entry")
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def outcome(key: str, reason: str = "") -> dict[str, Any]:
    return {"key": key, "id": f"example/{key}", "reason": reason, "compile_s": 2.0, "entries": []}


@pytest.mark.slow
@pytest.mark.torch
def test_a_run_takes_the_graph_from_caches_of_another_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    rows = write_table([LINEAR], tmp_path / "rows.parquet")
    arguments = ["gpu-cache", "--card", "cpu", "--samples", str(rows), "--out", str(tmp_path)]
    arguments += ["--threads", "1"]
    assert main(arguments) == 0
    assert "1 samples, 1 to compile" in capsys.readouterr().out
    filled = tmp_path / "cpu"
    manifest = json.loads((filled / "manifest.json").read_text())
    assert manifest["module_of_torch"] == "torch._utils"
    files = sorted(filled.rglob("*"))

    assert main(arguments) == 0
    assert "1 samples, 0 to compile" in capsys.readouterr().out

    settings = quick(compile_cache=str(filled), num_threads=1, has_profile=False)
    (record,) = run(LINEAR, "inductor", settings=settings)
    assert record["status"] == "ok", record["error_message"]
    assert (record["compile_cache"], record["compile_time_s"]) == ("carried", None)
    assert record["break_even_calls"] is None
    assert not [text for text in record["warnings"] if text.startswith("compile_cache")]
    assert sorted(filled.rglob("*")) == files

    # A graph that the folder lacks is compiled anew, and the record says so.
    (other,) = run(LINEAR, "inductor", options={"freezing": True}, settings=settings)
    assert other["compile_cache"] == "carried"
    missed = [text for text in other["warnings"] if text.startswith("compile_cache")]
    assert missed == ["compile_cache: 1 of 1 graphs are not in the carried caches"]


def test_a_fill_that_was_killed_goes_on(tmp_path: Path) -> None:
    filled = Filled(tmp_path)
    filled.add(outcome("a"), archive(x=b"kernel"))
    filled.add(outcome("b", "It fails."), None)
    with (tmp_path / "samples.jsonl").open("a") as file:
        file.write('{"key": "c", "id"')  # killed while writing
    again = Filled(tmp_path)
    assert again.is_done("a", is_retrying=False) and again.is_done("b", is_retrying=False)
    assert not again.is_done("c", is_retrying=False)
    assert again.is_done("a", is_retrying=True) and not again.is_done("b", is_retrying=True)
    again.add(outcome("c"), archive(y=b"kernel"))
    assert set(Filled(tmp_path).samples) == {"a", "b", "c"}
    assert Filled(tmp_path).samples["a"]["entries"] == ["fxgraph/x/entry"]
    assert (tmp_path / "fxgraph/x/entry").read_bytes() == b"kernel"


def test_failures_are_listed_with_their_reasons(tmp_path: Path) -> None:
    filled = Filled(tmp_path)
    filled.add(outcome("a"), archive(x=b"kernel"))
    for key in "bc":
        filled.add(outcome(key, "It fails."), None)
    first, second = filled.describe().splitlines()
    assert first.startswith("1 samples in ") and "2.0 s in the median" in first
    assert second.split() == ["2", "It", "fails.", "(example/b,", "example/c)"]


def test_an_entry_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as packed:
        packed.addfile(tarfile.TarInfo("../outside"))
    with pytest.raises(tarfile.OutsideDestinationError):
        Filled(tmp_path / "filled").add(outcome("a"), file.getvalue())


def test_versions_are_not_mixed_in_a_folder(tmp_path: Path) -> None:
    filled = Filled(tmp_path)
    filled.check_manifest(FIGURES)
    filled.check_manifest({**FIGURES, "compile_s": 3.0})
    with pytest.raises(GraphNetError, match="with another version of torch"):
        filled.check_manifest({**FIGURES, "torch_key": "c"})


def test_rows_keep_the_order_of_their_file(tmp_path: Path) -> None:
    from graphnet_datasets.sample import Op, Sample
    from graphnet_datasets.sample.arguments import Ref

    twice = Sample(
        "example/twice",
        *("torch", "other", LINEAR.inputs),
        (Op("torch.relu", (Ref(0),)), Op("torch.relu", (Ref(2),))),
        (Ref(3),),
    )
    path = write_table([twice, LINEAR], tmp_path / "rows.parquet")
    assert [row["id"] for row in read_in_order(path)] == [twice.id, LINEAR.id]


def test_registers_are_read_from_a_cubin() -> None:
    def attribute(kind: int, value: int) -> bytes:
        return struct.pack("<BBHII", 4, kind, 8, 1, value)

    info = attribute(0x2F, 40) + struct.pack("<BBH", 3, 0x1B, 255) + attribute(0x2F, 96)
    info += attribute(0x11, 24)
    names = b"\0.nv.info\0.shstrtab\0"
    table = 64 + len(info) + len(names)
    header = bytearray(64)
    struct.pack_into("<Q", header, 0x28, table)
    struct.pack_into("<HHH", header, 0x3A, 64, 3, 2)
    sections = [
        struct.pack("<IIQQQQ24x", *fields)
        for fields in (
            (0, 0, 0, 0, 0, 0),
            (1, 1, 0, 0, 64, len(info)),
            (10, 3, 0, 0, 64 + len(info), len(names)),
        )
    ]
    assert count_registers(bytes(header) + info + names + b"".join(sections)) == (96, 6)


@pytest.mark.parametrize(
    "option", ["mode=max-autotune-no-cudagraphs", 'config={"coordinate_descent_tuning": true}']
)
def test_options_that_time_kernels_are_refused(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = write_table([LINEAR], tmp_path / "rows.parquet")
    arguments = ["gpu-cache", "--card", "cpu", "--samples", str(rows), "--out", str(tmp_path)]
    assert main([*arguments, "--option", option]) == 1
    assert "chooses kernels by their times on the card" in capsys.readouterr().err


def test_an_unknown_card_is_refused() -> None:
    with pytest.raises(GraphNetError, match="There is no card `a100`"):
        card_named("a100")


@NEEDS_CUDA_BUILD
@pytest.mark.parametrize("name", CARDS)
def test_a_process_sees_the_card(name: str) -> None:
    code = (
        "from builder.gpu_cache.stand_in import card_named, pretend\n"
        f"pretend(card_named({name!r}))\n"
        "import torch\n"
        "print(torch.cuda.get_device_name(), torch.cuda.get_device_capability())\n"
        "print(torch.arange(3).to('cuda').cpu().tolist())\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.splitlines() == [f"{CARDS[name].name} (9, 0)", "[0, 1, 2]"], result.stderr


@NEEDS_CUDA_BUILD
def test_caches_of_the_card_are_hit(tmp_path: Path) -> None:
    rows = write_table([LINEAR], tmp_path / "rows.parquet")
    common = [sys.executable, "-m", "builder"]
    options = ["--samples", str(rows), "--out", str(tmp_path)]
    subprocess.run([*common, "gpu-cache", "--card", "h100", *options], check=True)
    check = [*common, "check-gpu-cache", str(tmp_path / "h100"), "--pretend", "h100"]
    result = subprocess.run(check, capture_output=True, text=True)
    assert "1 of 1 graphs hit" in result.stdout and result.returncode == 0, result.stdout

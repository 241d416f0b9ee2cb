"""Reading foreign directories: their faults, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.directory import read_directory, write_directory
from graphnet_datasets.directory.reading import FAULT_SHAPE, read_texts
from graphnet_datasets.directory.record import (
    FAULT_MODEL_NAME,
    FAULT_NO_MODEL_NAME,
    provenance_of,
    task_of,
)
from graphnet_datasets.directory.writing import print_texts
from graphnet_datasets.errors import GraphNetError, SourceError, UnsafePathError
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import Ref

SAMPLE = Sample(
    "a/b",
    "torch",
    "other",
    (Input("input", Value("float32", (2, 3)), "L_x_"),),
    (Op("torch.relu", (Ref(0),)),),
    (Ref(1),),
)


INPUT = {
    "role": "input",
    "value": ["float32", [2, 3]],
    "source_name": "x",
    "device": "cpu",
    "statistics": None,
    "data": None,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory as upstream's tools would have written it."""
    written = write_directory(SAMPLE, tmp_path / "samples" / "timm" / "relu")
    (written / "graphnet_datasets.json").unlink()
    return written


def change_record(folder: Path, **changes: Any) -> None:
    path = folder / "graph_net.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_upstreams_samples_carry_their_known_faults(upstream_samples: Path) -> None:
    transformers = upstream_samples / "samples" / "transformers-auto-model"
    [renamed] = read_directory(transformers / "opus-mt-es-eu")
    assert renamed.provenance.faults == (FAULT_MODEL_NAME,)
    assert not renamed.provenance.is_model_name_certain
    assert renamed.provenance.model_name == "Helsinki-NLP/opus-mt-eu-es"
    [nested] = read_directory(transformers / "google" / "owlvit-base-patch32")
    assert nested.id == "transformers-auto-model/google/owlvit-base-patch32"
    assert nested.provenance.is_model_name_certain
    assert nested.provenance.license == "apache-2.0"


def test_upstreams_symbols_become_symbols(upstream_samples: Path) -> None:
    folder = upstream_samples / "samples" / "transformers-auto-model" / "google_t5-efficient-tiny"
    [sample] = read_directory(folder)
    assert sample.symbols == (Symbol("S0", 1), Symbol("S1", 12))
    assert sample.inputs[0].value.shape == ("S0", "S1", 256)
    assert sample.shape_of(sample.inputs[0].value) == (1, 12, 256)


@pytest.mark.parametrize(
    ("model_name", "folder", "faults"),
    [
        ("google/owlvit-base-patch32", "owlvit-base-patch32", ()),
        ("google/owlvit-base-patch32", "google_owlvit-base-patch32", ()),
        ("resnet18", "resnet18", ()),
        ("", "resnet18", ()),
        ("resnet34", "resnet18", (FAULT_MODEL_NAME,)),
        ("NO_VALID_MATCH_FOUND", "resnet18", (FAULT_NO_MODEL_NAME,)),
    ],
)
def test_a_model_name_that_disagrees_is_marked(
    model_name: str, folder: str, faults: tuple[str, ...]
) -> None:
    found = provenance_of({"model_name": model_name}, folder, "")
    assert found.faults == faults
    assert found.is_model_name_certain is (not faults)


@pytest.mark.parametrize(
    ("record", "sample_id", "task"),
    [
        ({"heuristic_tag": "computer_vision"}, "timm/x", "cv"),
        ({"heuristic_tag": "multimodal"}, "x", "multimodal"),
        (
            {"heuristic_tag": "other", "source": "torchgeometric"},
            "torchgeometric/GIN",
            "scientific",
        ),
        ({"heuristic_tag": "robots"}, "x", "other"),
        ({}, "PaddleNLP/ernie", "nlp"),
        ({}, "PaddleX/ResNet18", "cv"),
        ({}, "PaddleX/TimesNet/subgraph_5", "other"),
        ({}, "PaddleScience/euler_beam/subgraph_1", "scientific"),
    ],
)
def test_tasks_follow_source_and_tag(record: dict[str, Any], sample_id: str, task: str) -> None:
    assert task_of(record, sample_id) == task


def test_other_fields_of_the_record_are_kept(folder: Path) -> None:
    change_record(folder, dynamic=False, symbolic_dimension_reifier="x", heuristic_tag="robots")
    [sample] = read_directory(folder)
    assert json.loads(sample.provenance.metadata) == {
        "num_devices_required": 1,
        "num_nodes_required": 1,
        "dynamic": False,
        "symbolic_dimension_reifier": "x",
        "heuristic_tag": "robots",
    }
    write_directory(sample, folder)
    (folder / "graphnet_datasets.json").unlink()
    assert read_directory(folder) == [sample]


def test_a_symbolic_shape_that_disagrees_is_marked_and_left_out(folder: Path) -> None:
    (folder / "input_tensor_constraints.py").write_text(
        "from sympy import Symbol\n\nS0 = Symbol('S0')\n\n"
        "dynamic_dim_constraint_symbols = [S0]\n"
        "dynamic_dim_constraint_symbol2example_value = {S0: 5}\n"
        "dynamic_dim_constraint_input_shapes = [([S0, 3], 'L_x_')]\n"
    )
    [sample] = read_directory(folder)
    assert sample.provenance.faults == (FAULT_SHAPE,)
    assert sample.inputs[0].value.shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("graph_net.json", "{\n nonsense", "line 2: this is not JSON. Correct the file or leave "
         "the sample out."),
        ("graph_net.json", "[]", "must contain a JSON object. Correct it or leave the sample out."),
        ("graph_net.json", '{"framework": "jax"}', "names the framework 'jax' (accepted: torch, "
         "paddle). Correct it or leave the sample out."),
        ("graph_net.json", '{"framework": "torch", "source": 3}', "`source` must be a string. "
         "Correct it or leave the sample out."),
        ("graph_net.json", '{"framework": "torch", "original_tag": [3]}', "`original_tag` must "
         "be a list of strings. Correct it or leave the sample out."),
        ("graph_net.json", "[" * 100_000, "line 1: this is not JSON. Correct the file or leave "
         "the sample out."),
        ("input_meta.py", 'class A:\n    name = "L_x_"\n    shape = []\n    dtype = "int64"\n',
         "line 1: the tensor `L_x_` is also declared in `weight_meta.py`. Remove one of the two "
         "declarations."),
        ("graphnet_datasets.json", "{}", "does not match the other files of its directory "
         "(ValueError: It must be an object of version 1). Delete it to read only the other "
         "files, or write the directory again."),
        ("graphnet_datasets.json", '{"version": 1, "results": []}', "does not match the other "
         "files of its directory (ValueError: zip() argument 2 is shorter than argument 1). Delete "
         "it to read only the other files, or write the directory again."),
        ("graphnet_datasets.json", '{"version": 1, "id": "../etc"}', "does not match the other "
         "files of its directory (SampleError: The sample id '../etc' is not a path of letters, "
         "digits and `_.+=@-` with parts separated by `/`. Rename the sample). Delete it to read "
         "only the other files, or write the directory again."),
    ],
)  # fmt: skip
def test_a_broken_file_is_refused_by_name(folder: Path, name: str, text: str, message: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(SourceError) as caught:
        read_directory(folder)
    separator = ": " if message.startswith("`") else ", " if message.startswith("line") else " "
    assert str(caught.value) == f"`{folder / name}`{separator}{message}"


@pytest.mark.parametrize(
    "extras",
    [
        {"id": 3},
        {"task": "robots"},
        {"provenance": {"os": "x"}},
        {"provenance": {"source": 3}},
        {"provenance": {"tags": "abc"}},
        {"provenance": [1]},
        {"symbols": [["s0"]]},
        {"symbols": [["s0", "1", None, None]]},
        {"constraints": [["s0", "==", "1"]]},
        {"inputs": {"7": {}}},
        {"inputs": {"0": {}}},
        {"inputs": {"x": {}}},
        {"inputs": [1]},
        {"results": [[["float32", ["os.abort()"]]]]},
        {"results": [[["float32", [1.5]]]]},
        {"inputs": {"0": INPUT | {"statistics": [10**400, 1.0, None, None, True]}}},
        {"inputs": {"0": INPUT | {"statistics": [0.0, "1"]}}},
        {"inputs": {"0": INPUT | {"statistics": [0.0, "1", None, None, True]}}},
        {"inputs": {"0": INPUT | {"statistics": [0.0, 1.0, None, None, 1]}}},
        {"inputs": {"0": INPUT | {"data": "not base64"}}},
        {"inputs": {"0": INPUT | {"data": "AAAA"}}},
        {"modules": [3]},
    ],
    ids=repr,
)
def test_extras_are_checked(folder: Path, extras: dict[str, Any]) -> None:
    (folder / "graphnet_datasets.json").write_text(json.dumps({"version": 1, **extras}))
    with pytest.raises(
        SourceError, match=r"graphnet_datasets\.json` does not match the other files"
    ):
        read_directory(folder)


def test_text_that_is_not_utf8_is_refused_with_its_line(folder: Path) -> None:
    (folder / "model.py").write_bytes(b"import torch\n\xff\xfe")
    with pytest.raises(SourceError) as caught:
        read_directory(folder)
    assert str(caught.value) == (
        f"`{folder / 'model.py'}`, line 2: this is not UTF-8 text. Correct the file or leave the "
        "sample out."
    )


JUNK = [
    "", "(", ")", "[", "]", "{", "}", ":", ",", "=", "'", '"', "\\", "\n", "\t", "*", "**", "-",
    "9**9", "lambda x: x", "import os", "None", "True", "...", "1e999", "0x" + "f" * 40, "\x00",
    "é", "@", "#", "if 1:", "yield", "*a", "b''", "1j", "nan", "//", "null", "1" * 5000,
]  # fmt: skip


@given(st.data())
def test_damaged_text_gives_a_sample_or_an_error_of_ours(data: st.DataObject) -> None:
    texts = print_texts(SAMPLE, Path("/samples/timm/relu"))
    name = data.draw(st.sampled_from(sorted(texts)))
    text = texts[name]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.sampled_from([0, 1, 4, 30]))
        text = text[:start] + data.draw(st.sampled_from(JUNK)) + text[end:]
    try:
        found = read_texts(texts | {name: text}, "timm/relu", "relu", "folder")
    except GraphNetError as error:
        assert "`" in str(error)
    else:
        assert isinstance(found, Sample)


@pytest.mark.parametrize("name", ["model.py", "graph_net.json", "input_meta.py"])
def test_links_of_a_folder_are_not_followed(folder: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret = 1")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    with pytest.raises(UnsafePathError, match="is a symbolic link"):
        read_directory(folder)
    outside.unlink()
    with pytest.raises(UnsafePathError, match="is a symbolic link"):
        read_directory(folder)


def test_a_subgraph_that_is_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "subgraph_0").symlink_to(folder)
    with pytest.raises(UnsafePathError, match="outside of"):
        read_directory(tree)


def test_a_pipe_is_not_opened(folder: Path) -> None:
    (folder / "model.py").unlink()
    os.mkfifo(folder / "model.py")
    with pytest.raises(SourceError, match=r"model\.py` is not a regular file\."):
        read_directory(folder)


def test_an_old_directory_of_paddle_that_names_no_framework_is_read(tmp_path: Path) -> None:
    ops = (Op("paddle._C_ops.relu", (Ref(0),)),)
    inputs = (Input("input", Value("float32", (2, 3)), "data_0"),)
    relu = Sample("old/relu", "paddle", "other", inputs, ops, Ref(1))
    folder = write_directory(relu, tmp_path / "paddle_samples" / "old")
    record = json.loads((folder / "graph_net.json").read_text())
    del record["framework"]
    (folder / "graph_net.json").write_text(json.dumps(record))
    assert read_directory(folder)[0].framework == "paddle"


def test_a_directory_of_torch_has_to_name_its_framework(tmp_path: Path) -> None:
    folder = write_directory(SAMPLE, tmp_path / "samples" / "old")
    record = json.loads((folder / "graph_net.json").read_text())
    del record["framework"]
    (folder / "graph_net.json").write_text(json.dumps(record))
    with pytest.raises(SourceError, match="names the framework 'None'"):
        read_directory(folder)

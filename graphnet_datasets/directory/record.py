"""Reading and writing of `graph_net.json`: framework, task and provenance, with known faults."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..decoding import load_json
from ..errors import SourceError
from ..json_text import parse_json
from ..sample import Provenance, Sample
from ..sample.vocabulary import Framework, Task, framework_names, is_framework

FAULT_MODEL_NAME = "model_name_disagrees_with_folder"
"""Fault: the recorded model name does not match the folder name, so its licence may be wrong."""

FAULT_NO_MODEL_NAME = "model_name_not_found"
"""Fault: the search for the model's name on the Hub failed and left a placeholder."""

_NO_NAME = "NO_VALID_MATCH_FOUND"
_TASK_OF_TAG: Mapping[str, Task] = {
    "computer_vision": "cv", "nlp": "nlp", "audio": "audio", "multimodal": "multimodal",
    "scientific": "scientific", "other": "other",
}  # fmt: skip
_TAG_OF_TASK = {task: tag for tag, task in _TASK_OF_TAG.items()}
_TASK_OF_SOURCE: Mapping[str, Task] = {
    "torchgeometric": "scientific", "torch_geometric": "scientific", "PaddleScience": "scientific",
    "PaddleNLP": "nlp", "PaddleX": "cv",
}  # fmt: skip
_TIME_SERIES = re.compile(
    r"(DLinear|NLinear|RLinear|Nonstationary|PatchTST|TiDE|TimesNet|AutoEncoder)(?![a-z])", re.I
)
_OWN_KEYS = ("framework", "model_name", "source", "original_tag", "heuristic_tag")
_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]")


def parse_record(text: str, file: str, *, source_framework: str = "") -> dict[str, Any]:
    """Parse the object in `graph_net.json`, and check the types of the keys in use.

    `source_framework` is the framework detected in the graph's source, for records without one,
    such as the oldest Paddle directories.

    Raises:
        SourceError: the text is not a valid record.
    """
    try:
        record = load_json(text, file)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise SourceError(
            f"`{file}`, line {line}: this is not JSON. Correct the file or leave the sample out."
        ) from error
    if not isinstance(record, dict):
        raise SourceError(
            f"`{file}` must contain a JSON object. Correct it or leave the sample out."
        )
    if source_framework:
        record.setdefault("framework", source_framework)
    if not is_framework(str(record.get("framework"))):
        raise SourceError(
            f"`{file}` names the framework {str(record.get('framework'))[:40]!r} (accepted: "
            f"{', '.join(framework_names())}). Correct it or leave the sample out."
        )
    for key in ("model_name", "source", "heuristic_tag"):
        if not isinstance(record.get(key, ""), str | None):
            raise SourceError(
                f"`{file}`: `{key}` must be a string. Correct it or leave the sample out."
            )
    tags = record.get("original_tag") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise SourceError(
            f"`{file}`: `original_tag` must be a list of strings. Correct it or leave the sample "
            "out."
        )
    return record


def task_of(record: Mapping[str, Any], sample_id: str) -> Task:
    """Return the task of a sample from its source if that is decisive, otherwise from its tag."""
    group, _, name = sample_id.partition("/")
    source = record.get("source") or group
    if source == "PaddleX" and _TIME_SERIES.match(name):
        return "other"
    if source in _TASK_OF_SOURCE:
        return _TASK_OF_SOURCE[source]
    return _TASK_OF_TAG.get(record.get("heuristic_tag") or "", "other")


def provenance_of(record: Mapping[str, Any], folder: str, source_hash: str) -> Provenance:
    """Return the provenance derived from the record and the name of the sample's folder."""
    model_name = record.get("model_name") or ""
    faults: tuple[str, ...] = ()
    if model_name == _NO_NAME:
        faults = (FAULT_NO_MODEL_NAME,)
    elif model_name and not _is_same_model(model_name, folder):
        faults = (FAULT_MODEL_NAME,)
    tags = tuple(record.get("original_tag") or ())
    licenses = [tag.removeprefix("license:") for tag in tags if tag.startswith("license:")]
    rest = {key: value for key, value in record.items() if key not in _OWN_KEYS}
    tag = record.get("heuristic_tag")
    if tag is not None and tag not in _TASK_OF_TAG:
        rest["heuristic_tag"] = tag
    return Provenance(
        source=record.get("source") or "",
        model_name=model_name,
        is_model_name_certain=not faults,
        license=licenses[0] if licenses else "",
        tags=tags,
        source_hash=source_hash,
        faults=faults,
        metadata=json.dumps(rest),
    )


def _is_same_model(model_name: str, folder: str) -> bool:
    plain, short, own = (
        _NOT_ALPHANUMERIC.sub("", text.lower())
        for text in (model_name, model_name.rpartition("/")[2], folder)
    )
    return own in (plain, short)


def print_record(sample: Sample) -> str:
    """Return the contents of `graph_net.json` for a sample."""
    framework: Framework = sample.framework
    provenance = sample.provenance
    record: dict[str, Any] = {
        "framework": framework,
        "num_devices_required": 1,
        "num_nodes_required": 1,
    }
    rest = parse_json(provenance.metadata)
    if isinstance(rest, dict):
        record |= {key: value for key, value in rest.items() if key not in _OWN_KEYS}
    if provenance.model_name:
        record["model_name"] = provenance.model_name
    if provenance.source:
        record["source"] = provenance.source
    if provenance.tags:
        record["original_tag"] = list(provenance.tags)
    record["heuristic_tag"] = _TAG_OF_TASK[sample.task]
    if isinstance(rest, dict) and isinstance(rest.get("heuristic_tag"), str):
        record["heuristic_tag"] = rest["heuristic_tag"]
    return json.dumps(record, indent=4) + "\n"

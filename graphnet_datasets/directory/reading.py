"""Reading of directories in GraphNet's layout; none of their code is executed."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..collector import not_collecting
from ..errors import DatasetNotFoundError, SourceError, raises_only
from ..frameworks import module
from ..frameworks.tensor_metadata import TensorMeta, parse_tensor_metadata
from ..paths import check_links, check_target, open_file
from ..sample import CustomOperator, Sample
from ..sample.symbols import Dim, evaluate
from . import extras
from .constraints import Declarations, parse_constraints
from .record import parse_record, provenance_of, task_of

MAX_FILE_BYTES = 64 * 2**20
"""Limit of a file's size. The largest file among 3,477 upstream samples has 4 MB."""

FAULT_SHAPE = "symbolic_shape_disagrees"
"""Fault: a symbolic shape does not match the recorded shape at the symbols' example values."""

REQUIRED = ("graph_net.json", "model.py", "weight_meta.py")
OPTIONAL = (
    "input_meta.py", "input_tensor_constraints.py", "graph_hash.txt", extras.FILE_NAME,
)  # fmt: skip

_SUBGRAPH = re.compile(r"subgraph_(\d{1,6})\Z")
_SAMPLES_FOLDER = re.compile(r"(\w+_)?samples\Z")
_NOT_ID = re.compile(r"[^A-Za-z0-9_.+=@-]+")
_IMPORTED = re.compile(r"^import (paddle)\b", re.MULTILINE)
"""Framework by import statement, for records without a framework (old Paddle samples)."""
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


@raises_only(SourceError)
def read_directory(path: str | os.PathLike[str]) -> list[Sample]:
    """Return the samples in a GraphNet directory: its own, and those of its `subgraph_*` folders.

    The id of a sample that was not written by `write_directory` is derived from the folders below
    `samples`, or from the last folder. Known errors in the files are listed in `provenance.faults`.

    Raises:
        DatasetNotFoundError: the directory does not exist, or has no sample.
        SourceError: a file is missing or invalid; the message names file and line.
        UnknownOperatorError: a graph calls an operator that is not in the operator table.
        UnsafePathError: a file is a symbolic link, or a folder is a link that leads outside.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise DatasetNotFoundError(
            f"There is no directory `{folder}`. Pass the directory of a GraphNet sample, which "
            "contains `model.py` and `graph_net.json`."
        )
    folders = _subgraphs(folder)
    if (folder / "model.py").exists() or (folder / "graph_net.json").exists():
        folders = [folder, *folders]
    if not folders:
        raise DatasetNotFoundError(
            f"The directory `{folder}` has no GraphNet sample: it has neither `model.py` nor a "
            "folder `subgraph_0`. Choose another directory."
        )
    for child in folders:
        check_target(folder, child)
    return [read_folder(child) for child in folders]


def is_subgraph(path: Path) -> bool:
    """Return whether a path is a directory named like a piece of a model."""
    return _SUBGRAPH.match(path.name) is not None and path.is_dir() and not path.is_symlink()


def _has_files(folder: Path) -> bool:
    """Return whether a directory has at least one of the required files of a sample."""
    return any((folder / name).exists() for name in REQUIRED)


def _subgraphs(folder: Path) -> list[Path]:
    folders = [
        (int(match[1]), child)
        for child in folder.iterdir()
        if (match := _SUBGRAPH.match(child.name)) and _has_files(child)
    ]
    return [child for _, child in sorted(folders)]


def read_folder(folder: Path) -> Sample:
    """Return the sample whose files are in `folder` itself, ignoring nested folders.

    Raises:
        SourceError, UnknownOperatorError: as `read_directory`.
    """
    texts = {name: _read_file(folder, name, required=True) for name in REQUIRED}
    for name in OPTIONAL:
        if os.path.lexists(folder / name):
            texts[name] = _read_file(folder, name, required=False)
    absolute = folder.absolute()
    index, count = 0, 1
    name = absolute.name
    if match := _SUBGRAPH.match(name):
        index, count = int(match[1]), len(_subgraphs(absolute.parent))
        name = absolute.parent.name
    sample_id = make_id(absolute)
    with not_collecting():  # a syntax tree has many objects and no garbage
        sample = read_texts(texts, sample_id, name, str(folder))
    if match and extras.FILE_NAME not in texts:
        provenance = dataclasses.replace(
            sample.provenance,
            parent_id=sample_id.rpartition("/")[0],
            graph_index=index,
            graph_count=count,
        )
        sample = dataclasses.replace(sample, provenance=provenance)
    return sample


def _read_file(folder: Path, name: str, required: bool) -> str:
    """Return the contents of a file in a folder; links are not followed."""
    path = folder / name
    if path.is_symlink() or path.is_file():
        check_links(folder, name)
    else:
        problem = "is missing" if required and not path.exists() else "is not a regular file"
        raise SourceError(
            f"`{path}` {problem}. A GraphNet sample has {', '.join(REQUIRED)}; complete the "
            "directory or leave the sample out."
        )
    with open_file(folder, name) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise SourceError(
            f"`{path}` has more than {MAX_FILE_BYTES} bytes, more than any GraphNet file. Omit the "
            "sample."
        )
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"`{path}`, line {line}: this is not UTF-8 text. Correct the file or leave the sample "
            "out."
        ) from error


def make_id(folder: Path) -> str:
    """Return the id of the sample in an absolute folder: the path below `samples`.

    >>> make_id(Path("/GraphNet/paddle_samples/PaddleX/ResNet18")), make_id(Path("/home/my net"))
    ('PaddleX/ResNet18', 'my_net')
    """
    parts = folder.parts
    start = len(parts) - (2 if _SUBGRAPH.match(folder.name) else 1)
    for position, part in enumerate(parts[:-1]):
        if _SAMPLES_FOLDER.match(part):
            start = position + 1
    clean = [_NOT_ID.sub("_", part) for part in parts[start:]]
    return "/".join(part if part[0] not in ".+=@-" else f"_{part}" for part in clean)


def read_texts(
    texts: Mapping[str, str],
    sample_id: str,
    folder: str,
    where: str,
    custom_operators: tuple[CustomOperator, ...] = (),
) -> Sample:
    """Return the sample described by the contents of a directory's files.

    The recorded model name should match `folder`. `where` is the directory in error messages.
    `custom_operators` are allowed in addition to those declared in the files.
    """
    imported = next(iter(_IMPORTED.findall(texts["model.py"])), "")
    record = parse_record(
        texts["graph_net.json"], f"{where}/graph_net.json", source_framework=imported
    )
    metadata = parse_tensor_metadata(texts["weight_meta.py"], f"{where}/weight_meta.py")
    for name, meta in parse_tensor_metadata(
        texts.get("input_meta.py", ""), f"{where}/input_meta.py"
    ).items():
        if name in metadata:
            raise SourceError(
                f"`{where}/input_meta.py`, line {meta.line}: the tensor `{name[:80]}` is also "
                "declared in `weight_meta.py`. Remove one of the two declarations."
            )
        metadata[name] = meta
    declared = Declarations()
    if texts.get("input_tensor_constraints.py", "").strip():
        declared = parse_constraints(
            texts["input_tensor_constraints.py"], f"{where}/input_tensor_constraints.py"
        )
    text_hash = texts.get("graph_hash.txt", "").strip()
    provenance = provenance_of(record, folder, text_hash if _SHA256.match(text_hash) else "")
    shapes = _check_shapes(declared, metadata)
    if len(shapes) < len(declared.shapes):
        faults = (*provenance.faults, FAULT_SHAPE)
        provenance = dataclasses.replace(provenance, faults=faults)
    options: dict[str, Any] = {}
    if extras.FILE_NAME in texts:
        custom_operators += extras.read_custom_operators(
            texts[extras.FILE_NAME], f"{where}/{extras.FILE_NAME}"
        )
    if custom_operators:
        options["custom_operators"] = custom_operators
    sample = module(record["framework"], "source").parse_source(
        texts["model.py"],
        metadata,
        sample_id=sample_id,
        task=task_of(record, sample_id),
        symbols=declared.symbols,
        constraints=declared.constraints,
        shapes=shapes,
        provenance=provenance,
        file=f"{where}/model.py",
        **options,
    )
    if extras.FILE_NAME in texts:
        sample = extras.apply_extras(sample, texts[extras.FILE_NAME], f"{where}/{extras.FILE_NAME}")
    return sample


def _check_shapes(
    declared: Declarations, metadata: Mapping[str, TensorMeta]
) -> dict[str, tuple[Dim, ...]]:
    """Return the symbolic shapes that match the recorded shapes."""
    hints = {symbol.name: symbol.hint for symbol in declared.symbols}
    agreeing = {}
    for name, shape in declared.shapes.items():
        meta = metadata.get(name)
        if meta is None or tuple(evaluate(dim, hints) for dim in shape) == meta.shape:
            agreeing[name] = shape
    return agreeing

"""Writing of samples in GraphNet's layout, for upstream's tools and `read_directory`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import SampleError, raises_only
from ..frameworks import module
from ..frameworks.text_form import TextForm
from ..sample import Sample
from . import extras
from .constraints import print_constraints
from .metadata import print_tensor_metadata
from .reading import OPTIONAL, REQUIRED, is_subgraph, make_id, read_texts
from .record import print_record


@raises_only(SampleError)
def write_directory(samples: Sample | Sequence[Sample], path: str | os.PathLike[str]) -> Path:
    """Write a sample, or several in `subgraph_0`, `subgraph_1`, …, and return the directory.

    Data without a place in GraphNet's files (ids, roles, recorded results, …) are written to
    `graphnet_datasets.json`, so that `read_directory` returns equal samples. All files are complete
    before the first appears. Files of an earlier GraphNet directory are replaced or deleted,
    including those of pieces that no longer exist; other files are kept.

    Raises:
        SampleError: a sample cannot be printed as source, or the path is a file, a link, or a
            directory with other files only.
    """
    target = Path(path).absolute()
    _check_replaceable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as temporary:
        written = Path(temporary) / "new"
        if isinstance(samples, Sample):
            _write_folder(samples, written, target)
        else:
            written.mkdir()
            for index, sample in enumerate(samples):
                name = f"subgraph_{index}"
                _write_folder(sample, written / name, target / name)
        if not target.exists() or not any(target.iterdir()):
            written.replace(target)
        else:
            _replace_files(target, written)
    return target


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    is_directory = target.is_dir() and not target.is_symlink()
    if is_directory and (_own_files(target) or not any(target.iterdir())):
        return
    raise SampleError(
        f"`{target}` is not a GraphNet directory, and its contents would be lost. "
        "Choose another path or remove it."
    )


def _own_files(folder: Path) -> list[Path]:
    """Return the files of samples in a folder that GraphNet or `write_directory` wrote."""
    folders = [folder, *(child for child in folder.iterdir() if is_subgraph(child))]
    return [
        place / name
        for place in folders
        if (place / "graph_net.json").is_file()
        for name in (*REQUIRED, *OPTIONAL)
        if (place / name).is_file()
    ]


def _replace_files(target: Path, written: Path) -> None:
    """Move new files to a directory, and delete the files of earlier samples there."""
    stale = _own_files(target)
    for file in sorted(path for path in written.rglob("*") if path.is_file()):
        place = target / file.relative_to(written)
        place.parent.mkdir(exist_ok=True)
        file.replace(place)
        if place in stale:
            stale.remove(place)
    for file in stale:
        file.unlink()
    for folder in {file.parent for file in stale} - {target}:
        with contextlib.suppress(OSError):  # the folder has other files
            folder.rmdir()


def _write_folder(sample: Sample, folder: Path, final: Path) -> None:
    folder.mkdir(parents=True)
    for name, text in print_texts(sample, final).items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def print_texts(sample: Sample, folder: Path) -> dict[str, str]:
    """Return the file contents of a sample to be stored in `folder`, by file name."""
    module(sample.framework, "source")  # fails early for samples that could not be read back
    printer = module(sample.framework, "printer")
    names: tuple[str, ...] = printer.argument_names(sample, "source")
    text: str = printer.print_model(sample)
    form: TextForm = printer.FORM
    weight_text, input_text = print_tensor_metadata(sample, names, form)
    texts = {
        "graph_net.json": print_record(sample),
        "model.py": text,
        "weight_meta.py": weight_text,
        "input_meta.py": input_text,
        "graph_hash.txt": hashlib.sha256(text.encode()).hexdigest(),
    }
    if sample.symbols or form.has_constraints_always:
        texts["input_tensor_constraints.py"] = print_constraints(sample, names)
    reread = read_texts(texts, make_id(folder), folder.name, str(folder), sample.custom_operators)
    return texts | {extras.FILE_NAME: extras.print_extras(reread, sample)}

"""Write samples in GraphNet's layout, so that upstream's tools and `read_directory` read them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import SampleError
from ..frameworks import module
from ..frameworks.text_form import TextForm
from ..sample import Sample
from . import extras
from .constraints import print_constraints
from .metadata import print_tensor_metadata
from .reading import make_id, read_texts
from .record import print_record


def write_directory(samples: Sample | Sequence[Sample], path: str | os.PathLike[str]) -> Path:
    """Write one sample, or one in each of `subgraph_0`, `subgraph_1`, …, and return the directory.

    What GraphNet's files have no place for (ids, roles, recorded results, …) goes into
    `graphnet_datasets.json` beside them, so that `read_directory` gives equal samples. The whole
    directory is written under another name first; an earlier GraphNet directory is replaced.

    Raises:
        SampleError: a sample cannot be printed as source, or the path holds something else.
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
        old = Path(temporary) / "old"
        if target.exists():
            target.rename(old)
        try:
            written.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    return target


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    is_directory = target.is_dir() and not target.is_symlink()
    names = {each.name for each in target.iterdir()} if is_directory else {""}
    is_ours = "graph_net.json" in names or "subgraph_0" in names
    if names and not is_ours:
        raise SampleError(
            f"`{target}` holds something other than a GraphNet directory, which would be lost. "
            "Choose another path or remove it."
        )


def _write_folder(sample: Sample, folder: Path, final: Path) -> None:
    folder.mkdir(parents=True)
    for name, text in print_texts(sample, final).items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def print_texts(sample: Sample, folder: Path) -> dict[str, str]:
    """Return the texts of the files of a sample that is to stand in `folder`, by file name."""
    module(sample.framework, "source")  # what cannot be read back is not written
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
    found = read_texts(texts, make_id(folder), folder.name, str(folder), sample.custom_operators)
    return texts | {extras.FILE_NAME: extras.print_extras(found, sample)}

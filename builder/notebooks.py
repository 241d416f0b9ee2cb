"""Execution of the notebooks of `examples/`, and the comparison with their stored outputs.

A cell whose output depends on the machine, such as a table of times, has the tag `measured`: the
numbers of its output may differ between runs, but not the words.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from graphnet_datasets.atomic import write_text
from graphnet_datasets.errors import GraphNetError

NOTEBOOKS = Path(__file__).parents[1] / "examples"
MEASURED = "measured"
"""Tag of a cell whose output contains measurements."""
HASH = "code_sha256"
"""Key in the metadata of a notebook: the hash of the code that produced its outputs."""
TIMEOUT_S = 600

_REPEATED = re.compile(r"(?:# ?){2,}|(<tr>(?:(?!</tr>).)*</tr>)(?:\s*\1)+")
"""Numbers, or equal rows of a table, in a row: how many there are may depend on measurements."""
_WARNINGS = re.compile(r"<p>Warnings: [^<]*</p>")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|\b(?:nan|inf)\b")
_BLANKS = re.compile(r"[\s─━-]+")
_MAX_COLOURS = 64


def code_hash(notebook: Any) -> str:
    """Return the SHA-256 of the code cells of a notebook, in hexadecimal digits."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256("\0".join(cells).encode()).hexdigest()


def execute(notebook: Any) -> None:
    """Execute a notebook in a fresh kernel and an empty folder, and store its outputs in it.

    Raises:
        GraphNetError: A cell raises an exception or writes to standard error.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT_S,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute()
        except CellExecutionError as error:
            raise GraphNetError(f"A cell of the notebook fails:\n{error}") from error
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    for output in _outputs(notebook):
        if output.get("name") == "stderr":
            raise GraphNetError(f"A cell of the notebook writes to standard error: {output.text}")
        picture = output.get("data", {}).get("image/png")
        if picture:
            output.data["image/png"] = _smaller(picture)
    notebook.metadata[HASH] = code_hash(notebook)


def deterministic(notebook: Any) -> list[str]:
    """Return the texts of a notebook's outputs that each execution of its code reproduces.

    Addresses in memory are removed; in cells tagged `measured`, numbers, repeated rows and notes on
    noise too. The content of a PNG is ignored, since its bytes depend on the version of the library
    that compressed it.
    """
    texts = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        is_measured = MEASURED in cell.metadata.get("tags", [])
        for output in _joined(cell.outputs):
            for kind, text in _texts(output):
                text = _ADDRESS.sub("0x", text)
                if is_measured:
                    text = _BLANKS.sub(" ", _NUMBER.sub("#", _WARNINGS.sub("", text)))
                    text = _REPEATED.sub(lambda match: match[1] or "# ", text)
                texts.append(f"{kind}: {text}")
    return texts


def first_difference(old: Any, new: Any) -> str | None:
    """Return a sentence about the first deterministic output that differs, or None."""
    before, after = deterministic(old), deterministic(new)
    for left, right in zip(before, after, strict=False):
        if left != right:
            return f"The stored output\n{left[:2000]}\nis now\n{right[:2000]}"
    if len(before) != len(after):
        return f"The notebook stores {len(before)} outputs, and its code has {len(after)}."
    return None


def add_notebooks(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `python -m builder notebooks`."""
    parser.set_defaults(run=_run)
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all of examples/")


def _run(options: argparse.Namespace) -> int:
    """Execute notebooks, store them with their outputs, and report which outputs changed."""
    import nbformat

    changed = False
    for path in options.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        old, new = (nbformat.read(path, as_version=4) for _ in range(2))
        execute(new)
        difference = first_difference(old, new)
        write_text(path, nbformat.writes(new) + "\n")
        print(f"{path.name}: {difference or 'the same outputs except measurements'}", flush=True)
        changed |= difference is not None
    if changed:
        print("The notebooks were stored with their new outputs: read and commit them.")
    return int(changed)


def _outputs(notebook: Any) -> Iterator[Any]:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            yield from cell.outputs


def _joined(outputs: Iterable[Any]) -> list[Any]:
    """Return outputs with neighbouring texts of one stream joined; where one ends is chance."""
    joined: list[Any] = []
    for output in outputs:
        is_stream = output.output_type == "stream"
        if is_stream and joined and joined[-1].get("name") == output.name:
            joined[-1] = type(output)({**output, "text": joined[-1].text + output.text})
        else:
            joined.append(output)
    return joined


def _texts(output: Any) -> Iterator[tuple[str, str]]:
    if output.output_type == "stream":
        yield output.name, output.text
    for kind, value in sorted(output.get("data", {}).items()):  # a stored notebook is sorted
        yield kind, "" if kind == "image/png" else str(value)


def _smaller(picture: str) -> str:
    """Return a PNG in base64 with a palette of few colours, which is a third of the size."""
    import base64

    from PIL import Image

    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    file = io.BytesIO()
    image.quantize(_MAX_COLOURS).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()

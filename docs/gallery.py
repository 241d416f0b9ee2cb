"""The gallery: pictures that the library draws while the documentation is built."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from graphnet_datasets.cli.app import app
from graphnet_datasets.report import plot_coverage, plot_distributions
from graphnet_datasets.storage.selection import list_rows

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclasses.dataclass(frozen=True)
class Picture:
    """Pictures that one command or one piece of Python draws, and the text above them.

    A command runs in a folder with a link to `examples/`. `> FILE` at its end stores its output.
    """

    title: str
    text: str
    source: str | Callable[[], None]
    files: tuple[str, ...]

    def draw(self) -> None:
        """Write the files to the working directory.

        Raises:
            RuntimeError: the command fails.
        """
        if not isinstance(self.source, str):
            self.source()
            return
        command, _, target = self.source.partition(" > ")
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        if result.exit_code != 0:
            raise RuntimeError(f"`{command}` fails: {result.output}") from result.exception
        if target:
            Path(target).write_text(result.stdout, encoding="utf-8")

    def lines(self, folder: str) -> list[str]:
        """Return the section of the page, whose pictures are in `folder`."""
        if isinstance(self.source, str):
            source = f"```console\n$ {self.source}\n```\n"
        else:
            source = f"```python\n{inspect.getsource(self.source).strip()}\n```\n"
        images = [f"![{self.title}]({folder}/{file})\n" for file in self.files]
        return [f"## {self.title}\n", f"{self.text}\n", source, *images]


def draw_sizes() -> None:
    """Draw the sizes of all graphs, by task."""
    columns = {"num_ops": "operators", "num_params": "parameters", "flops": "operations"}
    rows = list_rows("graphnet", "all", ["task", *columns])
    quantities: dict[str, Any] = {label: {} for label in columns.values()}
    for row in rows:
        for name, label in columns.items():
            if row[name] is not None:
                by_dataset = quantities[label].setdefault(row["task"], {"graphs": []})
                by_dataset["graphs"].append(row[name])
    plot_distributions(quantities).savefig("sizes.svg")


def draw_coverage() -> None:
    """Draw the share of all operators that typical parts cover."""
    num_ops = sum(row["num_ops"] for row in list_rows("graphnet", "all", ["num_ops"]))
    parts = list_rows("graphnet", "typical", ["num_ops", "num_occurrences"])
    covered = sorted((row["num_ops"] * row["num_occurrences"] for row in parts), reverse=True)
    plot_coverage({"parts with their shapes": covered}, num_ops).savefig("coverage.svg")


PICTURES = (
    Picture(
        "A graph",
        "Operators are boxes with their result shapes. Modules and repeated blocks are folded "
        "until at most `--max-boxes` boxes are left: the six equal layers of this model "
        "are one box.",
        "graphnet show transformers/distilbert-base --svg distilbert.svg",
        ("distilbert.svg",),
    ),
    Picture(
        "A failing part of a graph",
        "`graphnet bisect` reduces a failing graph to few operators and draws them. This part of a "
        "network in train mode is wrong under TorchScript.",
        "graphnet show examples/bisection/torchscript_batch_norm/minimal.parquet --svg minimal.svg",
        ("minimal.svg",),
    ),
    Picture(
        "Scores and speedups",
        "S(t) and ES(t) at each tolerance, the distribution of speedups by task, speedups over the "
        "time of eager, and the slowest and fastest samples. By default, OpenVINO computes in "
        "bfloat16, which is right only at loose tolerances.",
        "graphnet plot graphnet --compiler openvino --out plots",
        (
            "plots/speedup_score.svg",
            "plots/error_aware_speedup_score.svg",
            "plots/speedups_by_task.svg",
            "plots/latency.svg",
        ),
    ),
    Picture(
        "A schedule",
        "The loops of a tensor comprehension: a matrix product with tiles, vectors and parallel "
        "blocks.",
        "graphnet tc compile examples/tc/tmm.tc --shape A=64,32 --shape B=48,32 --emit svg"
        " > schedule.svg",
        ("schedule.svg",),
    ),
    Picture(
        "Sizes of graphs",
        "Boxes are quartiles, whiskers the 5th and 95th percentiles.",
        draw_sizes,
        ("sizes.svg",),
    ),
    Picture(
        "Coverage by typical parts",
        "The share of all operators that the first parts of the config `typical` cover.",
        draw_coverage,
        ("coverage.svg",),
    ),
)

INTRODUCTION = """# Gallery

Pictures that the library draws. While this site is built, the command or the code above each
picture draws it from the embedded dataset and its records. `graphnet report RUNS --out site` writes
a site of run records with such pictures.
"""


def make_gallery(folder: Path, pictures: Iterable[Picture] = PICTURES) -> str:
    """Draw the pictures into a new folder, and return the page that shows them.

    The page belongs in the parent of the folder.

    Raises:
        RuntimeError: a command fails or does not write its files.
    """
    folder.mkdir(parents=True)
    (folder / "examples").symlink_to(EXAMPLES, target_is_directory=True)
    lines = [INTRODUCTION]
    with contextlib.chdir(folder):
        for picture in pictures:
            picture.draw()
            missing = [file for file in picture.files if not Path(file).exists()]
            if missing:
                raise RuntimeError(f"`{picture.title}` does not write `{missing[0]}`.")
            lines += picture.lines(folder.name)
    (folder / "examples").unlink()
    return "\n".join(lines)

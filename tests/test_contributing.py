"""The paths of CONTRIBUTING, each followed in a scratch copy with the number of files it states."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ("graphnet_datasets", "builder")

pytestmark = pytest.mark.slow


@dataclasses.dataclass(frozen=True)
class Contribution:
    """A path of CONTRIBUTING.

    `title` is the first cell of its row. `files` are the changed files: the text of a new one, or
    pairs of a text in an existing one and its replacement. `check` is code that fails before the
    change, and `tests` is the file of tests that the row names.
    """

    title: str
    files: dict[str, str | list[tuple[str, str]]]
    check: str
    tests: str


COLUMN: dict[str, str | list[tuple[str, str]]] = {
    "graphnet_datasets/schema/graphs.py": [
        (
            "    # derived\n",
            "    # derived\n"
            '    GraphColumn("num_targets", pa.int64(), "number of operators", is_later=True,\n'
            "        value=lambda sample: len({op.target for op in sample.ops})),\n",
        ),
    ],
}
CONTRIBUTIONS = (
    Contribution(
        "an operator of torch",
        {
            "graphnet_datasets/operators/families/pointwise.py": [
                (
                    "gcd: aten* prims torch* Tensor* math",
                    "gcd: aten* prims torch* Tensor* checked math",
                )
            ],
        },
        "from graphnet_datasets.frameworks.torch.operators import is_checked, lookup\n"
        "assert is_checked(lookup('torch.gcd'))\n",
        "tests/frameworks/torch/test_operators.py",
    ),
    Contribution(
        "a compiler",
        {
            "graphnet_datasets/compilers/unchanged.py": """\
from .base import Compiler


class Unchanged(Compiler):
    name = "unchanged"

    def compile(self, module, example_inputs):
        return module
""",
            "graphnet_datasets/compilers/builtin.py": [
                (
                    '    ("torch", "xla", "xla:Xla"),\n',
                    '    ("torch", "xla", "xla:Xla"),\n'
                    '    ("torch", "unchanged", "unchanged:Unchanged"),\n',
                )
            ],
        },
        "from graphnet_datasets.compilers import make_compiler\n"
        "assert make_compiler('unchanged').compile(len, {}) is len\n",
        "tests/compilers/test_registry.py",
    ),
    Contribution(
        "a column of graphs",
        COLUMN,
        "from graphnet_datasets.schema import sample_to_row\n"
        "from tests.tables import chain\n"
        "assert sample_to_row(chain('cv/chain', 3))['num_targets'] == 1\n",
        "tests/schema/test_columns.py",
    ),
    Contribution(
        "a table or a config",
        {
            "graphnet_datasets/schema/notes.py": """\
import pyarrow as pa

from .columns import required

NOTE_COLUMNS = (
    required("schema_version", pa.int32(), "version of the format"),
    required("note_id", pa.string(), "name of the note"),
)
""",
            "graphnet_datasets/schema/tables.py": [
                (
                    "FAILURES = Table(",
                    "from .notes import NOTE_COLUMNS\n"
                    "NOTES = Table('notes', 'notes', NOTE_COLUMNS, 'note_id', 'note_id',\n"
                    "    ('schema_version', 'note_id'))\n"
                    "FAILURES = Table(",
                ),
                ("*(PROBLEMS, SOLUTIONS),", "*(PROBLEMS, SOLUTIONS, NOTES),"),
                ("_CONFIGS = {", "_NOTES = Config('notes', NOTES, 'my notes')\n_CONFIGS = {"),
                ('        Config("duplicates", ', '        _NOTES,\n        Config("duplicates", '),
            ],
        },
        "from graphnet_datasets.schema import CONFIGS, TABLES\n"
        "assert CONFIGS['notes'].table is TABLES['notes']\n",
        "tests/schema/test_tables.py",
    ),
    Contribution(
        "a command",
        {
            "graphnet_datasets/cli/greet.py": """\
import typer

app = typer.Typer()


@app.command("greet", epilog="Example: graphnet greet")
def greet() -> None:
    typer.echo("Hello")
""",
            "graphnet_datasets/cli/app.py": [
                ("    submit,\n    transform,", "    greet,\n    submit,\n    transform,"),
                ("    submit,\n)\n", "    submit,\n    greet,\n)\n"),
            ],
        },
        "from typer.testing import CliRunner\n"
        "from graphnet_datasets.cli.app import app\n"
        "assert CliRunner().invoke(app, ['greet']).output == 'Hello\\n'\n",
        "tests/cli/test_terminal.py",
    ),
    Contribution(
        "a transform",
        {
            "graphnet_datasets/transforms/copying.py": """\
import dataclasses


def copied(sample, running, *, suffix):
    yield dataclasses.replace(sample, id=sample.id + suffix)
""",
            "graphnet_datasets/transforms/registry.py": [
                (
                    "from .cut import Cutter\n",
                    "from .copying import copied\nfrom .cut import Cutter\n",
                ),
                (
                    '    for transform in (\n        Transform(\n            "symbolise",\n',
                    "    for transform in (\n"
                    "        Transform('copied', copied, {'suffix': str}, needs_run=False),\n"
                    '        Transform(\n            "symbolise",\n',
                ),
            ],
            "graphnet_datasets/cli/transform.py": [
                (
                    "    autocast: Annotated[\n",
                    "    copied: Annotated[str | None, typer.Option(help='The suffix.')] = None\n"
                    "    autocast: Annotated[\n",
                ),
                (
                    '        steps = [Step("symbolise", ',
                    "        options = {'suffix': self.copied}\n"
                    "        steps = [Step('copied', options)] if self.copied else []\n"
                    '        steps += [Step("symbolise", ',
                ),
            ],
        },
        "from graphnet_datasets.cli.transform import TransformOptions\n"
        "from graphnet_datasets.transforms.registry import apply\n"
        "from tests.tables import chain\n"
        "(made,) = apply(chain('cv/chain', 2), TransformOptions(copied='-2').steps())\n"
        "assert made.id == 'cv/chain-2'\n",
        "tests/transforms/test_registry.py",
    ),
    Contribution(
        "a tuner",
        {
            "graphnet_datasets/tuning/tuners/first.py": """\
from .base import MemoryTuner


class FirstTuner(MemoryTuner):
    def choose(self, task, n):
        return self.fresh(task, n)
""",
            "graphnet_datasets/tuning/registry.py": [
                (
                    '        "random": f"{__package__}.tuners.random:RandomTuner",\n',
                    '        "random": f"{__package__}.tuners.random:RandomTuner",\n'
                    '        "first": f"{__package__}.tuners.first:FirstTuner",\n',
                )
            ],
        },
        "from graphnet_datasets.tuning import make_tuner\n"
        "from tests.tuning.toy import TASKS, SmallSpace\n"
        "assert len(make_tuner('first', SmallSpace()).propose(TASKS[0], 3)) == 3\n",
        "tests/tuning/test_tuners.py",
    ),
    Contribution(
        "a model of the dataset",
        {
            "builder/catalogs/torch.txt": [
                (
                    "torch/fno-2d-wide |",
                    "torch/fno-2d-narrow | scientific | torch | fourier_operator | width=8 "
                    "modes=[4,4] | field=normal(2,1,32,32) | float32 | eval | |\n"
                    "torch/fno-2d-wide |",
                )
            ],
        },
        "from pathlib import Path\n"
        "from builder.catalog import read_catalog\n"
        "entries = read_catalog(Path('builder/catalogs/torch.txt'))\n"
        "assert 'torch/fno-2d-narrow' in [entry.name for entry in entries]\n",
        "tests/builder/test_catalog.py",
    ),
)

GATHER = """\
gather: aten torch Tensor checked flops=0 rule@Tensor,torch=value.gather
    torch_index=2.index/table:0.input/axis:1.dim
"""
GATHER_CHECK = """
import torch
from graphnet_datasets import materialize
from graphnet_datasets.frameworks.torch.operators import is_checked, lookup
from graphnet_datasets.frameworks.torch.walking.flop_formulas import count_flops
from graphnet_datasets.frameworks.torch.walking.forms import Form
from graphnet_datasets.frameworks.torch.walking.rules import apply_rule
from graphnet_datasets.inputs.consumers import Indexing, indexing_of
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref

assert is_checked(lookup("torch.Tensor.gather"))
forms = Form((5, 3), None, torch.float32), Form((2, 3), None, torch.int64)
assert apply_rule("torch.gather", (forms[0], 0, forms[1]), {}).shape == (2, 3)
table, index = torch.rand(5, 3), torch.tensor([[4, 0, 2], [1, 1, 3]])
result = torch.gather(table, 0, index)
assert count_flops(torch.ops.aten.gather.default, (table, 0, index), result) == 0
op = Op("torch.gather", (Ref(0), 0, Ref(1)))
assert indexing_of("torch", op) == Indexing(((2, "index"),), (0, "input"), (1, "dim"))
inputs = Input("input", Value("float32", (5, 3))), Input("input", Value("int64", (2, 3)))
sample = Sample("example/gather", "torch", "other", inputs, (op,), Ref(2))
assert torch.equal(materialize(sample)(table, index), result)
"""


def rows_of_the_page() -> dict[str, list[str]]:
    """Return the cells of each row of the table of paths, by the first cell."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0].strip(): [cell.strip() for cell in row] for row in rows[1:]}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources and tests, which links to the embedded dataset."""
    place = tmp_path_factory.mktemp("scratch")
    for name in (*LIBRARY, "tests", "metrics"):
        left_out = shutil.ignore_patterns("__pycache__", "starter")
        shutil.copytree(ROOT / name, place / name, ignore=left_out)
    (place / "graphnet_datasets" / "starter").symlink_to(ROOT / "graphnet_datasets" / "starter")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "setup.cfg", "docs", "examples"):
        (place / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


@pytest.mark.parametrize("contribution", CONTRIBUTIONS, ids=lambda path: path.title)
def test_a_path_needs_the_stated_number_of_files(contribution: Contribution, scratch: Path) -> None:
    row = rows_of_the_page()[contribution.title]
    before: dict[Path, str | None] = {}
    assert run(scratch, "-c", contribution.check).returncode != 0
    try:
        for name, change in contribution.files.items():
            path = scratch / name
            before[path] = path.read_text() if path.exists() else None
            path.write_text(change if isinstance(change, str) else edited(path, change))

        assert int(re.findall(r"\d+", row[-1])[0]) == len(contribution.files)
        assert contribution.tests in row[-2]
        checked = run(scratch, "-c", contribution.check)
        assert checked.returncode == 0, checked.stderr
        tested = run(scratch, "-m", "pytest", "-q", "-x", "-m", "not slow", contribution.tests)
        assert tested.returncode == 0, tested.stdout
    finally:
        for path, text in before.items():
            path.unlink() if text is None else path.write_text(text)


def test_an_entry_is_all_that_the_library_knows_about_an_operator(scratch: Path) -> None:
    family = scratch / "graphnet_datasets" / "operators" / "families" / "indexing.py"
    text = family.read_text()
    without, count = re.subn(r"(?m)^gather: .*\n(?:    .*\n)*", "", text)
    assert count == 1
    try:
        family.write_text(without)
        assert "UnknownOperatorError" in run(scratch, "-c", GATHER_CHECK).stderr
        family.write_text(edited(family, [('ENTRIES = """\n', f'ENTRIES = """\n{GATHER}')]))
        checked = run(scratch, "-c", GATHER_CHECK)
        assert checked.returncode == 0, checked.stderr
    finally:
        family.write_text(text)


def edited(path: Path, edits: list[tuple[str, str]]) -> str:
    """Return the text of a file after replacing the only occurrence of each first text."""
    text = path.read_text()
    for old, new in edits:
        assert text.count(old) == 1, f"`{path.name}` has {text.count(old)} occurrences of {old!r}."
        text = text.replace(old, new)
    return text


def run(scratch: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the scratch copy before all other packages."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=scratch,
        env=os.environ | {"PYTHONPATH": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

"""Messages: no password in an error, no control sequence on the terminal, our own errors."""

from __future__ import annotations

import ast
import dataclasses
import logging
import subprocess
import sys
import traceback
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from graphnet_datasets import export_dataset, load_dataset
from graphnet_datasets.cli.app import app
from graphnet_datasets.credentials import hide_credentials
from graphnet_datasets.errors import GraphNetError, SampleError, SymbolError
from graphnet_datasets.sample import Constraint, Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.sample.symbols import evaluate, free_symbols
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.storage.remote import Url
from graphnet_datasets.storage.table import write_table
from graphnet_datasets.terminal import printable
from tests.tables import chain

PACKAGE = Path(__file__).parents[2] / "graphnet_datasets"
SECRET = "hunter2-tiger"  # noqa: S105 - what must not be seen

WITH_SECRETS = (
    f"memory://me:{SECRET}@bucket/graphs",
    f"memory://{SECRET}@bucket/graphs",
    f"http://me:{SECRET}@127.0.0.1:9/graphs",
    f"http://me:{SECRET}/x@127.0.0.1:9/graphs",
    f"http://me:a@{SECRET}@127.0.0.1:9/graphs",
    f"http://127.0.0.1:9/graphs?X-Amz-Signature={SECRET}",
    f"http://127.0.0.1:9/graphs?part=1&access_token={SECRET}&x=2",
    f"carrier-pigeon://me:{SECRET}@coop/graphs",
    f"sftp://me:{SECRET}@127.0.0.1:9/graphs",
    f"github://me:{SECRET}@/graphs",
)


@pytest.mark.parametrize("url", WITH_SECRETS)
@pytest.mark.parametrize("call", ["load", "stream", "export from", "export to", "command"])
def test_no_error_shows_a_password_of_a_url(url: str, call: str, tmp_path: Path) -> None:
    if call == "command":
        result = CliRunner().invoke(app, ["list", "--dataset", url])
        assert result.exit_code == 1
        assert SECRET not in result.output
        return
    with pytest.raises(GraphNetError) as caught:
        if call == "load":
            load_dataset(url, "cv", split="train")
        elif call == "stream":
            load_dataset(url, "cv", streaming=True, split="train")
        elif call == "export from":
            export_dataset(tmp_path / "copy", url)
        else:
            export_dataset(url, tmp_path / "missing")
            load_dataset(url, "no-such-config", split="train")
    shown = "".join(traceback.format_exception(caught.value))
    lines = [line for line in shown.splitlines() if not line.startswith("    ")]  # source text
    assert SECRET not in "\n".join(lines)


def test_no_error_shows_a_secret_of_the_options() -> None:
    options = {"client_kwargs": {"aws_secret_access_key": SECRET}, "token": SECRET, "a": SECRET}
    with pytest.raises(GraphNetError) as caught:
        load_dataset("memory://there", storage_options=options, split="train")
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in repr(Url(f"s3://me:{SECRET}@x", options))


def test_every_error_redacts_credentials() -> None:
    classes = [GraphNetError]
    for each in classes:
        classes += each.__subclasses__()
    tried = [each for each in set(classes) if each.__init__ is GraphNetError.__init__]
    assert len(tried) > 15
    for each in tried:
        assert str(each(f"`s3://me:{SECRET}@x` is gone")).strip('"') == "`s3://***@x` is gone"


@given(
    st.text(),
    st.text(
        st.characters(exclude_characters="`'\"<> \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0"),
        max_size=9,
    ),
)
def test_text_without_a_url_stays_and_passwords_go(text: str, password: str) -> None:
    if "://" not in text and "=" not in text:
        assert hide_credentials(text) == text
    if not password.isspace() and not any(each.isspace() for each in password):
        hidden = hide_credentials(f"see `s3://me:{password}{SECRET}@bucket/x` there")
        assert hidden == "see `s3://***@bucket/x` there"


EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\rfirst\x08"
CONTROL = set(EVIL) - set("]0;owned[2Jm31first")


def evil_row() -> dict[str, Any]:
    """Return a row in which every text that the schema lets through holds control sequences."""
    row = sample_to_row(chain("cv/evil", 2, "cv"), {"family": "f" + EVIL, "flops": 1})
    texts = ("source", "license", "model_name", "why_excluded", "structure_hash", "mode")
    return row | {name: EVIL for name in texts if name in row}


def test_no_verb_lets_a_control_sequence_through(tmp_path: Path) -> None:
    row = evil_row()
    table = write_table([row, {**row, "id": "cv/other" + EVIL}], tmp_path / "evil.parquet")
    log = tmp_path / "evil.log"
    log.write_text(f"[Processing] {EVIL}\n[Datatype][eager] {EVIL}\n[Result] {EVIL}\n")
    folder = tmp_path / "samples" / "x"
    folder.mkdir(parents=True)
    (folder / "graph_net.json").write_text("{" + EVIL)
    (folder / "model.py").write_text(f"import os # {EVIL}\n{EVIL}\n")
    data = ("--dataset", str(table))
    for arguments in (
        ("list", *data),
        ("list", "--json", *data),
        ("list", EVIL, *data),
        ("list", "--dataset", "./" + EVIL),
        ("show", "cv/evil", *data),
        ("show", str(table)),
        ("show", EVIL),
        ("show", "cv/evil", "--names", EVIL, *data),
        ("export", str(tmp_path / "tree"), "--format", "graphnet", *data),
        ("export", str(tmp_path / "x"), "--format", EVIL),
        ("import", str(tmp_path / "samples"), "--out", str(tmp_path / "out.parquet")),
        ("validate", "cv/evil", "--check", EVIL, *data),
        ("translate", EVIL, "--out", str(tmp_path / "t.parquet"), *data),
        ("run", EVIL, *data, "--out", str(tmp_path / "runs")),
        ("run", "cv/evil", *data, "--compiler", EVIL, "--out", str(tmp_path / "runs")),
        ("run", "cv/evil", *data, "--option", EVIL, "--out", str(tmp_path / "runs")),
        ("run", "cv/evil", *data, "--device", EVIL, "--out", str(tmp_path / "runs")),
        ("score", "./" + EVIL),
        ("compare", "./" + EVIL, "./" + EVIL),
        ("plot", "./" + EVIL, "--out", str(tmp_path / "plots")),
        ("report", "./" + EVIL, "--out", str(tmp_path / "page.html")),
        ("import-log", str(log), "--out", str(tmp_path / "imported")),
        ("device", "--device", EVIL),
        ("compilers", "--framework", EVIL),
        ("push", "./" + EVIL, "org/x"),
        (EVIL,),
    ):
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        found = CONTROL & set(result.output)
        assert not found, (arguments, result.output)


def test_every_verb_prints_through_one_function() -> None:
    """Typer's and Python's own ways to print would let through what came from data."""
    for path in sorted((PACKAGE / "cli").glob("*.py")):
        if path.name == "terminal.py":
            continue
        calls = {
            ast.unparse(n.func)
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Call)
        }
        direct = {"typer.echo", "typer.secho", "click.echo", "print", "rich.print", "Console"}
        # Progress is shown in words and numbers of our own.
        own = {"Console"} if path.name in ("counting.py", "bisect.py") else set()
        assert not calls & direct - own, path.name


def test_a_traceback_and_the_log_are_escaped_too() -> None:
    script = (
        "import sys, graphnet_datasets.cli.app as a\n"
        "def fail(*_, **__): raise KeyError('s3://me:hunter2-tiger@x ' + '\\x1b]0;owned\\x07')\n"
        "a.app = fail\n"
        "a.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "KeyError" in done.stderr
    assert not {"\x1b", "\x07"} & set(done.stderr)
    from graphnet_datasets.verbosity import _PrintableFormatter

    record = logging.LogRecord("x", 30, "x", 1, "graph %s", ("\x1b[2J",), None)
    assert _PrintableFormatter("%(message)s").format(record) == "graph \\x1b[2J"


@given(st.text())
def test_printable_text_has_no_control_character_but_tab_and_newline(text: str) -> None:
    shown = printable(text)
    assert not {each for each in shown if unicodedata.category(each) in ("Cc", "Cs")} - {"\t", "\n"}
    assert printable(shown) == shown


DEEP = (
    "-" * 900 + "s0",
    "(" * 400 + "s0" + ")" * 400,
    "Max(" * 200 + "s0" + ",1)" * 200,
    "s0" + "+1" * 400,
    "s0**" * 200 + "2",
    "s0 # a comment",
    "s0\n+1",
    "(s0\n+1)",
    "s0\\\n",
    "s0 + '#'",
    "\uff530",  # a wide s, which Python reads as s
    "s0;import os",
    "\x1b[2Js0",
    "9" * 999,
    "",
)


def symbolic(
    inputs: tuple[Input, ...], ops: tuple[Op, ...], constraints: tuple[Constraint, ...] = ()
) -> Sample:
    return Sample("a/b", "torch", "other", inputs, ops, None, (Symbol("s0", 4),), constraints)


@pytest.mark.parametrize("text", DEEP)
def test_odd_dimensions_are_remote_errors_everywhere(text: str) -> None:
    value = Value("float32", (text,))
    relu = Op("torch.relu", (Ref(0),))
    plain = Input("input", Value("float32", ("s0",)))
    known = dataclasses.replace(relu, results=(value,))
    constraint = Constraint(text, "==", "1")
    for make in (
        lambda: free_symbols(text),
        lambda: evaluate(text, {"s0": 4}),
        lambda: symbolic((Input("input", value),), (relu,)),
        lambda: symbolic((plain,), (known,)),
        lambda: symbolic((plain,), (relu,), (constraint,)),
    ):
        with pytest.raises(SymbolError) as caught:
            make()
        assert len(str(caught.value)) < 400


def test_deep_dimensions_fail_alike_at_the_end_of_the_stack() -> None:
    def descend(depth: int) -> int:
        return descend(depth - 1) if depth else evaluate("-" * 60 + "s0", {"s0": 4})

    assert descend(100) == 4


@pytest.mark.parametrize(
    ("dtype", "shape", "problem"),
    [
        ("int64", (2,), "is a scalar of shape (2,)"),
        ("float64", (1,), "is a scalar of shape (1,)"),
        ("bool", (0,), "is a scalar of shape (0,)"),
        ("float32", (), "is a scalar of dtype float32"),
    ],
)
def test_a_scalar_is_one_number(dtype: str, shape: tuple[int, ...], problem: str) -> None:
    size = {"int64": 8, "float64": 8, "bool": 1, "float32": 4}[dtype]
    data = bytes(size * (shape[0] if shape else 1))
    with pytest.raises(SampleError) as caught:
        Sample(
            "a/b", "torch", "other", (Input("scalar", Value(dtype, shape), data=data),), (), None
        )
    assert problem in str(caught.value)

"""Nothing that came from data is executed, unpickled or imported: the package is walked for it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path for package in ("graphnet_datasets", "builder") for path in (ROOT / package).rglob("*.py")
)

FORBIDDEN_CALLS = {"exec", "eval", "compile", "__import__", "breakpoint", "globals"}
FORBIDDEN_MODULES = {
    "pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "code", "runpy",
    "imp", "pkgutil", "xmlrpc", "telnetlib",
}  # fmt: skip
FORBIDDEN_ATTRIBUTES = {
    "spec_from_file_location", "exec_module", "load_module", "load_inline",
    "load_library", "run_path", "run_module", "popen", "getoutput", "literal_eval",
    "__globals__", "__builtins__", "__subclasses__", "__code__", "__reduce__",
}  # fmt: skip

ALLOWED: dict[str, dict[str, str]] = {
    "builder/gpu_cache/filling.py": {
        "pickle": "asks under which module an object of torch would be pickled, and reads no data",
    },
    "builder/gpu_records/script.py": {
        "os.execve": "starts itself again once its own packages can be imported",
    },
    "builder/catalog.py": {
        "literal_eval": "reads the catalog of models, a file of this repository",
    },
    "builder/libraries/imports.py": {
        "import_module": "imports libraries by the names of a list in that file, and their modules",
        "pkgutil": "tells which modules a library has",
    },
    "builder/paddleclas.py": {
        "import_module": "imports backbones and logger of PaddleClas, by two names of its own",
    },
    "builder/paddle_packages.py": {
        "import_module": "imports modules of the packages of a list in that file, by paths of the "
        "catalog, a file of this repository",
    },
    "graphnet_datasets/__init__.py": {"globals": "lists the names that were imported"},
    "graphnet_datasets/lazy_names.py": {
        "import_module": "imports modules of a package by names of a table in it, on first use",
    },
    "graphnet_datasets/frameworks/torch/building/custom_operators.py": {
        "exec": "runs the source of custom operators under `trust_remote_code=True` alone",
        "compile": "compiles that source under a name that tracebacks can show",
    },
    "graphnet_datasets/inputs/rules.py": {
        "import_module": "imports the input rules of an installed framework's package",
    },
    "graphnet_datasets/frameworks/contract.py": {
        "import_module": "imports modules of a framework's package, by names of two tables",
    },
    "graphnet_datasets/frameworks/torch/capture/state.py": {
        "__globals__": "saves the numbers and containers that a captured function may change",
        "__code__": "lists the global names that a captured function uses, and runs none",
    },
    "graphnet_datasets/isolation/server.py": {
        "import_module": "imports the worker module that `ForkServer` names on the command line",
    },
    "graphnet_datasets/isolation/late_imports.py": {
        "import_module": "imports modules that the server's code names; a job says which, by place",
    },
    "graphnet_datasets/frameworks/torch/watching.py": {
        "__globals__": "compares what a generated `forward` calls before and after a candidate",
        "__code__": "compares functions by their code, and runs none",
    },
    "graphnet_datasets/tuning/intrinsics.py": {
        "import_module": "imports modules of TVM, by names that this package's code gives",
    },
    "graphnet_datasets/compilers/function_source.py": {
        "__globals__": "looks up the constants that the caller's own function uses, and runs none",
    },
    "graphnet_datasets/conversion/programs.py": {
        "runpy": "runs the source that `print_source` wrote, in a confined process",
        "run_path": "runs that source, to check it",
    },
    "graphnet_datasets/tensor_comprehensions/triton/loading.py": {
        "exec": "defines the functions of text that this package printed and that it checks first",
        "compile": "compiles that text under a name by which Triton finds it",
    },
    "graphnet_datasets/compilers/registry.py": {
        "import_module": "imports the compiler that the caller names as `module:attribute`",
        "spec_from_file_location": "imports the compiler that the caller names as a file",
        "exec_module": "runs that file, in the worker that times it",
    },
}
"""What stands in a file on purpose, with the reason; a name that is gone must leave this list."""


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def findings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of what could run text, bytes or modules that came from outside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in FORBIDDEN_MODULES:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            names = {(node.module or "").split(".")[0], *(alias.name for alias in node.names)}
            if not node.level:
                for name in names & (FORBIDDEN_MODULES | FORBIDDEN_ATTRIBUTES):
                    yield node.lineno, name
        elif isinstance(node, ast.Name) and node.id in FORBIDDEN_CALLS:
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_ATTRIBUTES:
            yield node.lineno, node.attr
        elif isinstance(node, ast.Call):
            yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[int, str]]:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    name = ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else ""
    if name in ("torch.load", "torch.jit.load"):
        weights_only = keywords.get("weights_only")
        if not (isinstance(weights_only, ast.Constant) and weights_only.value is True):
            yield node.lineno, name
    is_import = name in ("importlib.import_module", "import_module")
    if is_import and not isinstance(node.args[0], ast.Constant):
        yield node.lineno, "import_module"
    allow_pickle = keywords.get("allow_pickle")
    if isinstance(allow_pickle, ast.Constant) and allow_pickle.value is not False:
        yield node.lineno, "allow_pickle"
    if name in ("os.system", "os.execv", "os.execve", "os.spawnv"):
        yield node.lineno, name
    shell = keywords.get("shell")
    if shell is not None and not (isinstance(shell, ast.Constant) and shell.value is False):
        yield node.lineno, "shell"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_executes_data(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    found = list(findings(parsed(path)))
    allowed = ALLOWED.get(name, {})
    unexpected = [f"{name}:{line} uses `{what}`" for line, what in found if what not in allowed]
    assert unexpected == []
    assert set(allowed) <= {what for _, what in found}, f"an exception for {name} is out of date"


ATTRIBUTES_BY_NAME = {
    "builder/branches.py": "functions that are named beside it",
    "builder/examples.py": "dtypes of the catalog, a file of this repository",
    "builder/libraries/torchao.py": "dtypes of the catalog, a file of this repository",
    "builder/paddle_packages.py": "packages of the list in that file",
    "builder/training.py": "losses of the catalog, a file of this repository",
    "builder/models.py": "dtypes and classes of the catalog, a file of this repository",
    "builder/libraries/transformers.py": "classes of the catalog, a file of this repository",
    "builder/walks/transformers.py": "classes that transformers' own mappings name",
    "graphnet_datasets/frameworks/torch/peaks.py": "a fixed list of dtypes",
    "graphnet_datasets/compilers/passes.py": "functions that a graph calls, in a confined process",
    "graphnet_datasets/compilers/function_source.py": "names that the caller's own function uses",
    "graphnet_datasets/lazy_names.py": "names of a table in the package that asks",
    "graphnet_datasets/frameworks/torch/runtime.py": "a fixed table of dtypes",
    "graphnet_datasets/frameworks/torch/capture/convert.py": "a fixed table of dtypes",
    "graphnet_datasets/frameworks/torch/capture/replay.py": "custom operators of a live model",
    "graphnet_datasets/frameworks/torch/walking/expanded_operands.py": "operators of the table",
    "graphnet_datasets/frameworks/torch/capture/dynamo.py": "a fixed list of dynamo's settings",
    "graphnet_datasets/frameworks/torch/building/deferred.py": "a fixed list of attributes",
    "graphnet_datasets/frameworks/torch/building/literals.py": "a fixed table of constants",
    "graphnet_datasets/frameworks/torch/operators/resolve.py": "names of the reviewed lists",
    "graphnet_datasets/frameworks/torch/operators/schema.py": "names found in the operator table",
    "graphnet_datasets/frameworks/torch/tensors.py": "the vocabulary's dtypes",
    "graphnet_datasets/frameworks/torch/watching.py": "operators of a graph out of the table",
    "graphnet_datasets/tensor_comprehensions/language/functions.py": "names of the table beside it",
    "graphnet_datasets/tensor_comprehensions/arguments.py": "dtypes of checked definitions",
    "graphnet_datasets/tensor_comprehensions/cuda/kernel.py": "dtypes of checked definitions",
    "graphnet_datasets/tensor_comprehensions/graphs/kernels.py": "dtypes of checked definitions",
    "graphnet_datasets/tensor_comprehensions/triton/kernel.py": "dtypes of checked definitions",
    "graphnet_datasets/tensor_comprehensions/torch_ops.py": "dtypes of checked definitions",
}
"""Where an attribute of a library is fetched by a name that is not literal, and whose it is."""

LIBRARIES = {"torch", "paddle", "transformers", "numpy", "np", "os", "sys", "builtins", "operator"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_libraries_are_not_searched_by_names_out_of_data(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    lines = list(attributes_by_name(parsed(path)))
    assert bool(lines) == (name in ATTRIBUTES_BY_NAME), f"{name}, lines {lines}"


def attributes_by_name(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that fetch or set an attribute of a library under a computed name."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "setattr")
            and ast.unparse(node.args[0]).split(".")[0] in LIBRARIES
            and not isinstance(node.args[1], ast.Constant)
        ):
            yield node.lineno


def test_a_name_out_of_data_is_found() -> None:
    assert list(attributes_by_name(ast.parse("getattr(torch.ops, name)"))) == [1]
    assert list(attributes_by_name(ast.parse("getattr(torch, 'add')"))) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("exec(text)", "exec"),
        ("import pickle", "pickle"),
        ("from pickle import loads", "pickle"),
        ("torch.load(path)", "torch.load"),
        ("torch.load(path, weights_only=False)", "torch.load"),
        ("importlib.import_module(name)", "import_module"),
        ("subprocess.run(text, shell=True)", "shell"),
        ("np.load(path, allow_pickle=True)", "allow_pickle"),
        ("os.system(text)", "os.system"),
    ],
)
def test_the_walk_finds_planted_offences(text: str, name: str) -> None:
    assert name in [what for _, what in findings(ast.parse(text))]


def test_the_walk_lets_safe_code_pass() -> None:
    text = (
        "torch.load(path, weights_only=True); subprocess.run([a], shell=False); re.compile(b)\n"
        "importlib.import_module('tvm')"
    )
    assert list(findings(ast.parse(text))) == []

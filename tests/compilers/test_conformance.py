"""What every compiler has to do: the same graphs through each one that can run here."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphnet_datasets.compilers import list_entries  # noqa: E402
from graphnet_datasets.compilers.base import Compiler  # noqa: E402
from graphnet_datasets.errors import CompilerError  # noqa: E402

from .graphs import CASES, Case  # noqa: E402

NEED_MORE = {"tvm-tuned", "tvm-oneshot", "tvm-bolt", "dispatch"}
"""They need records, a predictor or minutes: their tests are in `tests/tuning`."""
ENTRIES = [
    each for each in list_entries() if each.framework == "torch" and each.name not in NEED_MORE
]
SLOW = {"inductor", "aotinductor"}
"""They call a C++ compiler for every graph, and once more for the machine's abilities."""
ONCE = {"iree": "multiple_outputs", "jax": "multiple_outputs"}
"""Compilers that take seconds for a graph, and the one case that every test run tries."""


def parameters() -> list[Any]:
    return [
        pytest.param(
            entry,
            case,
            id=f"{entry.name}-{case}",
            marks=[pytest.mark.slow]
            if entry.name in SLOW or ONCE.get(entry.name, case) != case
            else [],
        )
        for entry in ENTRIES
        for case in CASES
    ]


def _options(compiler_class: type[Compiler], case: Case) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if "precision" in compiler_class.option_table:
        options["precision"] = "f32"
    if case.grown is not None and True in (
        compiler_class.option_table["dynamic"].choices or (True,)
        if "dynamic" in compiler_class.option_table
        else ()
    ):
        options["dynamic"] = True
    return options


def leaves(outputs: Any) -> list[Any]:
    return torch.utils._pytree.tree_leaves(outputs)


@pytest.fixture(autouse=True)
def inference(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    for name, value in Compiler.cache_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    torch.manual_seed(0)
    # Pools of threads of several runtimes in one process would slow every test after these.
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        yield
    torch.set_num_threads(num_threads)


@pytest.mark.filterwarnings("ignore")  # what the compilers' own code warns of is their business
@pytest.mark.parametrize(("entry", "name"), parameters())
def test_compiled_outputs_equal_eager(entry: Any, name: str) -> None:
    compiler_class = entry.load()
    is_available, reason = compiler_class.is_available()
    if not is_available:
        pytest.skip(f"the compiler {entry.name} cannot run here: {reason}")
    if "cpu" not in compiler_class.devices and not torch.cuda.is_available():
        pytest.skip(f"the compiler {entry.name} needs a GPU")
    case = CASES[name]
    module = torch.fx.symbolic_trace(case.module().eval())
    untouched = copy.deepcopy(module)
    compiler = compiler_class(_options(compiler_class, case))
    try:
        compiled = compiler.compile(module, case.inputs())
    except CompilerError:
        # What a compiler cannot keep it has to refuse, never to leave out.
        assert name.startswith("writes_to")
        return
    for make_inputs in (case.inputs, case.inputs, case.grown):
        if make_inputs is None:
            continue
        expected_inputs, inputs = make_inputs(), make_inputs()
        expected, actual = untouched(**expected_inputs), compiled(**inputs)
        compiler.synchronize()
        structure = torch.utils._pytree.tree_structure
        assert structure(actual) == structure(expected)
        for left, right in zip(leaves(actual), leaves(expected), strict=True):
            if isinstance(right, torch.Tensor):
                assert type(left) is torch.Tensor
                torch.testing.assert_close(left, right, atol=1e-5, rtol=1e-5)
            else:
                assert left == right
        for key, value in inputs.items():
            torch.testing.assert_close(value, expected_inputs[key])
    assert compiler.num_compilations() >= 1
    assert compiler.version() == compiler_class.version() != ""


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_says_whether_it_can_run(entry: Any) -> None:
    compiler_class = entry.load()
    is_available, reason = compiler_class.is_available()
    assert is_available == (reason == "")
    assert compiler_class.name == entry.name
    assert compiler_class.framework == "torch"
    assert set(compiler_class.devices) <= {"cpu", "cuda", "xla"}
    for name, option in compiler_class.option_table.items():
        assert option.problem(option.default) == "", f"the default of `{name}` is not accepted"
        assert option.description.endswith(".")

"""`check`: verdicts on candidates that replace the graph of one sample."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from graphnet_datasets.benchmark import CheckResult, check, run_records
from graphnet_datasets.benchmark.checking import describe_check, reference_of_candidate
from graphnet_datasets.errors import CandidateError, CompilerError, DatasetNotFoundError
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import Ref

from .samples import LINEAR, quick

pytestmark = pytest.mark.torch

CANDIDATES = {
    "right": "return torch.relu(torch.addmm(torch.zeros(8), x, w.t()))",
    "wrong": "y = torch.relu(x @ w.t()); y[2, 5] += 0.25; return y",
    "transposed": "return torch.relu(x @ w.t()).t()",
    "slow": "time.sleep(0.005); return torch.relu(x @ w.t())",
    "crashing": "ctypes.string_at(0)",
    "hanging": "\n    while True: pass",
    "raising": "return _view(x)",
    "remembering": "return _memo.setdefault(0, torch.relu(x @ w.t())).clone()",
    "writing": "x.zero_(); return torch.relu(x @ w.t())",
}
SOURCE = "import ctypes, time, torch\n_memo = {}\ndef _view(x):\n    return x.view(7, 7)\n"
BATCHED = Sample(
    "test/batched",
    "torch",
    "other",
    (
        Input("input", Value("float32", ("batch", 32)), "x"),
        Input("symbol", Value("int64", ()), source_name="batch"),
    ),
    (Op("torch.tanh", (Ref(0),), results=(Value("float32", ("batch", 32)),)),),
    (Ref(2),),
    (Symbol("batch", 8, 1),),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("candidates") / "mine.py"
    functions = "".join(f"def {name}(x, w):\n    {body}\n" for name, body in CANDIDATES.items())
    path.write_text(
        SOURCE
        + functions
        + textwrap.dedent("""
            class Packed(torch.nn.Module):
                def __init__(self, parameter_0):
                    super().__init__()
                    self.w = parameter_0.t().contiguous()

                def forward(self, x):
                    return torch.relu(x @ self.w)
        """)
    )
    return path


@pytest.fixture(scope="module")
def results(path: Path) -> Mapping[str, CheckResult]:
    """Return the verdicts on all candidates, whose processes are forks of one server."""
    names = (*CANDIDATES, "Packed", "absent")
    records = run_records(
        LINEAR,
        [reference_of_candidate(f"{path}:{name}") for name in names],
        settings=quick(
            has_oracle=False, has_profile=False, phase_timeouts_s={"run": 5.0, "compile": 20.0}
        ),
        on_record=lambda _: None,
    )
    return {
        name: describe_check(record)
        for name, record in zip(names, records.to_pylist(), strict=True)
    }


@pytest.mark.parametrize(
    ("name", "outcome", "verdict"),
    [
        ("right", "right", "right   "),
        ("slow", "right", "right   0.0"),
        ("Packed", "right", "right   "),
        ("wrong", "wrong", "WRONG   at t = -3 (largest error 0.2 in output 0 at [2, 5])"),
        (
            "transposed",
            "wrong",
            "WRONG   Output 0 has shape (8, 4), but eager's has (4, 8).",
        ),
        ("crashing", "failed", "failed  while running: SIGSEGV"),
        ("hanging", "failed", "failed  while running: "),
        ("raising", "failed", "failed  while running: RuntimeError: shape '[7, 7]' is invalid"),
        ("absent", "failed", "failed  while compiling: CandidateError: `mine.py` defines no `abse"),
        ("remembering", "wrong", "WRONG   "),
        ("writing", "wrong", "WRONG   The candidate wrote to the input `input_0`"),
    ],
)
def test_a_candidate_gets_the_verdict_of_a_compiler(
    name: str, outcome: str, verdict: str, results: Mapping[str, CheckResult]
) -> None:
    result = results[name]
    assert result.outcome == outcome, result
    assert result.verdict.startswith(verdict), result
    assert str(result).startswith(f"test/linear  mine.py:{name}  {verdict}")
    assert (result.speedup is not None) == result.is_right


def test_the_first_wrong_element_is_named(results: Mapping[str, CheckResult]) -> None:
    first, largest = results["wrong"].wrong_elements
    assert (first["output"], first["index"]) == (0, [2, 5])
    assert first == largest
    assert float(first["candidate"]) == pytest.approx(float(first["baseline"]) + 0.25, abs=1e-5)
    (line,) = results["wrong"].lines()[1:]
    assert line.startswith("First wrong element: output 0 [2, 5] is ")


def test_the_lines_of_an_error_are_those_of_the_candidate(
    results: Mapping[str, CheckResult],
) -> None:
    assert [line.split(":")[-1].strip() for line in results["raising"].own_lines] == [
        "return _view(x)",
        "return x.view(7, 7)",
    ]


def test_a_cheat_is_named(results: Mapping[str, CheckResult]) -> None:
    assert results["writing"].cheat.startswith("a write to an input")
    assert results["right"].cheat == results["wrong"].cheat == ""


@pytest.mark.slow
def test_a_symbolic_graph_is_called_with_other_sizes() -> None:
    def candidate(x, batch):
        import torch

        return (torch.tanh(x) * (1.1 if batch > 16 else 1.0),)

    result = check(
        BATCHED, candidate, settings=quick(has_oracle=False, has_profile=False)
    )  # `num_variations` follows from the sample
    assert result.outcome == "wrong", result
    verdicts = {call["sizes"]: call["verdict"] for call in result.workloads}
    assert verdicts['{"batch": 16}'] == "ok"
    assert verdicts['{"batch": 24}'] == "wrong"
    assert any(line.split()[:4] == ["batch", "=", "24", "WRONG"] for line in result.lines())
    assert result.to_dict()["workloads"] == result.workloads


def test_several_samples_are_refused() -> None:
    with pytest.raises(
        DatasetNotFoundError, match=r"selects 2 samples, but one is needed\. Choose"
    ):
        check([LINEAR, BATCHED], lambda x: x)  # type: ignore[arg-type]


def test_a_lambda_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CompilerError, match=r"The candidate is a lambda, .* Define it with `def`"):
        check(LINEAR, lambda x: x)
    with pytest.raises(CandidateError, match="cannot be read"):
        check(LINEAR, tmp_path / "absent.py")

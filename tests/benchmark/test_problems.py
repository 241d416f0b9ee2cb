"""Verdicts on solutions of problems: right and wrong ones, and every known cheat."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import math
import multiprocessing
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.benchmark.problems import (
    Problem,
    Verdict,
    judge,
    judge_all,
    load_problem,
    on_graphs,
    read_stored_solution,
    write_solution,
)
from graphnet_datasets.benchmark.solution_files import language_of
from graphnet_datasets.errors import DatasetNotFoundError, RunError, UnsafePathError
from graphnet_datasets.isolation import keep_servers
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.schema.tables import SOLUTIONS
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.shards import write_shards
from graphnet_datasets.storage.table import read_table, to_arrow
from tests.problem_sets import linear_relu, softmax, write_problems

from .samples import quick

pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parents[1] / "solutions"
SAMPLES = ("test/linear-4-16-8", "test/linear-2-32-8")
RIGHT = ("right", "right")
WRONG = ("wrong", "wrong")
FAILED = ("failed", "failed")
NOT_PYTHON = "def candidate(x, weight)\n    return x\n"
DISTURBED = ("right or undecidable or failed", "right or undecidable or failed")
"""Outcomes of a solution that disturbs its own measurement, and may exceed the time limit."""
COMPREHENSION = """
def candidate(float(B, M) X, float(N, M) W) -> (O) {
    O(b, n) +=! X(b, m) * W(n, m)
    O(b, n) = fmax(O(b, n), 0)
}
"""
EXPECTED: Mapping[str, tuple[tuple[str, str], str]] = {
    "right.py": (RIGHT, ""),
    "right_by_name.py": (RIGHT, ""),
    "right_module.py": (RIGHT, ""),
    "right_pass.py": (RIGHT, ""),
    "pattern.py": (RIGHT, ""),
    "passnet.py": (RIGHT, ""),
    "right.cpp": (RIGHT, ""),
    "slow.py": (RIGHT, ""),
    "wrong_shape.py": (("right", "wrong"), ""),
    "wrong.py": (WRONG, ""),
    "wrong_pattern.py": (WRONG, ""),
    "pattern_absent.py": (FAILED, ""),
    "transposed.py": (WRONG, ""),
    "wide_dtype.py": (WRONG, ""),
    "raises.py": (FAILED, ""),
    "syntax error": (FAILED, ""),
    "bad.cpp": (FAILED, ""),
    "crashes.py": (FAILED, ""),
    "hangs.py": (FAILED, ""),
    "cache_by_pointer.py": (WRONG, ""),
    "cache_by_shape.py": (WRONG, ""),
    "constant.py": (WRONG, ""),
    "zeros.py": (WRONG, ""),
    "previous_answer.py": (WRONG, ""),
    "reference_memory.py": (WRONG, ""),
    "uninitialised.py": (WRONG, ""),
    "skips_calls.py": (WRONG, ""),
    "patched_timer.py": (RIGHT, ""),
    "patched_reference.py": (RIGHT, ""),
    "patched_harness.py": (FAILED, ""),
    "reads_reference.py": (WRONG, ""),
    "filled_later.py": (WRONG, ""),
    "lazy.py": (WRONG, ""),
    "half.py": (WRONG, "a precision below that of the graph"),
    "bfloat16.py": (WRONG, ""),
    "writes_input.py": (WRONG, "a write to an input or weight that eager only reads"),
    "writes_weight.py": (WRONG, "a write to an input or weight that eager only reads"),
    "thread_after.py": (DISTURBED, ""),
    "writes_file.py": (RIGHT, ""),
    "opens_socket.py": (FAILED, ""),
    "allocates.py": (FAILED, ""),
    "closes_files.py": (FAILED, ""),
    "writes_to_pipes.py": (FAILED, ""),
    "forged_messages.py": (FAILED, ""),
    "deep_folder.py": (RIGHT, ""),
    "locked_folder.py": (RIGHT, ""),
    "links_outputs.py": (FAILED, ""),
    "large_outputs.py": (WRONG, ""),
    "kills_others.py": (DISTURBED, ""),
    "reads_others.py": (DISTURBED, ""),
    "fork_bomb.py": (FAILED, ""),
    "daemon.py": (DISTURBED, ""),
    "lying_output.py": (WRONG, ""),
    "truncated_output.py": (FAILED, ""),
}
"""Outcome on both workloads, and the name of the cheat, for each file of `tests/solutions`."""
QUICK = (
    "right.py", "right.cpp", "slow.py", "wrong_shape.py", "bad.cpp", "syntax error", "crashes.py",
    "constant.py", "previous_answer.py", "skips_calls.py", "patched_timer.py",
    "patched_reference.py", "half.py", "writes_input.py", "writes_file.py", "forged_messages.py",
)  # fmt: skip
"""Solutions that every test run judges; judging the others takes minutes."""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("problems") / "graphnet"
    write_problems(path, [linear_relu(4, 16, 8), linear_relu(2, 32, 8)])
    return path


@pytest.fixture(scope="module")
def problem(dataset: Path) -> Problem:
    (path,) = dataset.glob("problems/*.parquet")
    (name,) = read_table(path, ["problem_id"])["problem_id"].to_pylist()
    return load_problem(name, source=dataset)


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of temporary files of `verdicts`."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def verdicts(problem: Problem, temporary: Path) -> Mapping[str, Verdict]:
    return judged(problem, temporary, QUICK)


@pytest.fixture(scope="module")
def other_verdicts(problem: Problem, temporary: Path) -> Mapping[str, Verdict]:
    return judged(problem, temporary, sorted(EXPECTED.keys() - QUICK))


def judged(problem: Problem, temporary: Path, names: Sequence[str]) -> Mapping[str, Verdict]:
    settings = quick(
        has_oracle=False,
        has_profile=False,
        memory_limit_bytes=2**31,
        phase_timeouts_s={"run": 5.0, "compile": 60.0},
    )
    sources = [FOLDER / name if "." in name else NOT_PYTHON for name in names]
    with pytest.MonkeyPatch.context() as patch, keep_servers(most=0):
        patch.setattr(tempfile, "tempdir", str(temporary))
        results = judge_all(problem, [(source, "") for source in sources], "cpu", settings)
    return dict(zip(names, results, strict=True))


def test_every_file_has_an_expected_verdict() -> None:
    names = {name for name in EXPECTED if "." in name}
    assert {path.name for path in FOLDER.glob("*.*")} == names and len(EXPECTED) >= 30


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in EXPECTED],
)
def test_a_solution_gets_its_verdict(name: str, request: pytest.FixtureRequest) -> None:
    outcomes, cheat = EXPECTED[name]
    fixture = "verdicts" if name in QUICK else "other_verdicts"
    verdict = request.getfixturevalue(fixture)[name]
    by_sample = {result.sample_id: str(result.outcome) for result in verdict.results}
    for sample_id, outcome in zip(SAMPLES, outcomes, strict=True):
        assert by_sample[sample_id] in outcome.split(" or "), verdict
    assert verdict.is_accepted == (set(by_sample.values()) == {"right"})
    assert not cheat or cheat in verdict.cheats, verdict
    assert (verdict.speedup is None) == (verdict.interval is None) == (not verdict.is_accepted)


def test_an_accepted_solution_has_a_speedup_and_a_share(verdicts: Mapping[str, Verdict]) -> None:
    right, slow = verdicts["right.py"], verdicts["slow.py"]
    assert right.speedup is not None and right.interval is not None and slow.speedup is not None
    assert right.interval[0] <= right.speedup <= right.interval[1]
    assert slow.speedup < right.speedup
    assert right.share_of_bound is not None and 0 < right.share_of_bound < 1
    logarithms = [math.log(result.record["speedup"]) for result in right.results]
    assert math.log(right.speedup) == pytest.approx(sum(logarithms) / 2)
    assert str(right).startswith(f"{right.problem_id}  accepted  right on 2 of 2 workloads  ")


def test_patches_of_clocks_and_reference_change_no_speedup(
    verdicts: Mapping[str, Verdict],
) -> None:
    for name in ("patched_timer.py", "patched_reference.py"):
        speedup = verdicts[name].speedup  # the reference would take 5 ms instead of microseconds
        assert speedup is not None and speedup < 20, name


def test_errors_of_the_compiler_are_the_build_log(verdicts: Mapping[str, Verdict]) -> None:
    assert "undeclared" in verdicts["bad.cpp"].build_log
    assert verdicts["right.cpp"].build_log == "" and verdicts["right.cpp"].language == "cpp"


def test_feedback_names_the_first_wrong_element(verdicts: Mapping[str, Verdict]) -> None:
    feedback = verdicts["wrong_shape.py"].to_dict()
    right, wrong = sorted(feedback["workloads"], key=lambda item: item["outcome"])
    assert right["share_of_bound"] > 0 and right["wrong_elements"] == []
    assert wrong["wrong_elements"][0]["index"] is not None
    assert feedback["speedup"] is None and not feedback["is_accepted"]


@pytest.mark.parametrize(
    "fixture", ["verdicts", pytest.param("other_verdicts", marks=pytest.mark.slow)]
)
def test_nothing_outside_is_left(
    fixture: str, temporary: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(fixture)
    assert not (Path.home() / "graphnet-solution-was-here").exists()
    assert list(temporary.iterdir()) == []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            assert str(temporary).encode() not in path.read_bytes()


def test_a_row_is_written_and_run_only_if_it_is_trusted(
    verdicts: Mapping[str, Verdict], tmp_path: Path
) -> None:
    row = verdicts["right.py"].to_row(name="right.py", author="me", license="MIT")
    assert set(row) == set(SOLUTIONS.schema.names)
    write_solution(row, tmp_path)
    path = write_solution(row, tmp_path)
    assert read_table(path).num_rows == 1 == len(list(tmp_path.glob("solutions/*.parquet")))
    reference = f"{tmp_path}:{row['solution_id']}"
    with pytest.raises(RunError, match="--trust-remote-code"):
        read_stored_solution(reference, trust_remote_code=False)
    source, language = read_stored_solution(reference, trust_remote_code=True)
    assert (source, language) == ((FOLDER / "right.py").read_text(), "python")
    with pytest.raises(RunError, match="no intact solution"):
        read_stored_solution(f"{tmp_path}:absent", trust_remote_code=True)


def test_a_compiler_is_a_baseline(problem: Problem, tmp_path: Path) -> None:
    settings = quick(has_oracle=False, has_profile=False)
    verdict = judge(problem, "torchscript", language="compiler", settings=settings)
    assert verdict.is_accepted, verdict
    row = verdict.to_row()
    assert row["name"].startswith("torchscript 2.") and row["source"] == "torchscript"
    assert read_table(write_solution(row, tmp_path)).num_rows == 1
    unknown = judge(problem, "torchscrip", language="compiler", settings=settings)
    assert "There is no compiler `torchscrip`" in unknown.error and not unknown.is_accepted


def test_a_row_is_not_written_through_a_link(
    verdicts: Mapping[str, Verdict], tmp_path: Path
) -> None:
    (tmp_path / "dataset").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "dataset" / "solutions").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePathError, match="is a symbolic link"):
        write_solution(verdicts["right.py"].to_row(), tmp_path / "dataset")
    assert not any((tmp_path / "elsewhere").iterdir())


def test_files_and_texts_that_are_no_programs_get_a_verdict(
    problem: Problem, tmp_path: Path
) -> None:
    (tmp_path / "loop.py").symlink_to("loop.py")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "large.cpp").touch()
    os.truncate(tmp_path / "large.cpp", 2**36)
    (tmp_path / "device.tc").symlink_to("/dev/zero")
    deep = "def f(x): pass\n@f" + ".a" * 2000 + "\ndef g(x): pass"
    sources = [*sorted(tmp_path.iterdir()), "\0", "x" * 2**21, "\ud800", deep]
    settings = quick(has_oracle=False, has_profile=False)
    for verdict in judge_all(problem, [(source, "") for source in sources], "cpu", settings):
        assert verdict.error and not verdict.is_accepted and verdict.lines()


def test_the_prompt_has_reference_workloads_and_rules(problem: Problem) -> None:
    text = problem.prompt()
    for expected in ("torch.nn.functional.linear", "float32[4, 16]", "float32[2, 32]", "## Rules"):
        assert expected in text


@pytest.mark.slow
def test_a_pass_is_judged_on_the_graphs_with_its_pattern(tmp_path: Path) -> None:
    (name,) = write_problems(tmp_path, [linear_relu(4, 16, 8), linear_relu(2, 16, 8)])
    chain = linear_relu(4, 16, 8)
    linear, relu = chain.ops
    first = dataclasses.replace(relu, args=(Ref(0),), results=(chain.inputs[0].value,))
    second = dataclasses.replace(linear, args=(Ref(2), Ref(1)), results=relu.results)
    graphs = {
        "model/with": chain,
        "model/other-order": dataclasses.replace(chain, ops=(first, second)),
        "model/without": softmax(4, 16, 1),
    }
    rows = [dataclasses.replace(graph, id=key, kind="graph") for key, graph in graphs.items()]
    write_shards(
        [to_arrow([{**sample_to_row(graph), **derived_columns(graph)} for graph in rows])],
        tmp_path / "other",
        "train",
    )
    write_readme(tmp_path)
    whole = on_graphs(load_problem(name, source=tmp_path), source=tmp_path)
    assert {item["part_id"] for item in whole.workloads} == {"model/with", "model/other-order"}
    assert whole.parts[0]["kind"] == "graph" and whole.workloads[0]["tolerance_t"] == -3
    source = load_problem(name, source=tmp_path)
    source.row["workloads"][0]["parents"] = ["model/with"]  # by default, the order of the names
    (nearest,) = on_graphs(source, source=tmp_path, limit=1).workloads
    assert nearest["part_id"] == "model/with"
    settings = quick(has_oracle=False, has_profile=False)
    verdict = judge(whole, FOLDER / "pattern.py", settings=settings)
    assert verdict.is_accepted, verdict
    assert [result.sample_id for result in verdict.results] == ["model/with"]
    assert (verdict.num_replaced, verdict.num_absent) == (1, 1)
    assert str(verdict).endswith("1 occurrence replaced in 1 graph; 1 graph without an occurrence")
    absent = judge(whole, FOLDER / "pattern_absent.py", settings=settings)
    assert not absent.is_accepted and absent.num_absent == 2


def test_an_unknown_problem_is_an_error(dataset: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"There is no problem `mm-relu-00000000`\."):
        load_problem("mm-relu-00000000", source=dataset)


def test_the_language_of_a_text_follows_from_its_content() -> None:
    languages = {path.name: language_of(path.read_text()) for path in FOLDER.glob("*.*")}
    for name, language in languages.items():
        assert language == ("cpp" if name.endswith(".cpp") else "python"), name


@pytest.mark.slow
def test_tensor_comprehensions_are_solutions(problem: Problem) -> None:
    settings = quick(has_oracle=False, has_profile=False)
    (verdict,) = judge_all(problem, [(COMPREHENSION, "")], "cpu", settings)
    assert verdict.is_accepted and verdict.language == "tc", verdict


def _is_accepted(job: tuple[str, Path, str]) -> bool:
    name, dataset, source = job
    return judge(
        load_problem(name, source=dataset),
        source,
        settings=quick(has_oracle=False, has_profile=False),
    ).is_accepted


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_judgements_may_overlap(kind: str, problem: Problem, dataset: Path) -> None:
    sources = [(FOLDER / name).read_text() for name in ("right.py", "wrong.py")]
    pool = (
        concurrent.futures.ThreadPoolExecutor(2)
        if kind == "threads"
        else concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))
    )
    with pool:
        jobs = [(problem.id, dataset, source) for source in sources]
        assert list(pool.map(_is_accepted, jobs)) == [True, False]


@pytest.mark.slow
def test_the_example_of_the_docs_runs(
    problem: Problem, dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "problems.md").read_text()
    code = page.partition("<!-- run: problems -->")[2].split("```")[1].removeprefix("python\n")
    exec(code, {"name": problem.id, "dataset": dataset})  # noqa: S102 - our own page
    printed = capsys.readouterr().out
    assert f"# Problem {problem.id}" in printed and "  accepted  right on 2 of 2" in printed
    assert printed.splitlines()[-1].startswith("True ")

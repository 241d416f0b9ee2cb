"""Logs of upstream's benchmarks: a real one, and one of each way to end."""

from __future__ import annotations

import json
import math
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet_datasets import error_aware_speedup_score, import_log, speedup_score
from graphnet_datasets.benchmark.upstream.log import LOGGED_TOLERANCES
from graphnet_datasets.errors import DatasetNotFoundError, RunError
from graphnet_datasets.scores import as_table
from tests.upstream import upstream_file

LOG = upstream_file("upstream_benchmark.log")
needs_log = pytest.mark.upstream(LOG.name)

EXPONENTS = {"float16": (1, 0.6), "bfloat16": (1, 0.3592), "float32": (1, 1.1772)}
EXPONENTS |= {"float64": (1.4, 1.4)}


def log_of(name: str, *, stop: int | None = None, **changes: Any) -> list[str]:
    """Return the lines of one sample in the order in which upstream prints them."""
    settings = {
        "eager": "float32",
        "compiled": "float32",
        "eager_shapes": [[2, 3]],
        "compiled_shapes": [[2, 3]],
        "equal": "0",
        "passes_from": {"float32": [-3]},
        "speedup": "2.00000",
    } | changes
    eager, compiled = settings["eager"], settings["compiled"]
    comparisons = []
    nowhere = [math.inf] * len(eager.split())
    starts = {dtype: settings["passes_from"].get(dtype, nowhere) for dtype in EXPONENTS}
    # All dtypes have the tolerances of one line at t = 0.
    at_zero = [starts.get(dtype, nowhere)[index] for index, dtype in enumerate(eager.split())]
    for t in LOGGED_TOLERANCES:
        for dtype, (a, r) in EXPONENTS.items():
            passes = [int(t >= start) for start in (starts[dtype] if t else at_zero)]
            key = f"all_close_atol_{10.0 ** (t * a):.2E}_rtol_{10.0 ** (t * r):.2E}"
            comparisons.append(f"[Correctness][{key}]: {' '.join(map(str, passes))}")
    shapes = settings["eager_shapes"], settings["compiled_shapes"]
    compared = [
        f"[Correctness][equal]: {settings['equal']}",
        *comparisons,
        "[Correctness][max_diff]: 0.00012",
        "[Correctness][max_relative_diff]: nan",
    ]
    lines = [
        f"[Processing] /home/me/GraphNet/samples/{name}",
        f"[Config] model: {name}",
        "[Config] device: cuda",
        "[Config] compiler: inductor",
        "[Config] trials: 2",
        "[Config] compile_framework_version: 2.13.0",
        "[Profiling] Using device: cuda, warm up 5, trials 2",
        "Trial 1: e2e=4.0000 ms, gpu=3.9 ms",
        "Trial 2: e2e=6.0000 ms, gpu=5.9 ms",
        "[Profiling] Using device: cuda, warm up 5, trials 2",
        "Trial 1: e2e=2.0000 ms, gpu=1.9 ms",
        "Trial 2: e2e=3.0000 ms, gpu=2.9 ms",
        "[Result][status] eager:success compiled:success",
        f"[Datatype][eager]: {eager}",
        f"[Datatype][compiled]: {compiled}",
        f"[DataType] eager:{eager.split()} compiled:{compiled.split()} match:{eager == compiled}",
        f"[Shape][eager]: {shapes[0]}",
        f"[Shape][compiled]: {shapes[1]}",
        f"[Shape] eager:{shapes[0]} compiled:{shapes[1]} match:{shapes[0] == shapes[1]}",
        *(compared if eager == compiled and shapes[0] == shapes[1] else []),
        '[Performance][eager]: {"e2e": {"mean": 5.0, "std": 1.0, "min": 4.0, "max": 6.0}}',
        '[Performance][compiled]: {"e2e": {"mean": 2.5, "std": 0.5, "min": 2.0, "max": 3.0}}',
        f"[Speedup][e2e]: {settings['speedup']}",
    ][:stop]
    return [line if line.startswith("Trial") else f"bench-log {line}" for line in lines]


def run_of(tmp_path: Path, *samples: list[str]) -> list[dict[str, Any]]:
    path = tmp_path / "upstream.log"
    path.write_text("\n".join(["noise", *(line for sample in samples for line in sample)]))
    return list(import_log(path))


def test_a_sample_that_went_well(tmp_path: Path) -> None:
    (run,) = run_of(tmp_path, log_of("timm/resnet18"))
    expected = {
        "sample_id": "timm/resnet18",
        "status": "ok",
        "error_code": None,
        "upstream_status": "correct",
        "phase": "judge",
        "compiler": "inductor",
        "compiler_version": "2.13.0",
        "device": "cuda",
        "baseline_latency_ms": [4.0, 6.0],
        "candidate_latency_ms": [2.0, 3.0],
        "speedup": 2.0,
        "baseline_wall_ms": 5.0,
        "min_t": -3.0,
        "null_t": None,
        "family": None,
        "warnings": [],
    }
    assert {name: run[name] for name in expected} == expected
    (output,) = run["outputs"]
    assert (output["dtype"], output["shape"], output["num_elements"]) == ("float32", [2, 3], 6)
    assert output["max_abs_error"] == 0.00012
    assert math.isnan(output["max_rel_error"])
    assert json.loads(run["settings"])["trials"] == "2"


@pytest.mark.parametrize(
    ("dtype", "passes_from", "equal", "min_t"),
    [
        ("float16", {"float16": [-2], "float32": [1]}, "0", -2.0),
        ("bfloat16", {"bfloat16": [4], "float16": [-2]}, "0", 4.0),
        ("float64", {"float64": [-10]}, "0", -10.0),
        ("float64", {"float32": [-10]}, "0", math.inf),
        ("float32", {"float32": [-10]}, "1", -math.inf),
        ("int64", {"float32": [-10], "float64": [-10]}, "0", math.inf),
        ("int64", {}, "1", -math.inf),
    ],
)
def test_min_t_is_that_of_the_outputs_dtype(
    tmp_path: Path, dtype: str, passes_from: Any, equal: str, min_t: float
) -> None:
    lines = log_of("a", eager=dtype, compiled=dtype, passes_from=passes_from, equal=equal)
    (run,) = run_of(tmp_path, lines)
    assert run["min_t"] == min_t


def test_the_worst_output_decides(tmp_path: Path) -> None:
    (run,) = run_of(
        tmp_path,
        log_of(
            "a",
            eager="float32 float16",
            compiled="float32 float16",
            eager_shapes=[[1], [2]],
            compiled_shapes=[[1], [2]],
            equal="0 0",
            passes_from={"float32": [-5, -9], "float16": [-9, 1]},
        ),
    )
    assert [output["min_t"] for output in run["outputs"]] == [-5.0, 1.0]
    assert run["min_t"] == 1.0


FAILED_EAGER = [*log_of("a", stop=6), "Run failed: boom", "x.MyError: boom"]
FAILED_EAGER += ["bench-log [Result][status] eager:failed compiled:failed"]
FAILED_COMPILED = [*log_of("a", stop=9), "torch._inductor.exc.InductorError: no kernel"]
FAILED_COMPILED += ["bench-log [Result][status] eager:success compiled:failed"]
EAGER_FAIL = "eager_fail"
COMPILE_FAILED = ("compile_failed", "exception", "compile", EAGER_FAIL)
COMPILED_FAILED = [
    "Compiled model execution failed: out of registers",
    "bench-log [Result] status: failed",
    "bench-log [Fail due to compiled model execution error.]",
]
OLD_FAILURE = [
    "bench-log [Result] status: failed",
    "bench-log [Fail due to compile error or datatype do not match.]",
]
GATE = "model execution failed: Environment fluctuation detected."
GATE_OF_PADDLE = "failed: Environment fluctuation detected."


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (FAILED_EAGER, ("baseline_failed", "exception", "baseline", "eager_fail")),
        (log_of("a", stop=8), ("baseline_failed", "crash", "baseline", "eager_fail")),
        (FAILED_COMPILED, ("compile_failed", "exception", "compile", "eager_fail")),
        (log_of("a", stop=9), ("compile_failed", "crash", "compile", "eager_fail")),
        (log_of("a", stop=10), ("run_failed", "crash", "run", "eager_fail")),
        (log_of("a", stop=12), ("run_failed", "crash", "run", "eager_fail")),
        (log_of("a", stop=13), ("run_failed", "crash", "judge", "eager_fail")),
        (log_of("a", stop=14), ("run_failed", "crash", "judge", "compile_fail")),
        ([*log_of("a", stop=12), *COMPILED_FAILED], ("run_failed", "exception", "run", EAGER_FAIL)),
        ([*log_of("a", stop=9), *COMPILED_FAILED], COMPILE_FAILED),
        (
            [*log_of("a", stop=12), f"Compiled {GATE}", "b [Result] status: failed"],
            ("harness_failed", "exception", "run", "eager_fail"),
        ),
        (
            [*log_of("a", stop=12), f"Run model in compiled mode {GATE_OF_PADDLE}"],
            ("harness_failed", "exception", "run", "eager_fail"),
        ),
        (
            [*log_of("a", stop=9), f"Eager {GATE}", *COMPILED_FAILED],
            ("harness_failed", "exception", "baseline", "eager_fail"),
        ),
        (
            [*log_of("a", stop=9), "bench-log [Result][status] eager:success"],
            ("harness_failed", "exception", "judge", "eager_fail"),
        ),
        (
            [*log_of("a", stop=6), "Model execution failed: boom", *OLD_FAILURE],
            ("baseline_failed", "exception", "baseline", "eager_fail"),
        ),
        (
            [*log_of("a", stop=6), "bench-log [Datatype][eager]: float32", *OLD_FAILURE],
            ("compile_failed", "exception", "compile", "compile_fail"),
        ),
        (
            [*log_of("a", stop=12), "bench-log [Datatype][eager]: float32", *OLD_FAILURE],
            ("run_failed", "exception", "run", "compile_fail"),
        ),
        (
            log_of("a", compiled="float16"),
            ("output_mismatch", "output_dtype", "judge", "type_mismatch"),
        ),
        (
            log_of("a", compiled_shapes=[[3, 2]]),
            ("output_mismatch", "output_shape", "judge", "shape_mismatch"),
        ),
        (
            log_of("a", compiled="float32 float32", compiled_shapes=[[2, 3], [1]]),
            ("output_mismatch", "output_count", "judge", "shape_mismatch"),
        ),
        (
            log_of("a", eager="", compiled="", eager_shapes=[], compiled_shapes=[], equal=""),
            ("output_mismatch", "output_count", "judge", "correct"),
        ),
        (log_of("a", stop=-1), ("run_failed", "crash", "judge", "correct")),
        (
            ["p [Processing] a", "p [Result] status: success", "p [Speedup][e2e]: 2.0"],
            ("run_failed", "crash", "judge", "eager_fail"),
        ),
        (
            [
                "p [Processing] a",
                "p [Result] status: failed",
                "p [Fail due to eager model execution error.]",
            ],
            ("baseline_failed", "exception", "baseline", "eager_fail"),
        ),
        (
            [
                "p [Processing] a",
                "p [Result] status: failed",
                "p [Fail due to compiled model execution error.]",
            ],
            ("compile_failed", "exception", "compile", "eager_fail"),
        ),
    ],
)
def test_every_way_to_end(tmp_path: Path, lines: list[str], expected: tuple[str, ...]) -> None:
    (run,) = run_of(tmp_path, lines)
    assert tuple(run[name] for name in ("status", "reason", "phase", "upstream_status")) == expected
    assert run["outputs"] is run["min_t"] is None


def test_the_error_of_a_failed_sample_is_kept(tmp_path: Path) -> None:
    (run,) = run_of(tmp_path, FAILED_COMPILED)
    assert run["error_type"] == "torch._inductor.exc.InductorError"
    assert run["error_message"] == "no kernel"


def test_a_word_in_a_line_never_decides_our_status(tmp_path: Path) -> None:
    """Upstream calls a sample failed for any "Error:" between it and the next sample."""
    noise = "W1111 some.library: ValueError: retried and fine"
    first, second = run_of(tmp_path, [*log_of("a"), noise], log_of("b"))
    assert (first["status"], first["upstream_status"]) == ("ok", "runtime_fail")
    assert (second["status"], second["upstream_status"]) == ("ok", "correct")
    assert first["warnings"] == ["upstream's tools call this sample `runtime_fail`"]
    assert first["error_message"] is None
    runs = [first, second]
    assert speedup_score(runs).at(0)["S"] == pytest.approx(2.0)
    assert speedup_score(runs, variant="upstream").at(0)["S"] == pytest.approx((2 * 0.1) ** 0.5)


def test_samples_that_died_early_stay_in_the_log_of_their_compiler(tmp_path: Path) -> None:
    runs = run_of(tmp_path, log_of("a"), log_of("b", stop=1), log_of("c"))
    assert [run["compiler"] for run in runs] == ["inductor"] * 3
    scores = speedup_score(runs)
    assert scores.num_samples == 2
    assert [row["sample_id"] for row in scores.excluded] == ["b"]


def test_lines_of_other_programs_are_not_markers(tmp_path: Path) -> None:
    lines = log_of("a")
    lines[8:8] = ["other-log [Speedup][e2e]: 99.0", "[Result][status] eager:failed"]
    (run,) = run_of(tmp_path, lines)
    assert (run["status"], run["speedup"]) == ("ok", 2.0)


def test_times_before_the_prompt_do_not_matter(tmp_path: Path) -> None:
    lines = [
        f"17:24:{index:02} {line}" for index, line in enumerate(log_of("a")) if "Tri" not in line
    ]
    (run,) = run_of(tmp_path, lines)
    assert (run["status"], run["baseline_latency_ms"]) == ("ok", [5.0])


@pytest.mark.parametrize(
    "garbage",
    [
        "bench-log [Performance][eager]: {not json",
        "bench-log [Performance][eager]: " + "[" * 100_000,
        "bench-log [Shape][eager]: 7",
        "bench-log [Correctness]",
        "bench-log [Speedup][e2e]: fast",
        "bench-log [Unheard][of]: x",
        "\x00\ufffd" * 1000,
    ],
)
def test_garbage_lines_do_no_harm(tmp_path: Path, garbage: str) -> None:
    lines = log_of("a")
    lines.insert(6, garbage)
    (run,) = run_of(tmp_path, lines)
    assert (run["status"], run["speedup"], run["min_t"]) == ("ok", 2.0, -3.0)


def test_a_log_imported_twice_gives_the_same_ids(tmp_path: Path) -> None:
    samples = [log_of("a"), log_of("b")]
    first, second = run_of(tmp_path, *samples), run_of(tmp_path, *samples)
    assert [run["run_id"] for run in first] == [run["run_id"] for run in second]
    assert first[0]["run_id"] != first[1]["run_id"]


@pytest.mark.parametrize("out", ["runs", "runs.parquet"])
def test_the_records_are_written(tmp_path: Path, out: str) -> None:
    path = tmp_path / "upstream.log"
    path.write_text("\n".join(log_of("a")))
    runs = import_log(path, out=tmp_path / out)
    # As text, since a NaN in a record equals nothing.
    assert str(as_table(tmp_path / out).to_pylist()) == str(as_table(runs).to_pylist())


def test_a_missing_log(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError) as error:
        import_log(tmp_path / "no.log")
    assert str(error.value) == f"There is no log at `{tmp_path / 'no.log'}`. Check the path."


def test_a_file_that_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "noise.log"
    path.write_bytes(b"\xff\xfe nothing\n" * 1000)
    with pytest.raises(RunError) as error:
        import_log(path)
    assert str(error.value) == (
        f"`{path}` has no line `[Processing] <path of a sample>`, with which each sample of "
        "upstream's benchmark logs begins. Pass a log of its `test_compiler` or "
        "`test_target_device`."
    )


def test_a_log_without_dtypes_is_judged_by_the_strictest(tmp_path: Path) -> None:
    """Logs of 2025's summer compare at five fixed pairs and tell no shapes, some no dtypes."""
    pairs = {"8_rtol8": 0, "8_rtol5": 0, "5_rtol5": 0, "3_rtol2": 1, "2_rtol1": 1}
    lines = [
        "p [Processing] samples/a",
        "p [Correctness][equal]: 0",
        *(f"p [Correctness][all_close_atol{key}]: {value}" for key, value in pairs.items()),
        "p [Result] status: success",
        "p [Speedup][e2e]: 2.0",
    ]
    (run,) = run_of(tmp_path, lines)
    # atol = 1e-3 and rtol = 1e-2 are as narrow as 10^(7/5 t) from t = -1 on.
    assert (run["status"], run["min_t"], run["upstream_status"]) == ("ok", -1.0, "type_mismatch")
    lines.insert(1, "p [Datatype][eager]: float32")
    lines.insert(2, "p [Datatype][compiled]: float32")
    (run,) = run_of(tmp_path, lines)
    assert (run["status"], run["min_t"]) == ("ok", -1.0)
    lines[1:3] = ["p [Datatype][eager]: float16", "p [Datatype][compiled]: float16"]
    (run,) = run_of(tmp_path, lines)
    assert (run["status"], run["min_t"]) == ("ok", -3.0)


PROMPTS = ["graph-net-test-compiler-log ", "log ", ""]
WORDS = ["[Datatype][eager]", "[Datatype][compiled]", "[Shape]", "[DataType]", "match:True"]
WORDS += ["match:False", "all_close", "Error:", "Exception:", "[Correctness]", "[Datatype]", "x"]
WHOLE = [
    line.partition(" ")[2] for line in log_of("a") if not line.startswith(("Trial", "bench-log [P"))
]
LINES = st.one_of(
    st.sampled_from([*WHOLE, "[Shape] match:True", "[DataType] match:True", "a.b.SomeError: no"]),
    st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
    st.text(alphabet="[]:aeE \t", max_size=12),
)
BLOCKS = st.tuples(
    st.sampled_from([" samples/a", " b/Error: c", "", " [Datatype][eager]"]),
    st.lists(st.tuples(st.sampled_from(PROMPTS), LINES), max_size=14),
)


def word_of(lines: list[str]) -> str:
    """What upstream's tools call a block, written apart from the library: a ladder of searches."""

    def kinds(line: str) -> str:
        for pattern, kind in (
            (r"\[Datatype\]\[eager\]", "e"),
            (r"\[Datatype\]\[compiled\]", "c"),
            (r"(?=.*match:True).*\[Shape\]", "s"),
            (r"(?=.*match:True).*\[DataType\]", "d"),
            (r"all_close", "ecs"),
        ):
            if re.search(pattern, line):
                return kind
        return ""

    seen = set("".join(map(kinds, lines)))
    ladder = {"e": "eager_fail", "c": "compile_fail", "s": "shape_mismatch", "d": "type_mismatch"}
    for kind, word in ladder.items():
        if kind not in seen:
            return word
    failed = any(re.search("Exception:|Error:", line) for line in lines)
    return "runtime_fail" if failed else "correct"


@pytest.mark.slow
@given(st.lists(BLOCKS, min_size=1, max_size=4))
def test_upstreams_word_follows_from_the_lines_alone(blocks: list[Any]) -> None:
    texts = [
        [f"log [Processing]{head}", *(prompt + line for prompt, line in lines)]
        for head, lines in blocks
    ]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "a.log"
        path.write_text("\n".join(["noise", *(line for text in texts for line in text)]))
        runs = import_log(path)
    assert runs["upstream_status"] == [word_of(text) for text in texts]


@st.composite
def samples_of_logs(draw: st.DrawFn, name: str) -> list[str]:
    """Draw the lines of a sample that ended anywhere, and what other programs printed meanwhile."""
    dtypes = draw(st.lists(st.sampled_from([*EXPONENTS, "int64", "complex64"]), max_size=3))
    of_candidate = draw(st.sampled_from([dtypes, dtypes, dtypes[1:], ["float32", *dtypes]]))
    starts = [draw(st.integers(-10, 6)) for _ in dtypes]
    lines = log_of(
        name,
        eager=" ".join(dtypes),
        compiled=" ".join(of_candidate),
        eager_shapes=[[2]] * len(dtypes),
        compiled_shapes=[[2]] * len(of_candidate),
        equal=" ".join(str(draw(st.integers(0, 1))) for _ in dtypes),
        passes_from=dict.fromkeys(EXPONENTS, starts),
        speedup=f"{draw(st.floats(0.1, 10)):.5f}",
    )
    if draw(st.integers(0, 2)) == 0:
        lines = lines[: draw(st.integers(1, len(lines)))]
    if draw(st.integers(0, 3)) == 0:
        lines.insert(draw(st.integers(1, len(lines))), "RuntimeError: of whoever")
    if draw(st.integers(0, 3)) == 0:
        lines += COMPILED_FAILED
    return lines


def upstream_score(blocks: list[list[str]], t: int) -> float:
    """S(t) by upstream's rules at p = 0, b = 0.1, straight from the lines."""
    logs = []
    for block in blocks:
        matches = [re.search(r"\[(\w+\]\[[^]]*)\]: (.+)", line) for line in block]
        found = {match[1]: match[2] for match in matches if match}
        equal = found.get("Correctness][equal", "").split()
        dtypes = found.get("Datatype][eager", "").split()
        right = word_of(block) == "correct" and "Speedup][e2e" in found
        for index, is_equal in enumerate(equal):
            if dtypes[index] in EXPONENTS:
                a, r = EXPONENTS[dtypes[index]]
                key = (
                    f"Correctness][all_close_atol_{10.0 ** (t * a):.2E}_rtol_{10.0 ** (t * r):.2E}"
                )
                right &= found.get(key, "0 " * len(equal)).split()[index] == "1"
            else:
                right &= is_equal == "1"
        logs.append(math.log(float(found["Speedup][e2e"]) if right else 0.1))
    return math.exp(sum(logs) / len(logs))


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True), st.data())
def test_upstreams_score_follows_from_the_lines_alone(
    names: list[int], data: st.DataObject
) -> None:
    blocks = [data.draw(samples_of_logs(f"sample{name}")) for name in names]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "a.log"
        path.write_text("\n".join(line for block in blocks for line in block))
        scores = speedup_score(import_log(path), variant="upstream", has_intervals=False)
    assert scores["S"] == pytest.approx([upstream_score(blocks, t) for t in scores["t"]])


def log_passing_from(starts: list[int], speedups: list[float]) -> list[str]:
    """Return the lines of samples of one float32 output each, which passes from a t on."""
    return [
        line
        for number, (start, speedup) in enumerate(zip(starts, speedups, strict=True))
        for line in log_of(
            f"sample{number}",
            eager="float32",
            compiled="float32",
            eager_shapes=[[2]],
            compiled_shapes=[[2]],
            equal="0",
            passes_from={dtype: [start] for dtype in EXPONENTS},
            speedup=f"{speedup:.5f}",
        )
    ]


def test_s_takes_the_tolerance_of_each_t_and_es_that_of_t_1(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("\n".join(log_passing_from([-5, 0, 2, 3, 5], [0.5] * 5)))
    runs = import_log(path)
    correct = {t: sum(start <= t for start in (-5, 0, 2, 3, 5)) for t in range(-10, 6)}
    for variant in ("upstream", "upstream-extended"):
        scores = speedup_score(runs, variant=variant, has_intervals=False)
        assert list(scores["t"]) == list(range(-10, 6))
        assert scores["num_correct"] == list(correct.values())
        assert scores["S"] == pytest.approx(
            [0.5 ** (count / 5) * 0.1 ** (1 - count / 5) for count in correct.values()]
        )
        forgiving = error_aware_speedup_score(runs, variant=variant, has_intervals=False)
        assert forgiving["ES"][11:] == pytest.approx([0.5**0.4] * 5)


def test_a_t_whose_line_is_missing_does_not_pass(tmp_path: Path) -> None:
    lines = log_passing_from([-5], [2.0])
    dropped = {f"rtol_{10.0 ** (t * EXPONENTS['float32'][1]):.2E}" for t in (-1, 4)}
    path = tmp_path / "a.log"
    path.write_text("\n".join(line for line in lines if not any(key in line for key in dropped)))
    runs = import_log(path)
    assert runs["upstream_passing_t"][0] == [-5, -4, -3, -2, 0, 1, 2, 3, 5]
    scores = speedup_score(runs, variant="upstream", has_intervals=False)
    assert [t for t, score in zip(scores["t"], scores["S"], strict=True) if score > 1] == [
        *(-5, -4, -3, -2, 0, 1, 2, 3, 5)
    ]


@needs_log
def test_the_words_of_the_real_log_follow_from_its_lines() -> None:
    text = LOG.read_text()
    blocks = [f"[Processing]{block}".splitlines() for block in text.split("[Processing]")[1:]]
    assert import_log(LOG)["upstream_status"] == [word_of(block) for block in blocks]


@pytest.mark.slow
@needs_log
@settings(max_examples=30)
@given(st.data())
def test_a_log_cut_anywhere_has_upstreams_words(data: st.DataObject) -> None:
    """Lines of the real log are lost, doubled or followed by a traceback."""
    lines = LOG.read_text().splitlines()[:300]
    kept = []
    for line in lines:
        if "[Processing]" in line or data.draw(st.integers(0, 9)):
            kept.append(line)
            if data.draw(st.integers(0, 30)) == 0:
                kept.append(data.draw(st.sampled_from(["RuntimeError: x", line, "match:False"])))
    text = "\n".join(kept)
    blocks = [f"[Processing]{block}".splitlines() for block in text.split("[Processing]")[1:]]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "a.log"
        path.write_text(text)
        assert import_log(path)["upstream_status"] == [word_of(block) for block in blocks]


@needs_log
def test_the_real_log() -> None:
    runs = import_log(LOG)
    assert len(runs) == 11
    assert set(runs["status"]) == {"ok"}
    assert runs["min_t"] == [-6, -4, 1, -3, 1, -3, 0, -3, -1, -1, 0]
    assert [len(times) for times in runs["candidate_latency_ms"]] == [20, 26, *[20] * 9]
    assert runs["baseline_latency_ms"][0] == [5.75931]
    ends = [output["min_t"] for output in runs["outputs"][1]]
    assert ends == [-4.0] * 5 + [-5.0] * 5 + [-math.inf] * 5


@needs_log
def test_the_real_log_scores_as_the_published_rules_score_it() -> None:
    """The numbers were worked out apart from this library, by the rules that upstream publishes."""
    runs = import_log(LOG)
    expected = [0.1] * 4 + [0.122269] * 2 + [0.169979] + [0.306629] * 2
    expected += [0.408701, 0.680407] + [0.926796] * 5
    for score, metric in ((speedup_score, "S"), (error_aware_speedup_score, "ES")):
        scores = score(runs, variant="upstream")
        assert scores[metric] == pytest.approx(expected, abs=5e-7)
        assert scores.p == 0

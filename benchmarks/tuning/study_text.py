"""The page of the study: claims of the papers, results beside the targets, and tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Line = Mapping[str, Any]
Lines = Mapping[str, Sequence[Line]]
Result = tuple[str, bool | None]
"""A sentence on the measurement, and whether it meets the target; None without measurement."""

NOT_RUN: Result = ("not run", None)


@dataclasses.dataclass(frozen=True)
class Finding:
    """A system, the claim of its paper, its target, and the function that reads its lines."""

    system: str
    claim: str
    line: str
    read: Callable[[Lines], Result]


def figures(results: Lines, *parts: str) -> list[Line]:
    """Return the figures of the parts, without their headers."""
    return [line for part in parts for line in results.get(part, ()) if "experiment" in line]


def with_interval(value: float, interval: Sequence[float] | None, digits: int = 2) -> str:
    """Return a figure with its interval.

    >>> with_interval(0.914, [0.8, 1.0])
    '0.91 (0.80 to 1.00)'
    """
    text = f"{value:.{digits}f}"
    if interval is None:
        return text
    return f"{text} ({interval[0]:.{digits}f} to {interval[1]:.{digits}f})"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _ansor(results: Lines) -> Result:
    for line in figures(results, "ansor"):
        if "ansor_over_random" in line:
            ratio = line["ansor_over_random"]
            text = with_interval(ratio, line["interval"])
            sentence = (
                f"{text} of random's throughput, {line['tasks']} tasks, {line['trials']} trials"
            )
            return sentence, ratio >= 1.15
    return NOT_RUN


def _gptune(results: Lines) -> Result:
    lines = [
        line
        for line in figures(results, "gptune-2", "gptune-4", "gptune-6")
        if "shared_over_single" in line
    ]
    if not lines:
        return NOT_RUN
    sentence = "; ".join(
        f"{line['tasks']} tasks: {with_interval(line['shared_over_single'], line['interval'])}, "
        f"p = {line['p']:.2g}"
        for line in lines
    )
    holds = any(line["shared_over_single"] <= 0.9 and line["p"] < 0.05 for line in lines)
    return f"trials of the shared model over those of single ones, {sentence}", holds


def _dynatune(results: Lines) -> Result:
    for line in figures(results, "dynatune"):
        if line.get("allocator") == "dynatune" and "median_area_over_gradient" in line:
            value = line["median_area_over_gradient"]
            text = with_interval(value, line["interval"])
            return f"{text} of the gradient's area, {line['sets']} sets of graphs", value <= 0.9
    return NOT_RUN


def _bolt(results: Lines) -> Result:
    for line in figures(results, "bolt"):
        if "unfused_over_torch" in line:
            plain, fused = line["unfused_over_torch"], line["fused_over_torch"]
            sentence = (
                f"{plain:.2f} of torch unfused, {fused:.2f} with epilogue, {line['shapes']} shapes"
            )
            if "unfused_over_inductor" in line:
                sentence += (
                    f"; {line['unfused_over_inductor']:.2f} and "
                    f"{line['fused_over_inductor']:.2f} of inductor"
                )
            return sentence, plain >= 0.9 and fused >= 1.0 and line["shapes"] >= 10
    return NOT_RUN


def _oneshot(results: Lines) -> Result:
    lines = [line for line in figures(results, "oneshot") if line["model"] != "random"]
    if not lines:
        return NOT_RUN
    most = max(line["rows"] for line in lines)
    last = [line for line in lines if line["rows"] == most]
    best = {
        k: max((x for x in last if x["picks"] == k), key=lambda x: x["of_best"]) for k in (1, 5)
    }
    sentence = ", ".join(
        f"{with_interval(line['of_best'], line['interval'])} of the best with {picks} "
        f"{'pick' if picks == 1 else 'picks'} ({line['model']})"
        for picks, line in best.items()
    )
    return f"{sentence}, {most:,} rows of other families", best[5]["of_best"] >= 0.9


def _alt(results: Lines) -> Result:
    for line in figures(results, "alt"):
        if "alt_over_greedy" in line:
            value = line["alt_over_greedy"]
            text = with_interval(value, line["interval"])
            return f"{text} of greedy's measurements, {line['tasks']} tasks", value <= 0.6
    return NOT_RUN


def _dispatch(results: Lines) -> Result:
    sentences, holds = [], None
    for name in ("sparsity", "sort", "compilers"):
        for line in figures(results, name):
            text = with_interval(line["over_best_single"], line["interval"])
            sentences.append(f"{name}: {text}, {line['share_of_oracle']:.0%} of the possible gain")
            if name == "sparsity":
                holds = line["over_best_single"] >= 1.2
    return ("; ".join(sentences), holds) if sentences else NOT_RUN


def _gnn(results: Lines) -> Result:
    lines = figures(results, "gnn-random", "gnn-families")
    own = {(x["split"], x["model"]): x for x in lines if "model" in x}
    name = "gnn with code" if ("random", "gnn with code") in own else "gnn"
    over_trees = {(x["split"], x.get("of", "gnn")): x for x in lines if "gnn_over_trees" in x}
    more = over_trees.get(("families", name))
    random = own.get(("random", name))
    if random is None or more is None:
        return NOT_RUN
    sentence = (
        f"rank correlation within tasks {with_interval(random['spearman'], random['interval'])} on "
        f"a random split of {random['rows']:,} rows ({random['over_all']:.3f} over all tasks "
        "together); on held-out families "
        f"{with_interval(more['gnn_over_trees'], more['interval'])} more than the trees"
    )
    return sentence, random["spearman"] >= 0.9 and more["gnn_over_trees"] >= 0


FINDINGS = (
    Finding("Ansor", "up to 3.8 times", "at least 1.15 of random search at equal trials", _ansor),
    Finding(
        "GPTune",
        "up to 2.8 times better code for 80 % of the tasks",
        "at most 0.9 of the trials of single-task models, p < 0.05",
        _gptune,
    ),
    Finding(
        "DynaTune",
        "1.2 to 2.4 times faster to equal quality",
        "at most 0.9 of the area of Ansor's gradient",
        _dynatune,
    ),
    Finding(
        "Bolt",
        "2.5 times over the state of the art",
        "at least 0.9 of torch unfused, 1.0 with epilogue, ten shapes",
        _bolt,
    ),
    Finding(
        "One-shot tuner",
        "compiles 2.8 to 68 times faster at comparable times",
        "0.9 of the best at five picks on held-out families",
        _oneshot,
    ),
    Finding(
        "ALT", "1.9 to 2.5 times less time to the optimum", "at most 0.6 of greedy's trials", _alt
    ),
    Finding(
        "Input sensitivity",
        "up to 3 times over one configuration",
        "at least 1.2 over the best single one on mixed sparsity",
        _dispatch,
    ),
    Finding(
        "Graph network",
        "a strong competitor of features made by hand",
        "0.9 on a random split of 5,000 rows; no worse than trees on held-out families",
        _gnn,
    ),
)


def page(results: Lines, pool: Mapping[str, Any]) -> str:
    """Return the text between the markers of the page."""
    families = ", ".join(f"{count} {name}" for name, count in sorted(pool["families"].items()))
    begin = (
        f"A pool of {pool['records']:,} records, {pool['ok']:,} of them ok, of {pool['tasks']} "
        f"tasks ({families}), measured on one core of an {pool['mcpu']} processor with TVM "
        f"{pool['tvm']}. Intervals are of 95 %.\n\n"
    )
    rows = []
    for finding in FINDINGS:
        sentence, holds = finding.read(results)
        verdict = {True: "yes", False: "no", None: ""}[holds]
        rows.append([finding.system, finding.claim, sentence, finding.line, verdict])
    heads = ["system", "the paper", "measured here", "target", "met"]
    parts = [begin + table(heads, rows)]
    tables = (_trials, _areas, _picks, _ranks, _live_ansor, _live_bolt, _dispatched, _tuned)
    parts += [text for make in tables if (text := make(results))]
    return "\n".join([*parts, _commands(results)])


def _trials(results: Lines) -> str:
    rows = []
    for line in figures(results, "alt", "alt-others", "gptune-2", "gptune-4", "gptune-6"):
        if "trials_to_95" in line:
            groups = f" in {line['groups']} groups of {line['tasks']}" if "groups" in line else ""
            tasks = f"{line['tasks'] * line.get('groups', 1)}{groups}"
            trials = with_interval(line["trials_to_95"], line["interval"], 1)
            rows.append([line["tuner"], tasks, trials, f"{line['missed_share']:.0%}"])
    if not rows:
        return ""
    heads = ["tuner", "tasks", "trials to 95 % of the best", "runs that missed it"]
    return table(heads, rows)


def _areas(results: Lines) -> str:
    rows = [
        [line["allocator"], str(line["sets"]), with_interval(line[key], line["interval"])]
        for line in figures(results, "dynatune")
        if (key := "median_area_over_gradient") in line
    ]
    heads = ["allocator", "sets of graphs", "area over that of Ansor's gradient, median"]
    return table(heads, rows) if rows else ""


def _picks(results: Lines) -> str:
    lines = figures(results, "oneshot")
    by_model: dict[tuple[str, int], dict[int, str]] = {}
    for line in lines:
        text = with_interval(line["of_best"], line["interval"])
        by_model.setdefault((line["model"], line["picks"]), {})[line["rows"]] = text
    counts = sorted({line["rows"] for line in lines})
    rows = [
        [model, str(picks), *(of_model.get(count, "") for count in counts)]
        for (model, picks), of_model in by_model.items()
    ]
    heads = ["model", "picks", *(f"{count:,} rows" for count in counts)]
    return table(heads, rows) if rows else ""


def _ranks(results: Lines) -> str:
    lines = [x for x in figures(results, "gnn-random", "gnn-tasks", "gnn-families") if "model" in x]
    models = list(dict.fromkeys(line["model"] for line in lines))
    cells = {(x["split"], x["model"]): with_interval(x["spearman"], x["interval"]) for x in lines}
    rows = [
        [f"held out: {split}", *(cells.get((split, model), "") for model in models)]
        for split in dict.fromkeys(line["split"] for line in lines)
    ]
    return table(["rank correlation within tasks", *models], rows) if rows else ""


def _live_ansor(results: Lines) -> str:
    rows = [
        [line["task"], with_interval(line["ratio"], line["interval"]), str(line["seeds"])]
        for line in figures(results, "ansor")
        if "ratio" in line
    ]
    heads = ["task, live", "throughput of Ansor's best over random's", "seeds"]
    return table(heads, rows) if rows else ""


def _live_bolt(results: Lines) -> str:
    lines = [line for line in figures(results, "bolt") if "over_torch" in line]
    with_inductor = any("inductor_ms" in line for line in lines)
    rows = [
        [
            *(line["shape"], f"{line['template_ms']:.3f}", f"{line['torch_ms']:.3f}"),
            with_interval(line["over_torch"], line["interval"]),
            *(_of_inductor(line) if with_inductor else ()),
        ]
        for line in lines
    ]
    heads = ["shape, live", "template, ms", "torch, ms", "torch over template"]
    if with_inductor:
        heads += ["inductor, ms", "torch over inductor", "inductor over template"]
    return table(heads, rows) if rows else ""


def _of_inductor(line: Line) -> list[str]:
    if "inductor_ms" not in line:
        return ["not run", "", ""]
    over_torch = with_interval(line["inductor_over_torch"], line["inductor_interval"])
    return [f"{line['inductor_ms']:.3f}", over_torch, f"{line['over_inductor']:.2f}"]


def _dispatched(results: Lines) -> str:
    rows = [
        [
            f"{line['test']} graphs of {line['families']} families, {line['noisy_share']:.0%} of "
            "the records noisy",
            f"{line['speedup_of_single']:.2f} (`{line['best_single']}`)",
            *(f"{line[name]:.2f}" for name in ("speedup_of_chosen", "speedup_of_oracle")),
            ", ".join(f"`{name}` {count}" for name, count in line["fastest"].items() if count),
            ", ".join(f"`{name}` {count}" for name, count in line["chosen"].items() if count),
        ]
        for line in figures(results, "compilers")
    ]
    heads = [
        *("speedup over eager, families held out", "one compiler", "chosen", "always the fastest"),
        *("fastest", "chosen"),
    ]
    return table(heads, rows) if rows else ""


def _tuned(results: Lines) -> str:
    lines = figures(results, "tuned")
    compilers = [line for line in lines if "graphs" in line]
    if not compilers:
        return ""
    scores = [name for name in compilers[0] if name.startswith("S(")]
    rows = [
        [f"`{line['compiler']}`", f"{line['ok']} of {line['graphs']}",
         *(f"{line[name]:.3f}" for name in scores), f"{line['seconds_of_compiling']:.0f} s"]
        for line in compilers
    ]  # fmt: skip
    heads = ["compiler", "graphs that ran", *scores, "compile time, including tuning"]
    first = table(heads, rows)
    names = [line["compiler"] for line in compilers]
    cells = {(line["graph"], line["compiler"]): line for line in lines if "graph" in line}
    rows = []
    for graph in dict.fromkeys(graph for graph, _ in cells):
        own = [cells.get((graph, name)) for name in names]
        share = next(line["flops_with_a_record"] for line in own if line is not None)
        rows.append([graph, f"{share:.0%}", *(_speedup(line) for line in own)])
    heads = ["speedup over eager, one thread", "flops with a record", *(f"`{n}`" for n in names)]
    return f"{first}\n{table(heads, rows)}"


def _speedup(line: Line | None) -> str:
    if line is None:
        return ""
    if line["speedup"] is None:
        return str(line["status"])
    return with_interval(line["speedup"], line["interval"])


def _commands(results: Lines) -> str:
    lines = []
    for part in results.values():
        for line in part:
            if "shown" in line:
                lines.append(f"    {line['shown']}    # {line['cpu_s'] / 60:.1f} min of one core")
    return "\n".join(["Made by:", "", *lines]) + "\n" if lines else ""

"""Operators that break compilers, from run records and their graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

BEGIN, END = "<!-- operators that break compilers: begin -->", "<!-- operators: end -->"


class Breaking(NamedTuple):
    """An operator whose graphs all fail in one arm.

    `num_graphs` is the number of failures that it explains, and `named` the number of those whose
    error message names it.
    """

    arm: str
    operator: str
    num_graphs: int
    named: int
    example: str


def breaking(
    records: Iterable[Mapping[str, Any]], operators_of: Mapping[str, Iterable[str]]
) -> list[Breaking]:
    """Return the operators that explain the failures of each arm, most frequent first.

    An operator is a suspect if it occurs in failed graphs and in no successful graph. The suspect
    that is named in an error message, or else occurs in most unexplained failures, is chosen
    repeatedly. Failures without a suspect stay unexplained.

    Args:
        records: with `arm`, `sample_id`, `status` and `error_message`.
        operators_of: the operators of each graph, by the graph's id.

    >>> records = [{"arm": "x", "sample_id": name, "status": status, "error_message": text}
    ...     for name, status, text in (("a", "ok", None), ("b", "compile_failed", "no fft_r2c"))]
    >>> [found] = breaking(records, {"a": ["torch.add"], "b": ["torch.add", "torch.fft.fft_r2c"]})
    >>> found.operator, found.num_graphs, found.named
    ('torch.fft.fft_r2c', 1, 1)
    """
    by_arm: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if record["sample_id"] in operators_of:
            by_arm.setdefault(record["arm"], []).append(record)
    return [
        breaking
        for arm, of_arm in by_arm.items()
        for breaking in _of_arm(arm, of_arm, operators_of)
    ]


def _of_arm(
    arm: str, records: Sequence[Mapping[str, Any]], operators_of: Mapping[str, Iterable[str]]
) -> Iterator[Breaking]:
    sound = {
        name
        for record in records
        if record["status"] == "ok"
        for name in operators_of[record["sample_id"]]
    }
    left = {
        record["sample_id"]: (set(operators_of[record["sample_id"]]) - sound, _text(record))
        for record in records
        if record["status"] != "ok"
    }
    while True:
        counts: Counter[str] = Counter(name for names, _ in left.values() for name in names)
        named: Counter[str] = Counter(
            name for names, text in left.values() for name in names if _short(name) in text
        )
        if not counts:
            return
        name = max(counts, key=lambda operator: (named[operator], counts[operator], operator))
        holding = sorted(sample for sample, (names, _) in left.items() if name in names)
        yield Breaking(arm, name, len(holding), named[name], holding[0])
        left = {sample: operators for sample, operators in left.items() if sample not in holding}


def _text(record: Mapping[str, Any]) -> str:
    return record["error_message"] or ""


def _short(operator: str) -> str:
    return operator.rpartition(".")[2].strip("_")


def table(breakings: Iterable[Breaking], failures: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines of a table in Markdown; `failures` counts the failed graphs of each arm.

    >>> print(*table([Breaking("tvm", "torch.sin", 2, 1, "torch/siren")], {"tvm": 3}), sep="\\n")
    | compiler | operator | graphs that fail | named in the message | for example |
    |---|---|---|---|---|
    | tvm | `torch.sin` | 2 | 1 | torch/siren |
    | tvm | no single operator responsible | 1 | | |
    """
    yield "| compiler | operator | graphs that fail | named in the message | for example |"
    yield "|---|---|---|---|---|"
    by_arm: dict[str, list[Breaking]] = {}
    for breaking in breakings:
        by_arm.setdefault(breaking.arm, []).append(breaking)
    for arm, total in sorted(failures.items()):
        rows = sorted(
            by_arm.get(arm, []), key=lambda breaking: (-breaking.num_graphs, breaking.operator)
        )
        for breaking in rows:
            yield (
                f"| {arm} | `{breaking.operator}` | {breaking.num_graphs} | {breaking.named} "
                f"| {breaking.example} |"
            )
        rest = total - sum(breaking.num_graphs for breaking in rows)
        if rest:
            yield f"| {arm} | no single operator responsible | {rest} | | |"

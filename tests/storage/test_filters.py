"""Filters by themselves; what they keep of a dataset is in `test_selection`."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

from graphnet_datasets.benchmark.matching import match_compilers
from graphnet_datasets.errors import RunError, SchemaError
from graphnet_datasets.storage.filters import Filters, as_filters, nearest_choices
from graphnet_datasets.storage.selection import select_rows

ROW: dict[str, Any] = {
    "id": "torch/ResNet-18",
    "framework": "torch",
    "task": "cv",
    "family": "20faa78d",
    "tags": None,
    "num_ops": 3,
    "num_params": 10,
    "flops": 1000,
    "dtype": "float32",
    "license": "MIT",
    "is_dynamic": False,
}
NLP = {**ROW, "id": "nlp/bert", "task": "nlp", "num_ops": 40, "tags": ["small"], "flops": None}
AUDIO = {**ROW, "id": "audio/whisper", "task": "audio", "num_ops": 9, "dtype": "float16"}


@pytest.mark.parametrize(
    ("filters", "is_kept"),
    [
        ({}, True),
        ({"task": ("cv", "nlp"), "framework": ("torch",)}, True),
        ({"task": ("nlp",)}, False),
        ({"tag": ("small",)}, False),  # a row without tags has none of them
        ({"method": ("rules",)}, False),  # whole graphs have no such column
        ({"family": ("20fa",)}, True),
        ({"family": ("30fa",)}, False),
        ({"min_ops": 3, "max_ops": 3, "max_params": 10}, True),
        ({"max_params": 9}, False),
        ({"limit": 0}, True),
        ({"name": ("RES", "vit")}, True),
        ({"name": ("resnet-5",)}, False),
        ({"dtype": ("float16", "float32"), "license": ("MIT",)}, True),
        ({"dtype": ("float16",)}, False),
        ({"license": ("Apache-2.0",)}, False),
        ({"is_dynamic": False}, True),
        ({"is_dynamic": True}, False),
        ({"min_params": 11}, False),
        ({"min_params": 10, "min_flops": 1e3, "max_flops": 1e3}, True),
        ({"max_flops": 999.5}, False),
        ({"min_occurrences": 1}, False),  # whole graphs have no such column
    ],
)
def test_of_a_row(filters: dict[str, Any], is_kept: bool) -> None:
    assert Filters(**filters).keeps(ROW) is is_kept


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"max_ops": 2}, "Without `--max-ops 2`, 3 samples remain; the nearest is `--max-ops 3`."),
        (
            {"min_ops": 99},
            "Without `--min-ops 99`, 3 samples remain; the nearest is `--min-ops 40`.",
        ),
        (
            {"task": ("cv",), "max_ops": 2},
            "Without `--max-ops 2`, 1 sample remains; the nearest is `--max-ops 3`.",
        ),
        (
            {"dtype": ("bfloat16",)},
            "Without `--dtype bfloat16`, 3 samples remain, with `float32` (2), `float16` (1).",
        ),
        (
            {"task": ("nlp",), "tag": ("conv", "linear")},
            "Without `--tag conv --tag linear`, 1 sample remains, with `small` (1).",
        ),
        (
            {"method": ("rules",)},
            "Without `--found-by rules`, 3 samples remain, where `method` is empty.",
        ),
        ({"is_dynamic": True, "name": ("bert",)}, "Without `--dynamic`, 1 sample remains."),
        (
            {"name": ("berd",), "task": ("nlp",)},
            "Without `--name berd`, 1 sample remains. Did you mean `nlp/bert`?",
        ),
        (
            {"task": ("nlp",), "min_flops": 1e6},
            "Without `--min-flops 1e+06`, 1 sample remains, where `flops` is unknown.",
        ),
        (  # no single filter is enough
            {"task": ("nlp",), "max_ops": 2, "license": ("GPL",)},
            "Without `--license GPL --max-ops 2`, 1 sample remains.",
        ),
        (  # two filters are as near
            {"task": ("audio",), "dtype": ("float32",)},
            "Without `--task audio`, 2 samples remain, with `cv` (1), `nlp` (1). "
            "Without `--dtype float32`, 1 sample remains, with `float16` (1).",
        ),
        (
            {"where": [("num_ops", ">", 99)]},
            "Without `filters=[('num_ops', '>', 99)]`, 3 samples remain.",
        ),
    ],
    ids=str,
)
def test_the_nearest_choice_names_the_filters_to_drop(
    filters: dict[str, Any], expected: str
) -> None:
    chosen = Filters(**filters)
    assert not any(map(chosen.keeps, (ROW, NLP, AUDIO)))
    assert nearest_choices(chosen, [ROW, NLP, AUDIO], "samples") == expected
    assert nearest_choices(chosen, [], "samples") == ""


def test_names_that_nothing_has_are_refused() -> None:
    with pytest.raises(RunError, match=r"There is no framework `torhc`\. Did you mean `torch`\?"):
        Filters(framework=("torhc",))


@pytest.mark.parametrize(
    ("conditions", "is_kept"),
    [
        ([("num_ops", "<", 20)], True),
        ([("num_ops", "<", 3)], False),
        ([("num_ops", "<=", 3.0), ("task", "=", "cv"), ("task", "!=", "nlp")], True),
        ([("task", "in", ["nlp", "audio"])], False),
        ([("task", "not in", ["nlp", "audio"])], True),
        ([[("num_ops", ">", 20)], [("task", "==", "cv")]], True),
        ([("tags", "contains", "small")], False),  # a missing value matches nothing
        (pc.field("num_ops") < 20, True),
        ([], True),
        (None, True),
    ],
)
def test_the_filters_of_load_dataset(conditions: Any, is_kept: bool) -> None:
    assert as_filters(conditions).keeps(ROW) is is_kept


def test_filters_match_elements_of_lists() -> None:
    row = {**ROW, "tags": ["small", "conv"]}
    assert as_filters([("tags", "contains", "small")]).keeps(row)
    assert not as_filters([("tags", "contains", "smal")]).keeps(row)


def test_a_wrong_filter_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"no column `num_op`\. Did you mean `num_ops`\?"):
        as_filters([("num_op", "<", 20)])
    with pytest.raises(RunError) as caught:
        as_filters(("num_ops", "<", 20))
    assert str(caught.value) == (
        "`filters=('num_ops', '<', 20)` is not a filter. Pass a list of conditions as to "
        '`load_dataset`, `[("num_ops", "<", 20)]`, or `Filters(max_ops=19)`.'
    )


def test_a_run_takes_the_filters_of_load_dataset() -> None:
    rows = select_rows("cv", [("num_ops", "<", 5), ("flops", ">", 0), ("framework", "=", "torch")])
    assert rows
    assert all(row["num_ops"] < 5 and row["flops"] > 0 for row in rows)
    frameworks = {row["framework"] for row in rows}
    assert frameworks == {"torch"}
    matched, _ = match_compilers("cv", [("num_ops", "<", 5)], "graphnet", ["eager"])
    assert {row["id"] for row in rows} <= matched.ids

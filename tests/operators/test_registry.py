"""The entries of operators: well-formed, declared once, and consistent with the derived tables."""

from __future__ import annotations

import collections
import subprocess
import sys

import pytest

from graphnet_datasets import operators
from graphnet_datasets.frameworks.torch.operators import canonical
from graphnet_datasets.operators import FACTS, NAMESPACES, OperatorNames, OperatorValues, entries
from graphnet_datasets.operators.registry import _declarations

ENTRIES = sorted(entries().values(), key=lambda entry: entry.name)
MARKS = "*_"


def plain(fact: str) -> str:
    """Return the fact without the mark of its form and without places."""
    return fact.partition("@")[0].rstrip(MARKS)


def test_every_operator_is_declared_once() -> None:
    names = collections.Counter(name for _, names, _ in _declarations() for name in names)
    assert [name for name, count in names.items() if count > 1] == []


def test_every_fact_is_in_the_vocabulary_and_every_word_of_it_is_used() -> None:
    used = {plain(fact) for entry in ENTRIES for fact in entry.facts}
    assert used == set(FACTS)


def test_every_place_is_a_namespace() -> None:
    places = {
        place.rstrip(MARKS)
        for entry in ENTRIES
        for fact in entry.facts
        if "@" in fact
        for place in fact.partition("@")[2].split(",")
    }
    assert places and places <= set(NAMESPACES)


@pytest.mark.parametrize("fact", sorted(FACTS))
def test_a_fact_has_a_value_for_all_operators_or_for_none(fact: str) -> None:
    values = OperatorValues(fact).values()
    assert all(values) or not any(values)


def test_every_spelling_of_torch_is_in_its_table() -> None:
    names = [name for entry in ENTRIES for name in entry.spellings if name[:6] != "paddle"]
    assert len(names) == len(set(names)) > 2500
    for name in names:
        assert canonical(name)


def test_marks_select_the_forms_of_an_operator() -> None:
    entry = operators.entry("relu")
    assert {"torch.relu", "torch.relu_", "torch.Tensor.relu_"} <= set(entry.spellings)
    assert "attribute" not in entry.facts
    assert {"relu", "relu_"} <= OperatorNames("aten")
    assert "exponential_" in OperatorNames("Tensor")
    assert "exponential" not in OperatorNames("Tensor")


def test_places_restrict_a_fact_to_namespaces() -> None:
    checked = OperatorNames("checked")
    assert "torch.ops.aten._weight_norm" in checked
    assert "_weight_norm" not in checked


def test_tables_work_as_sets_and_mappings() -> None:
    kinds = OperatorValues("kind")
    assert kinds["gelu"] == "pointwise" and kinds.get("sort") is None
    assert len(kinds) == len(list(kinds)) > 100
    union = OperatorNames("adds") | OperatorNames("subtracts")
    assert isinstance(union, frozenset) and {"add", "sub"} <= union


def test_the_entries_need_no_framework_and_are_read_when_a_table_is_used() -> None:
    code = (
        "import sys; from graphnet_datasets.operators import OperatorNames;"
        "table = OperatorNames('checked');"
        "assert 'graphnet_datasets.operators.families' not in sys.modules;"
        "assert 'relu' in table;"
        "assert not {'torch', 'paddle', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_operator_has_no_entry() -> None:
    with pytest.raises(KeyError):
        operators.entry("data_ptr")

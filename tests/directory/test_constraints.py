"""Reading `input_tensor_constraints.py` by its grammar."""

from __future__ import annotations

import pytest

from graphnet_datasets.directory.constraints import Declarations, parse_constraints
from graphnet_datasets.errors import SourceError
from graphnet_datasets.sample import Constraint, Symbol

HEAD = """from sympy import Symbol, Expr, Rel, Eq

S0 = Symbol("S0")
S1 = Symbol("S1")

dynamic_dim_constraint_symbols = [S0, S1]

dynamic_dim_constraint_symbol2example_value = {S0: 1, S1: 12}

"""


def test_a_file_is_read_whole() -> None:
    text = (
        HEAD
        + """dynamic_dim_constraint_relations = [Eq(S0, Max(S1, 1)), S0 <= S1, S1 > 0]

dynamic_dim_constraint_input_shapes = [
    ([S0, 16*S1 + Max(S0, 3), 7], "x"),
    (
        [32],
        "w",
    ),
    ([], "s1"),
]
"""
    )
    assert parse_constraints(text) == Declarations(
        (Symbol("S0", 1), Symbol("S1", 12)),
        (
            Constraint("S0", "==", "Max(S1, 1)"),
            Constraint("S0", "<=", "S1"),
            Constraint("S1", ">", "0"),
        ),
        {"x": ("S0", "16*S1 + Max(S0, 3)", 7)},
    )


def test_an_empty_file_declares_nothing() -> None:
    assert parse_constraints("") == Declarations()


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("import os\n", 10, "Expected a declaration of symbols, relations or shapes"),
        ("S2 = open('x')\n", 10, "Expected a declaration of symbols, relations or shapes"),
        ("dynamic_dim_constraint_symbols = [S9]\n", 10, "The symbol `S9` is not declared"),
        ("dynamic_dim_constraint_symbol2example_value = {S0: 1}\n", 11, "The symbol `S1` has no "
         "example value"),
        ("dynamic_dim_constraint_symbol2example_value = {S0: x}\n", 10, "`S0: x` is not a symbol "
         "with its example value"),
        ("dynamic_dim_constraint_relations = [S0]\n", 10, "`S0` is not a relation"),
        ("dynamic_dim_constraint_relations = [S0 < S7]\n", 10, "`S7` uses `S7`, which is not "
         "declared"),
        ("dynamic_dim_constraint_relations = [S0 < 9**9**9]\n", None, None),
        ("dynamic_dim_constraint_input_shapes = [\n    (S0, 'x'),\n]\n", 10, "Expected a shape "
         "followed by the name of its input"),
        ("dynamic_dim_constraint_input_shapes = [\n    ([S0.real], 'x'),\n]\n", 10, "`S0.real` is "
         "not a symbolic dimension: `Attribute` is outside the grammar. Use integers, symbols, "
         "+ - * // % **, Max, Min, FloorDiv, CeilDiv and Mod"),
        ("Max = Symbol('Max')\n", 10, "`Max` cannot name a symbol"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_its_line(
    text: str, line: int | None, problem: str | None
) -> None:
    if line is None:
        # Within the grammar; it costs nothing until it is evaluated, which stops at 64 bits.
        assert parse_constraints(HEAD + text).constraints[0].right == "9**9**9"
        return
    with pytest.raises(SourceError) as caught:
        parse_constraints(HEAD + text)
    assert str(caught.value) == (
        f"`input_tensor_constraints.py`, line {line}: {problem}. Correct the file, or remove it "
        "if the graph has no symbolic dimensions."
    )

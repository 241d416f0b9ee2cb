"""Argument templates: what they look like, and that they are only read, never run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.errors import SchemaError
from graphnet_datasets.sample.arguments import DictArg, ListArg, Named, Ref, SliceArg, iterate_refs
from graphnet_datasets.schema.templates import (
    MAX_CACHED_LENGTH,
    decode_args,
    decode_kwargs,
    encode_args,
    encode_kwargs,
)
from tests.strategies import IDENTIFIERS, args

CALLS = st.tuples(
    st.lists(args(9), max_size=4).map(tuple),
    st.lists(st.tuples(IDENTIFIERS, args(9)), max_size=3, unique_by=lambda pair: pair[0]).map(
        tuple
    ),
)


@given(CALLS)
def test_a_call_is_its_templates_and_operands(call: tuple[Any, Any]) -> None:
    positional, keywords = call
    operands: list[int] = []
    templates = encode_args(positional, operands), encode_kwargs(keywords, operands)
    assert operands == list(iterate_refs(call))
    for template in templates:
        json.loads(template, parse_constant=pytest.fail)
    left = iter(operands)
    decoded = decode_args(templates[0], left), decode_kwargs(templates[1], left)
    assert repr(decoded) == repr(call)
    assert list(left) == []


@pytest.mark.parametrize(
    ("positional", "template"),
    [
        ((), "[]"),
        ((Ref(4), Ref(2), None), "[{},{},null]"),
        (((1, 2), ListArg((1, True))), '[{"tuple":[1,2]},[1,true]]'),
        ((SliceArg(None, Ref(1), 2), ...), '[{"slice":[null,{},2]},{"ellipsis":true}]'),
        ((float("-inf"), -0.0, 2.0), '[{"float":"-inf"},-0.0,2.0]'),
        ((1 - 2j,), '[{"complex":[1.0,-2.0]}]'),
        ((Named("dtype", "bfloat16"), "{}"), '[{"dtype":"bfloat16"},"{}"]'),
        ((DictArg((("b", 1), ("a", Ref(0)))),), '[{"dict":{"b":1,"a":{}}}]'),
    ],
)
def test_templates_read_like_the_call(positional: Any, template: str) -> None:
    operands: list[int] = []
    assert encode_args(positional, operands) == template
    assert repr(decode_args(template, iter(operands))) == repr(positional)


def test_keywords_keep_their_order() -> None:
    operands: list[int] = []
    keywords = (("stride", 2), ("bias", Ref(7)))
    assert encode_kwargs(keywords, operands) == '{"stride":2,"bias":{}}'
    assert decode_kwargs('{"stride":2,"bias":{}}', iter([7])) == keywords


def test_one_template_serves_other_operands() -> None:
    text = '[{},{"tuple":[{},1]}]'
    assert decode_args(text, iter([0, 1])) == (Ref(0), (Ref(1), 1))
    assert decode_args(text, iter([5, 4])) == (Ref(5), (Ref(4), 1))


def test_a_long_table_of_literals_survives() -> None:
    table = ListArg(tuple(index / 7 for index in range(2_000)))
    text = encode_args((table,), [])
    assert len(text) > MAX_CACHED_LENGTH
    assert decode_args(text, iter([])) == (table,)


@pytest.mark.parametrize(
    "body",
    [
        '{"ref":1}',
        '{"float":"1.5"}',
        '{"float":["nan"]}',
        '{"complex":[1,2]}',
        '{"complex":[1.0]}',
        '{"slice":[1,2]}',
        '{"tuple":1}',
        '{"dict":[]}',
        '{"ellipsis":false}',
        '{"dtype":1}',
        '{"dtype":"float32","device":"cpu"}',
        '{"__import__":"os"}',
    ],
)
def test_an_object_that_means_nothing_is_refused(body: str) -> None:
    with pytest.raises(
        SchemaError, match=r"^An argument template contains `.*`, which is not a template"
    ):
        decode_args(f"[{body}]", iter([]))


def test_an_unknown_argument_type_is_refused() -> None:
    with pytest.raises(SchemaError) as caught:
        encode_args((print,), [])  # type: ignore[arg-type]
    assert str(caught.value) == (
        "An argument of type `builtin_function_or_method` cannot be stored in a row. "
        "Use the types of `sample.arguments`."
    )

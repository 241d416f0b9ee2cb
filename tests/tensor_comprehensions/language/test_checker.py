"""Every error of a definition that does not depend on sizes, with the place it points at."""

from __future__ import annotations

import pytest

from graphnet_datasets.errors import DefinitionError
from graphnet_datasets.tensor_comprehensions.language import check


def body(statement: str) -> str:
    return f"def f(float(N,M) A, float(M) B, int32 n, float s, bool(N) m) -> (O) {{ {statement} }}"


WRONG = [
    ("O(i) = B(i) where i on 0:3", "Expected `in` or `=` but found `on`.", "on"),
    ("O(i) <- B(i)", "Expected one of `=` `+=`", "<"),
    ("O(0) = B(0)", "Points may write the same element, because a subscript on the left", "0"),
    ("O(n+i) +=! B(i)", "The sizes of `O` do not follow from these subscripts.", "n+i"),
    ("O(i) = B(i) O(B(i)) += s", "A subscript must be an integer, but this is float32.", "B(i)"),
    ("O(i) = B(i) O(2*O(i)) += s", "A subscript must be an integer", "2*O(i)"),
    ("O(i) = n O(O(i)) += n", "may read its own output `O` only with `=`", "O(i)"),
    ("O(i) = O(i) + B(i)", "Undefined variable `O`", "O"),
    ("O(i,j) = O(i-1,j-1) + A(i,j)", "may read its own output `O` only with `=`", "O(i-1,j-1)"),
    ("O(i) = O(i-1) + O(i+1) + B(i)", "may read its own output `O` only with `=`", "O(i+1)"),
    ("O(i) +=! O(i-1) * A(i,j)", "Undefined variable `O`", "O"),
    ("O(i) = B(i) O(i) = O(i-n)", "may read its own output `O` only with `=`", "O(i-n)"),
    ("O(i) = B(i", "Expected `)` but found `}`.", "}"),
    ("O(i) = B(i) + min", "Expected `(` but found `}`.", "}"),
    ("min(i) = B(i)", "Expected a name but found `min`. This word is reserved.", "min"),
    ("O(i) = C(i)", "Undefined variable `C`: there is no tensor, output or function", "C"),
    ("O(i) = N(i)", "Undefined variable `N`: it is not a tensor.", "N"),
    ("O(i) = i * C.0", "Undefined variable `C`.", "C"),
    ("O(i) = B(i) where i in 0:L", "Undefined variable `L`.", "L"),
    ("O(i) = a where a = b, b = B(i)", "`where` defines it later.", "b"),
    ("O(i) = a where a = B(i), a = 2", "`a` is already defined.", "a"),
    ("O(i) = B(i) where i in 0:2, i in 0:3", "`i` is already defined.", "i"),
    ("O(i) = B(i) where B in 0:2", "`B` is already defined.", "B"),
    ("O(i,i) = A(i,i)", "The index `i` is already used on this side.", "i"),
    ("O(M) = B(M)", "`M` is already defined; the left side takes plain indices.", "M"),
    ("N(i) = B(i)", "`N` is already defined as a size.", "N"),
    ("O(i) = A(i)", "Expected 2 dimensions of `A` but found 1.", "A(i)"),
    ("O(i) = B", "Expected a scalar, but `B` has 1 dimensions.", "B"),
    ("O(i) = B(i) * s(i)", "Expected a tensor, but `s` is a scalar.", "s(i)"),
    ("O(i) = B.1", "`B` has 1 dimensions, so there is no `B.1`", "B.1"),
    ("O(i) = B(i) * A(i,k)", "The index `k` is used without a reduction operator", "k"),
    ("B(i) = A(i,i)", "`B` is an input, and inputs are immutable.", "B"),
    ("O(i) = B(i) where i in 0:B(0)", "A range cannot depend on the tensor `B`", "B(0)"),
    ("O(i) = B(i) where i in 0:3, j in 0:i", "A range cannot depend on the index `i`", "i"),
    ("O(i) = B(s)", "A subscript must be an integer, but this is float32.", "s"),
    ("O(i) = B(i) where i in 0:2.0", "The end of a range must be an integer", "2.0"),
    ("O(i) = B(i) ? 1 : 2", "The condition of `?:` must be a boolean, but this is", "B(i)"),
    ("O(i) = m(i) && B(i) ? 1 : 2", "An operand of `&&` must be a boolean", "B(i)"),
    ("O(i) = !B(i) ? 1 : 2", "The operand of `!` must be a boolean", "B(i)"),
    ("O(i) = pow(B(i))", "`pow` takes 2 arguments but got 1.", "pow(B(i))"),
    ("O(i) = exp(B(i), 1)", "`exp` takes 1 argument but got 2.", "exp(B(i), 1)"),
    ("O +=! m(i)", "A sum or product of booleans would be a boolean.", "m(i)"),
    ("O(i) = B(i) where exists i + 1", "`exists` needs an access to a tensor", "i + 1"),
    ("O(i) = B(i) T(i) = B(i)", "`T` is neither an output nor read by a statement.", "T"),
    ("O(i) = B(i) + T(i) T(i) += B(i)", "Undefined variable `T`", "T"),
    ("T(i) += B(i) O(i) = T(i)", "`T` is not an output, and it is updated before", "T"),
    ("O(i) = B(i) O(i,j) = A(i,j)", "Expected 1 dimensions of `O` but found 2.", "O(i,j) = A(i,j)"),
    ("O(i) = B(i) O(i) = O(2*i)", "may read its own output `O` only with `=`", "O(2*i)"),
    ("O(i) = B(i) O(i) += O(i) * A(i,j)", "may read its own output `O` only", "O(i)"),
    ("O(i) = 99999999999 * B(i)", "An integer literal does not fit into int32.", "99999999999"),
    ("O(i) = B(i) $ 2", "Unexpected character '$'.", "$"),
]


@pytest.mark.parametrize(("statement", "message", "place"), WRONG)
def test_an_error_names_and_marks_the_problem(statement: str, message: str, place: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        check(body(statement))
    text, line, carets = str(caught.value).split("\n")
    assert message in text
    start = carets.index("^")
    assert line[start : start + carets.count("^")] == place
    assert caught.value.span.text == place  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "Expected `def` but found the end of the source."),
        ("def f(float(N) A) -> (O) { }", "The output `O` is never written."),
        ("def f(A) -> (O) { O = 1 }", "Expected a scalar type but found `A`."),
        ("def f(float(N) A, float A) -> (O) { O = 1 }", "`A` is already defined."),
        ("def f(float(A) A) -> (O) { O = 1 }", "`A` is already defined as a tensor."),
        ("def f(float A) -> (A) { A = 1 }", "`A` is already defined."),
        ("def f(float(N) exp) -> (O) { O(i) = exp(1.0) }", "A subscript must be an integer"),
        ("def f() -> (float(K) O) { O(i) = 1 }", "Undefined variable `K`: the sizes of an output"),
        ("def f() -> (O) { O = 1 } def f() -> (O) { O = 1 }", "`f` is already defined."),
        ("def f(float(N) A) -> (int32(N) O) { O(i) = A(i) }", "a narrower type than float32"),
        ("def f(double(N) A) -> (float O) { O(i) = A(i) }", "a narrower type than float64"),
        ("def f(int32(N) A) -> (uint8 O) { O(i) = A(i) }", "a narrower type than int32"),
        ("def where() -> (O) { O = 1 }", "Expected a name but found `where`."),
        ("def f() -> (O) { O = half(1) }", "Undefined variable `half`"),
    ],
)
def test_error_of_a_whole_definition(source: str, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        check(source)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", "int32"),
        ("1.", "float32"),
        ("1E3", "float32"),
        ("b * 2", "int32"),
        ("u8 + i8", "int8"),
        ("u64 * i32", "int64"),
        ("u8 + u16", "uint16"),
        ("i64 + h", "float16"),
        ("h + bf", "float32"),
        ("h * 0.5", "float32"),
        ("i64 * 0.5", "float32"),
        ("d + 1", "float64"),
        ("i32 < d", "bool"),
        ("b ? i8 : i64", "int64"),
        ("exp(i32)", "float32"),
        ("exp(h)", "float32"),
        ("pow(d, i32)", "float64"),
        ("max(u8, u16)", "uint16"),
        ("!b || i8 == 1", "bool"),
        ("uint8(d)", "uint8"),
    ],
)
def test_types_join(value: str, expected: str) -> None:
    parameters = "bool b, uint8 u8, uint16 u16, uint64 u64, int8 i8, int32 i32, int64 i64"
    source = f"def f({parameters}, float16 h, bfloat16 bf, double d) -> (O) {{ O = {value} }}"
    assert check(source)[0].outputs[0].type.name == expected


def test_numbers_lex_the_longest_and_a_size_is_no_fraction() -> None:
    source = "def f(float(N,M) A) -> (O) { O(i,j)=A(i,j)*A.0*.5e1-1.*2 } # the end"
    assert check(source)[0].statements[0].operator == "="


def test_library_calls_are_parsed_checked_and_ignored() -> None:
    source = "def f(float(M,K) A, float(K,N) B) -> (C) {{ C(m,n) +=! A(m,k)*B(k,n) <=> gemm({}) }}"
    assert check(source.format("A, B, 1"))[0] == check(source.format("A, B, m"))[0]
    with pytest.raises(DefinitionError, match="Undefined variable `X`"):
        check(source.format("X(m)"))


def test_names_given_by_where_are_inlined_and_may_use_earlier_ones() -> None:
    first = "def f(float(N) A) -> (O) { O(i) = b where a = A(i) + 1, b = a * a }"
    second = "def f(float(N) A) -> (O) { O(i) = (A(i) + 1) * (A(i) + 1) }"
    assert check(first)[0].statements[0].value == check(second)[0].statements[0].value


def test_text_that_would_take_for_ever_stops_at_a_limit() -> None:
    doubling = ", ".join(f"a{n + 1} = a{n} + a{n}" for n in range(25))
    bombs = {
        "more than 50000 operations": f"O(i) = a25 where a0 = A(i), {doubling}",
        "nested more than 64 deep": f"O(i) = {'(' * 5000}A(i){')' * 5000}",
        "nested more than 64 deep.": f"O(i) = {'-' * 5000}A(i)",
        "nested more than 64 deep once": f"O(i) = {'+'.join(['A(i)'] * 3000)}",
        "more than 24 indices": f"O +=! {'+'.join(f'i{n}' for n in range(30))}",
        "more than 512 statements": "O(i) = A(i) " * 600,
        "more than 128 characters": f"O({'i' * 500}) = 1",
        "more than 16 dimensions": f"O({','.join(f'i{n}' for n in range(30))}) = 1",
        "characters; at most": f"O(i) = A(i) #{' ' * 300_000}",
    }
    for message, text in bombs.items():
        with pytest.raises(DefinitionError) as caught:
            check(f"def f(float(N) A) -> (O) {{ {text} }}")
        assert message in str(caught.value)

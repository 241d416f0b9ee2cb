"""Ranges, shapes and preconditions, and the errors that sizes bring."""

from __future__ import annotations

import itertools
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.errors import KernelInputError, RangeInferenceError
from graphnet_datasets.tensor_comprehensions.language import (
    PreconditionWarning,
    check,
    infer,
    instantiate,
)


def found(source: str, *shapes: tuple[int, ...], **options):
    return infer(check(source)[0], shapes, **options)


def test_a_convolution_shrinks_by_its_kernel() -> None:
    source = "def f(float(N) B, float(K) W) -> (O) { O(i) +=! B(i+k) * W(k) }"
    result = found(source, (10,), (3,))
    assert result.instance.statements[0].box == {"i": (0, 8), "k": (0, 3)}
    assert dict(result.ranges[0])["i"] == "0 : -K + N + 1"
    assert result.symbolic_shapes == (("O", ("-K + N + 1",)),)


@pytest.mark.parametrize(
    ("statement", "shapes", "box"),
    [
        ("O(i) = A(2*i)", [(11,), (9,)], {"i": (0, 6)}),
        ("O(i) = A(i) * B(i)", [(11,), (9,)], {"i": (0, 9)}),
        ("O(i) = A(i-1)", [(4,), (9,)], {"i": (1, 5)}),
        ("O(i) = A(N-1-i)", [(4,), (9,)], {"i": (0, 4)}),
        ("O(i) = A(i/3)", [(4,), (9,)], {"i": (0, 12)}),
        ("O(i) = A(i) where i in 1:N-1", [(4,), (9,)], {"i": (1, 3)}),
        ("O(i) = A(i+2) where exists B(i+4)", [(10,), (9,)], {"i": (-2, 5)}),
        ("O(i) +=! A(i*2+k) where k in 0:3", [(10,), (9,)], {"i": (0, 4), "k": (0, 3)}),
        ("O(i) = i >= 1 ? A(i-1) : 0", [(4,), (9,)], {"i": (1, 5)}),
        ("O(i) = B(i) + (i >= 1 ? A(i-1) : 0)", [(8,), (9,)], {"i": (0, 9)}),
        ("O(i,j) = i * j where i in 0:2, j in -1:1", [(1,), (1,)], {"i": (0, 2), "j": (-1, 1)}),
        ("O(i) = 1.0 where i in 0:min(A.0, B.0)/2", [(9,), (6,)], {"i": (0, 3)}),
    ],
)
def test_ranges(statement: str, shapes: list, box: dict) -> None:
    source = f"def f(float(N) A, float(M) B) -> (O) {{ {statement} }}"
    assert found(source, *shapes).instance.statements[0].box == box


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("O(i) +=! S(i+j,i+j)", "Could not infer the range of `i`, `j` from the accesses."),
        ("O(i,j) = S(10+i-j,i+j)", "Could not infer the range of `i`, `j`"),
        ("O(i) = A(n*i)", "Could not infer the range of `i`"),
        ("O(i) = 1.0", "Could not infer the range of `i` from the accesses. Set it with `where i"),
        ("O(i) = A(i) where i in 3:3", "The range of `i` is empty: 3:3."),
        ("O(i) +=! A(i+k) * B(k)", "The range of `i` is empty: 0:-1"),
        ("O(i) = A(i) O(i) = A(i+1)", "All statements that write a tensor need the same ranges"),
        ("O(i) = A(i) where i in 0:n", "must consist of sizes, numbers and scalar inputs"),
        ("O(i) = A(i) where i in 0:T.0, exists A(i)", "Undefined variable `T`"),
    ],
)
def test_errors_of_ranges_point_at_the_text(statement: str, message: str) -> None:
    source = f"def f(float(N) A, float(M) B, float(P,P) S, int32 n) -> (O) {{ {statement} }}"
    with pytest.raises(ValueError, match=r"(?s)\^") as caught:
        found(source, (4,), (6,), (5, 5), ())
    assert message in str(caught.value)


def test_several_statements_must_agree_on_their_output() -> None:
    source = "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) O(i) += B(i) }"
    assert found(source, (4,), (4,)).instance.outputs[0].shape == (4,)
    with pytest.raises(RangeInferenceError, match=r"already written as 0:4, but this .* 0:5"):
        found(source, (4,), (5,))


def test_declared_sizes_of_an_output_bound_it() -> None:
    source = "def f(float(N) A) -> (float(N,3) O) { O(i,j) = 1.0 }"
    assert found(source, (4,)).instance.outputs[0].shape == (4, 3)
    with pytest.raises(RangeInferenceError, match=r"declared as 0:4, but this .* writes -1:3"):
        found("def f(float(N) A) -> (float(N) O) { O(i) = A(i+1) }", (4,))


def test_preconditions_warn_raise_or_are_limited() -> None:
    source = "def f(float(N) A, float(M) C, float(K) D) -> (O) { O(i) +=! A(i)*C(i+j)*D(j) }"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not found(source, (4,), (6,), (3,)).instance.preconditions
    with pytest.warns(PreconditionWarning, match=r"0 <= i\+j < M \(= 5\), which does not hold"):
        result = found(source, (4,), (5,), (3,))
    assert result.instance.preconditions[0].is_violated
    with pytest.raises(RangeInferenceError, match="which does not hold"):
        found(source, (4,), (5,), (3,), strict=True)
    limited = found(source, (4,), (5,), (3,), check_bounds=True)
    assert [each.checks for each in limited.instance.statements[0].loads] == [
        ("",),
        ("clamp",),
        ("",),
    ]


def test_guarded_loads_are_marked() -> None:
    source = "def f(float(N) A) -> (O) { O(i) = i >= 2 ? A(i-2) : A(i) where i in 0:N }"
    first, second = found(source, (5,)).instance.statements[0].loads
    assert (first.is_guarded, second.is_guarded) == (True, False)


def test_constants_make_scalar_inputs_part_of_the_definition() -> None:
    source = "def f(float(N) A, int32 d) -> (O) { O(i) = A(i+d) where i in 0:N-d }"
    result = found(source, (10,), constants={"d": 3})
    assert result.instance.statements[0].box == {"i": (0, 7)}
    assert [each.name for each in result.instance.inputs] == ["A"]
    other = found(source, (10,), constants={"d": 2})
    assert result.instance.canonical_text != other.instance.canonical_text
    with pytest.raises(KernelInputError, match="not a scalar integer input"):
        found(source, (10,), constants={"A": 3})
    with pytest.raises(KernelInputError, match="does not fit into int32"):
        found(source, (10,), constants={"d": 1 << 40})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(4, 5)], "takes 2 inputs (A, B), got 1."),
        ([(4,), (5, 3)], "The input `A` of `f` has 2 dimensions but got 1: (4,)."),
        ([(4, 5), (6, 3)], "Dimension 0 of the input `B` is 6, but must be `K`, which is 5"),
        ([(4, 5), (5, 2)], "Dimension 1 of the input `B` is 2, but must be 3."),
        ([(4, -5), (-5, 3)], "Dimension 1 of `A` is -5;"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes: list, message: str) -> None:
    source = "def f(float(M,K) A, float(K,3) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    with pytest.raises(KernelInputError) as caught:
        found(source, *shapes)
    assert str(caught.value).startswith(message) or message in str(caught.value)


@pytest.mark.parametrize("strides", [(1, 2), (0, 1), (2, 1), (-5, 1), (5,)])
def test_strides_that_overlap_are_refused(strides: tuple[int, ...]) -> None:
    source = "def f(float(N,M) A) -> (O) { O(i,j) = A(i,j) }"
    with pytest.raises(KernelInputError, match="stride"):
        found(source, (3, 5), strides=[strides])


def test_transposed_and_padded_strides_are_taken() -> None:
    source = "def f(float(N,M) A) -> (O) { O(i,j) = A(i,j) }"
    for strides in ((1, 3), (7, 1), (20, 4)):
        assert found(source, (3, 5), strides=[strides]).instance.inputs[0].strides == strides


def test_sizes_beyond_all_memory_stop() -> None:
    source = "def f(float(N) A) -> (O) { O(i,j,k,l) = A(i)*A(j)*A(k)*A(l) }"
    with pytest.raises(RangeInferenceError, match="elements; at most"):
        found(source, (60_000,))
    source = "def f(float(N) A) -> (O) { O +=! A(i)*A(j)*A(k)*A(l) }"
    with pytest.raises(RangeInferenceError, match=r"evaluated at .* points, more than"):
        found(source, (60_000,))


def test_canonical_text_forgets_names_and_is_a_definition() -> None:
    first = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    second = "def g(float(Q,R) X,float(R,S) Y)->(Z){Z(a,b)+=!X(a,c)*Y(c,b)} # other names"
    texts = {found(each, (4, 5), (5, 6)).instance.canonical_text for each in (first, second)}
    assert len(texts) == 1
    (text,) = texts
    again = found(text, (4, 5), (5, 6)).instance
    assert again.canonical_text == text
    third = first.replace("+=!", "max=!")
    assert found(third, (4, 5), (5, 6)).instance.canonical_text != text


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(-3, 3), st.integers(0, 4), st.integers(3, 12)),
        min_size=1,
        max_size=3,
    )
)
def test_a_range_is_the_largest_in_which_every_access_is_inside(accesses: list) -> None:
    """Against enumeration: `A_n(a*i + b*k + c)` for all `k` in 0:3."""
    parameters = ", ".join(f"float(N{n}) A{n}" for n in range(len(accesses)))
    value = " + ".join(f"A{n}({a}*i + {b}*k + {c})" for n, (a, b, c, _) in enumerate(accesses))
    source = f"def f({parameters}) -> (O) {{ O(i) +=! {value} where k in 0:3 }}"
    shapes = [(size,) for *_, size in accesses]

    def is_inside(i: int) -> bool:
        return all(
            0 <= a * i + b * k + c < size
            for (a, b, c, size), k in itertools.product(accesses, range(3))
        )

    expected = [i for i in range(-40, 40) if is_inside(i)]
    definition = check(source)[0]
    if not expected:
        with pytest.raises(RangeInferenceError, match="empty"):
            instantiate(definition, shapes)
        return
    begin, end = instantiate(definition, shapes).statements[0].box["i"]
    assert list(range(begin, end)) == expected

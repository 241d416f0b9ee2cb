"""What a worker makes of an entry."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="needs the extra `builder`")

from builder.catalog import parse_line
from builder.provenance import check_hashes
from builder.worker import capture_entry
from graphnet_datasets.errors import CaptureError

LINE = (
    "transformers/x | nlp | transformers | BertModel | vocab_size=100 num_hidden_layers=1 "
    "hidden_size=32 num_attention_heads=2 | input_ids=ids(1,8; 0, {high}) | float32 | eval | |"
)


def test_tokens_beyond_the_vocabulary_are_refused_though_nothing_is_run() -> None:
    (sample,) = capture_entry(parse_line(LINE.format(high=100)))
    assert sample.num_ops > 0
    with pytest.raises(CaptureError) as caught:
        capture_entry(parse_line(LINE.format(high=100_000)))
    assert "but it is an index in [0, 99]" in str(caught.value)
    assert "Choose other inputs for `transformers/x`" in str(caught.value)


def test_two_captures_of_a_model_have_the_same_hash() -> None:
    entry = parse_line(LINE.format(high=100))
    first, second = capture_entry(entry), capture_entry(entry)
    check_hashes(first, second)
    with pytest.raises(RuntimeError, match="A second capture has other hashes"):
        check_hashes(first, [*second, *second])

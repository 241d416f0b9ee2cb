"""Parser for `weight_meta.py` and `input_meta.py`, which hold one class of literals per tensor.

The files are parsed with a line grammar, which is several times faster than `ast` and accepts only
literals. Their text is never executed.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np

from ..errors import SourceError
from ..inputs.encoding import FORMATS, encode
from ..json_text import parse_json
from ..sample import Statistics
from ..sample.vocabulary import ITEM_SIZE_BYTES

MAX_META_BYTES = 64 * 2**20
"""Limit of characters. The largest file among 3,477 upstream samples has less than 4 million."""

_ITEM = re.compile(
    r"""class[ ](?P<title>\w+)(?:\(\))?:[ ]*\n
    |[ ]{4}(?P<key>\w+)[ ]=[ ]
        (?P<value>\((?:[^()"\n]|"[^"\n]*"|\n)*\)|\[[^\[\]]*\]|[^\n\[(][^\n]*)\n
    |[ ]*(?:\#[^\n]*)?\n""",
    re.VERBOSE,
)
_TEXT = re.compile(r"\(?\s*\"([^\"\\\n]*)\"\s*\)?\Z|\(?\s*'([^'\\\n]*)'\s*\)?\Z")
_NUMBER = re.compile(
    r"(?:float\([\"'])?(-?(?:\d{1,19}(?:\.\d{0,40})?|\.\d{1,40})(?:e[+-]?\d{1,4})?|[+-]?(?:inf|nan))"
    r"(?:[\"']\))?\Z"
)
_SHAPE = re.compile(r"[\[(]([0-9, \n]{0,2000})[\])]\Z")
_SIZE = re.compile(r"[0-9]{1,19}\Z")
_SPECIAL = re.compile(r"float\([\"']([+-]?(?:inf|nan))[\"']\)|\bTrue\b|\bFalse\b")
_PLAIN = {"True": "true", "False": "false", "inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}

_KEYS = frozenset(
    "name original_name shape dtype device mean std min_val max_val data".split()  # noqa: SIM905
)
_NUMPY_DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in ITEM_SIZE_BYTES
    if name in np.sctypeDict and not name.startswith("complex")
}
_PLAIN_TYPES = frozenset((int, float, bool))


@dataclasses.dataclass(frozen=True, slots=True)
class TensorMeta:
    """The metadata of one tensor in a GraphNet directory.

    `data` has the format of `Input.data`. `line` is the line of the class in its file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    device: str = "cpu"
    statistics: Statistics | None = None
    data: bytes | None = dataclasses.field(default=None, repr=False)
    original_name: str = ""
    line: int = 0


def parse_tensor_metadata(text: str, file: str = "weight_meta.py") -> dict[str, TensorMeta]:
    """Return the tensors that a metadata file declares, by name, in the file's order.

    `file` is the path used in error messages.

    Raises:
        SourceError: the text is not a sequence of classes of literals, or a class is incomplete.

    >>> metadata = parse_tensor_metadata('''class Program_weight_tensor_meta_x:
    ...     name = "x"
    ...     shape = [2]
    ...     dtype = "torch.int64"
    ...     data = [1, 2]
    ... ''')
    >>> metadata["x"].shape, metadata["x"].data[:8]
    ((2,), b'\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00')
    """
    if len(text) > MAX_META_BYTES:
        raise SourceError(
            f"`{file}` has {len(text)} characters; at most {MAX_META_BYTES} are accepted."
        )
    text = text.rstrip() + "\n"
    metadata: dict[str, TensorMeta] = {}
    fields: dict[str, tuple[str, int]] | None = None
    title, start, line, position = "", 0, 1, 0
    match = _ITEM.match
    while position < len(text):
        item = match(text, position)
        if item is None:
            excerpt = text[position : position + 60].partition("\n")[0]
            raise _error(
                file,
                _line_of(text, position),
                f"`{excerpt}` is neither a class statement nor an attribute with a literal",
            )
        key = item["key"]
        if key is not None:
            if fields is None or key not in _KEYS or key in fields:
                problem = "is outside a class" if fields is None else "is unknown or repeated"
                raise _error(file, _line_of(text, position), f"the attribute `{key}` {problem}")
            fields[key] = (item["value"], position)
        elif item["title"] is not None:
            if fields is not None:
                _add(metadata, _Reader(text, file, title, start, line, fields).read(), file)
            line += text.count("\n", start, position)
            title, start, fields = item["title"], position, {}
        position = item.end()
    if fields is not None:
        _add(metadata, _Reader(text, file, title, start, line, fields).read(), file)
    return metadata


def _add(metadata: dict[str, TensorMeta], meta: TensorMeta, file: str) -> None:
    if meta.name in metadata:
        raise _error(file, meta.line, f"the tensor `{meta.name[:80]}` is declared twice")
    metadata[meta.name] = meta


class _Reader:
    """Converts the attributes of one class to a `TensorMeta`."""

    def __init__(
        self,
        text: str,
        file: str,
        title: str,
        start: int,
        line: int,
        fields: dict[str, tuple[str, int]],
    ) -> None:
        self.text = text
        self.file = file
        self.title = title
        self.start = start
        self.line = line
        self.fields = fields

    def read(self) -> TensorMeta:
        for key in ("name", "shape", "dtype"):
            if key not in self.fields:
                raise self._error(self.start, f"the class `{self.title[:80]}` has no `{key}`")
        dtype = self._string("dtype").removeprefix("torch.").removeprefix("paddle.")
        if dtype not in ITEM_SIZE_BYTES:
            raise self._error(self.fields["dtype"][1], f"`{dtype[:40]}` is not a known dtype")
        shape = self._shape()
        mean, std, low, high = map(self._number, ("mean", "std", "min_val", "max_val"))
        is_known = not (mean is None and std is None and low is None and high is None)
        return TensorMeta(
            name=self._string("name"),
            dtype=dtype,
            shape=shape,
            device=self._string("device") if "device" in self.fields else "cpu",
            statistics=Statistics(mean, std, low, high) if is_known else None,
            data=self._data(dtype, shape),
            original_name=self._string("original_name") if "original_name" in self.fields else "",
            line=self.line,
        )

    def _string(self, key: str) -> str:
        value, position = self.fields[key]
        if value == "None":
            return ""
        match = _TEXT.match(value)
        if match is None:
            raise self._error(position, f"`{key}` is `{value[:40]}`, but plain text is expected")
        return match[1] if match[1] is not None else match[2]

    def _shape(self) -> tuple[int, ...]:
        value, position = self.fields["shape"]
        match = _SHAPE.match(value)
        parts = [part.strip() for part in match[1].rstrip(" \n,").split(",")] if match else ["?"]
        if parts == [""]:
            return ()
        if not all(map(_SIZE.match, parts)):
            raise self._error(position, f"`shape` is `{value[:40]}`, not a list of integers")
        return tuple(map(int, parts))

    def _number(self, key: str) -> float | None:
        value, position = self.fields.get(key, ("None", 0))
        if value == "None":
            return None
        match = _NUMBER.match(value)
        if match is None:
            raise self._error(position, f"`{key}` is `{value[:40]}`, but a number is expected")
        number = float(match[1])
        # The standard deviation of a single element is recorded as NaN, which means unknown.
        return None if math.isnan(number) else number

    def _data(self, dtype: str, shape: tuple[int, ...]) -> bytes | None:
        value, position = self.fields.get("data", ("None", 0))
        if value == "None":
            return None
        elements = self._elements(value, position)
        expected = math.prod(shape)
        if len(elements) != expected:
            raise self._error(
                position,
                f"`data` has {len(elements)} elements where the shape {list(shape)} has {expected}",
            )
        try:
            return pack_elements(elements, dtype)
        except (OverflowError, TypeError, ValueError) as error:
            raise self._error(position, f"`data` contains elements that are not {dtype}") from error

    def _elements(self, value: str, position: int) -> list[Any]:
        plain = value.rstrip("] \n").rstrip(",") + "]"
        elements = parse_json(plain)
        if elements is None:
            plain = _SPECIAL.sub(lambda match: _PLAIN[(match[1] or match[0]).lstrip("+")], plain)
            elements = parse_json(plain)
        if type(elements) is not list or not _PLAIN_TYPES.issuperset(map(type, elements)):
            raise self._error(position, "`data` is not a flat list of numbers")
        return elements

    def _error(self, position: int, problem: str) -> SourceError:
        return _error(self.file, _line_of(self.text, position), problem)


def pack_elements(elements: list[Any], dtype: str) -> bytes:
    """Return numbers as the little-endian bytes of `dtype`, rounded as a framework would round
    them.

    Raises:
        OverflowError, TypeError, ValueError: an element is not representable in `dtype`.

    >>> pack_elements([1.0, -2.0], "bfloat16").hex()
    '803f00c0'
    """
    if dtype in FORMATS:
        patterns = encode(np.asarray(elements, np.float32), dtype)
        return patterns.astype(patterns.dtype.newbyteorder("<")).tobytes()
    if dtype not in _NUMPY_DTYPES:
        raise TypeError(f"Elements of {dtype} cannot be written as numbers.")
    if any(type(item) is float for item in elements) and not dtype.startswith("float"):
        raise TypeError(f"An element of {dtype} is a float.")
    return np.array(elements, _NUMPY_DTYPES[dtype]).tobytes()


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _error(file: str, line: int, problem: str) -> SourceError:
    return SourceError(
        f"`{file}`, line {line}: {problem}. A metadata file contains one class of literals per "
        "tensor. Correct the file or skip the sample."
    )

"""Rows, records, files and folders made wrong by chance."""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TEXTS = (
    "", "\0", "../../escape", "/etc/passwd", "\u202eevil", "\x1b[31m", "a" * 300, "{}", "[", "null",
    "float8_e4m3fn", "complex64", "torch.load", "os.system", "torch.ops.aten.split.Tensor",
    "s0", "s0*s0", "9**9**9", "-1", "nan", "1e400", "input", "parameter", "constant", "symbol",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 7, 63, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -1.0, 1e-300, 1e300, float("inf"), float("-inf"), float("nan"))
DTYPES = (
    "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64",
    "complex128", "int64", "int32", "int8", "uint8", "bool", "quint8", "qint32", "complex32",
)  # fmt: skip
SIZES = (0, 1, 2, 3, 5, 64, 1000, 2**31, 2**40, -1)


def mutate_row(
    row: dict[str, Any], chance: random.Random, others: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return a row with one to four changes; values may come from `others`.

    >>> row = {"id": "a/b", "inputs": [{"shape": [2, 3]}]}
    >>> mutate_row(row, random.Random(0), [row]) == row, row["id"]
    (False, 'a/b')
    """
    row = copy.deepcopy(row)
    for _ in range(chance.choice((1, 1, 2, 4))):
        holder, key = _place(row, chance)
        if holder is None:
            continue
        kind = chance.random()
        if kind < 0.15:
            other, other_key = _place(chance.choice(list(others)), chance)
            if other is not None:
                holder[key] = copy.deepcopy(other[other_key])
        elif kind < 0.25:
            _remove_or_repeat(holder, key, chance)
        else:
            holder[key] = _changed(holder[key], key, chance)
    return row


def _place(value: Any, chance: random.Random) -> tuple[Any, Any]:
    """Return a list or dictionary inside of `value` and one of its keys."""
    holder, key = None, None
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        holder, key = value, chance.choice(keys)
        value = holder[key]
        if isinstance(value, dict | list) and chance.random() < 0.08:
            break
    return holder, key


def _remove_or_repeat(holder: Any, key: Any, chance: random.Random) -> None:
    if isinstance(holder, dict):
        del holder[key]
    elif chance.random() < 0.5:
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        del holder[key]


def _changed(value: Any, key: Any, chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return chance.choice((None, [], {}, True, "x", 1.5, -1, b"\0\1"))
    if key in ("shape", "stride") and (value is None or isinstance(value, list)):
        length = len(value) if value and chance.random() < 0.8 else chance.randrange(6)
        sizes = (0, 0, 0, 1, 2, 2**40) if key == "stride" else SIZES
        return [chance.choice(sizes) for _ in range(length)]
    if key == "dtype":
        return chance.choice(DTYPES)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chance.choice((-1, 1)) if chance.random() < 0.4 else chance.choice(NUMBERS)
    if isinstance(value, float):
        return chance.choice((*FLOATS, value * 1e6, -value))
    if isinstance(value, str):
        return _changed_text(value, chance)
    if isinstance(value, bytes):
        return mutate_bytes(value, chance)
    return chance.choice((None, *NUMBERS[:4], *FLOATS[:2], *TEXTS[:4]))


def _changed_text(text: str, chance: random.Random) -> str:
    if chance.random() < 0.3:
        return chance.choice(TEXTS)
    letters = list(text)
    for _ in range(chance.choice((1, 1, 3))):
        at = chance.randrange(len(letters) + 1)
        letters[at : at + chance.choice((0, 1, 1, 4))] = chance.choice(
            ("", "0", "9", "-", ",", "[", "]", "{", "}", '"', ".", "_", "\n", str(2**62), "{}")
        )
    return "".join(letters)


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with a few of them changed, cut off, repeated or removed.

    >>> mutate_bytes(b"graph", random.Random(1)) != b"graph"
    True
    """
    array = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        kind, at = chance.random(), chance.randrange(len(array) + 1)
        if kind < 0.5 and at < len(array):
            array[at] ^= 1 << chance.randrange(8)
        elif kind < 0.65:
            del array[at:]
        elif kind < 0.8:
            array[at:at] = array[at : at + chance.choice((1, 8, 512))] or b"\0"
        else:
            del array[at : at + chance.choice((1, 4, 64))]
    return bytes(array) if bytes(array) != data else data + b"\0"


def mutate_folder(folder: Path, chance: random.Random) -> None:
    """Change files of a folder in place: their contents, names, or what they are."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        if not files:
            return
        path, kind = chance.choice(files), chance.random()
        if path.is_symlink():
            continue
        if kind < 0.75:
            data = path.read_bytes()
            is_text = path.suffix in (".json", ".py", ".txt", ".md", ".jsonl", ".log")
            if is_text and chance.random() < 0.7:
                text = _changed_text(data.decode(errors="replace"), chance)
                path.write_bytes(text.encode(errors="replace"))
            else:
                path.write_bytes(mutate_bytes(data, chance))
        elif kind < 0.85:
            path.unlink()
            if chance.random() < 0.4:
                path.symlink_to(chance.choice(("/etc/passwd", "..", "/dev/zero", path.name)))
        elif kind < 0.93:
            path.rename(path.with_name(chance.choice(("model.py", "x.json", "input_meta.py"))))
        else:
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                (path.parent / chance.choice(("deep/er", "graph_net.json"))).mkdir(parents=True)

"""The number of registers that a compiled kernel uses, read from its ELF file."""

from __future__ import annotations

import struct

_SECTION_HEADER = struct.Struct("<IIQQQQ")
_ATTRIBUTE = struct.Struct("<BBH")
_HAS_SIZED_VALUE = 4
"""The format of attributes with a value, whose length is in the header."""
_REGISTER_COUNT, _FRAME_SIZE = 0x2F, 0x11
"""Attributes of `.nv.info`; each value is the symbol of a function and a number."""
_BYTES_PER_WORD = 4


def count_registers(cubin: bytes) -> tuple[int, int]:
    """Return the registers per thread and the spilled 4-byte words per thread of a cubin.

    These are the figures that the driver reports for a loaded kernel. For several functions, they
    are the maxima.
    """
    largest = {_REGISTER_COUNT: 0, _FRAME_SIZE: 0}
    for content in _sections(cubin, b".nv.info"):
        position = 0
        while position < len(content):
            form, kind, length = _ATTRIBUTE.unpack_from(content, position)
            if form == _HAS_SIZED_VALUE and kind in largest:
                (number,) = struct.unpack_from("<I", content, position + _ATTRIBUTE.size + 4)
                largest[kind] = max(largest[kind], number)
            position += _ATTRIBUTE.size + (length if form == _HAS_SIZED_VALUE else 0)
    return largest[_REGISTER_COUNT], largest[_FRAME_SIZE] // _BYTES_PER_WORD


def _sections(elf: bytes, name: bytes) -> list[bytes]:
    """Return the contents of the sections of a 64-bit little-endian ELF file with this name."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [_SECTION_HEADER.unpack_from(elf, table + i * entry_size) for i in range(count)]
    names = headers[names_index][4]
    return [
        elf[offset : offset + size]
        for name_offset, _, _, _, offset, size in headers
        if elf.startswith(name + b"\0", names + name_offset)
    ]

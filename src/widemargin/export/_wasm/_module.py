"""What a WebAssembly file is made of, as far as one section at its end goes."""

from __future__ import annotations

_CUSTOM_SECTION = b"\x00"


def with_section(module: bytes, name: str, content: bytes) -> bytes:
    """Return a module with a custom section after all others, which engines hand to the page."""
    label = name.encode()
    body = _number(len(label)) + label + content
    return module + _CUSTOM_SECTION + _number(len(body)) + body


def _number(value: int) -> bytes:
    """Return a number in LEB128: seven bits a byte, the least first, the top bit for "more"."""
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])

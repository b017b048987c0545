"""Fields of protobuf messages as bytes, for messages that are joined of parts and never built as such."""


def varint(number: int) -> bytes:
    """A number as protobuf encodes it: seven bits in each byte, lowest first."""
    return _VARINTS[number] if number < len(_VARINTS) else _varint(number)


def field_of(tag: bytes, value: bytes) -> bytes:
    """A field of bytes, or of a message that is encoded already, with the tag `tag`."""
    return b"".join((tag, varint(len(value)), value))


def text_field(tag: bytes, value: str) -> bytes:
    """A field of text with the tag `tag`."""
    return field_of(tag, value.encode())


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


# Of names, texts and versions, of which there are thousands in one response.
_VARINTS = tuple(map(_varint, range(4_096)))

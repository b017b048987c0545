"""Stored bytes again in canonical form.

An upgrade of protobuf may order bytes anew; equal content must stay equal all the same (decisions D24).
"""

from google.protobuf.any_pb2 import Any as AnyProto

from xdscore.schema.shapes import ANY
from xdscore.schema.walk import AnyMessage, children, unpack


def canonical(any_bytes: bytes) -> bytes:
    """The bytes of a stored google.protobuf.Any as this process's protobuf serialises it deterministically, with every
    Any inside it.

    Raises DecodeError when the bytes are no Any. What is inside an Any of an unknown type stays as it is.
    """
    stored = AnyProto.FromString(any_bytes)
    _settle(stored)
    return stored.SerializeToString(deterministic=True)


def _settle(message: AnyMessage) -> None:
    """Serialise every Any below `message` deterministically, innermost first."""
    if message.DESCRIPTOR.full_name == ANY:
        inner = unpack(message)
        if inner is not None:
            _settle(inner)
            message.value = inner.SerializeToString(deterministic=True)
        return
    for _, child in children(message):
        _settle(child)

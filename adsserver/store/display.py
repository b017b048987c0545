"""Content as it may be shown to people who read status: without its secrets (protocol.md K2, reliability S5)."""

from collections import OrderedDict
from typing import Any

import structlog
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from udpa.annotations import sensitive_pb2

from adsserver.ports import Contents
from xdscore.schema import redact
from xdscore.schema.shapes import ANY
from xdscore.schema.types_registry import class_of, descriptor_of, kept, message_name
from xdscore.snapshot import Content

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

# Enough for a large environment; beyond it the content used longest ago is looked at again.
_MAX_SHOWN_BYTES = 32 * 1024 * 1024
# Any in Any in Any: deeper than this nothing is stored (reliability (e): 8). Whatever is deeper is treated as secret.
_MAX_DEPTH = 100
# Carry a message as free JSON: whether that is secret only `redact` can tell.
_TYPED_STRUCTS = frozenset({"xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"})


class Display:
    """Makes contents free of their secrets, for display, and remembers the results. For one thread."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._shown: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0

    def any_bytes(self, content: Content) -> bytes:
        """The serialised Any of this content without its secrets; empty when the content, or what is secret in it,
        cannot be read.
        """
        shown = self._shown.get(content.blob)
        if shown is not None:
            self._shown.move_to_end(content.blob)
            return shown
        shown = self._show(content)
        self._shown[content.blob] = shown
        self._bytes += len(shown)
        while self._bytes > _MAX_SHOWN_BYTES:
            self._bytes -= len(self._shown.popitem(last=False)[1])
        return shown

    def _show(self, content: Content) -> bytes:
        try:
            data = self._contents.any_bytes(content)
            message = AnyMessage.FromString(data)
            if not may_hold_secrets(message):
                return data
            shown: bytes = redact(message).SerializeToString(deterministic=True)
        except (KeyError, DecodeError, TypeError, ValueError, RecursionError) as error:
            # Of content that cannot be made safe nothing is shown; the error's text might quote it.
            log.warning("status.content_not_shown", version=content.version, error=type(error).__name__)
            return b""
        return shown


def may_hold_secrets(message: Any, depth: int = 0) -> bool:
    """Whether a sensitive field may be filled in anywhere inside the message. True also where it nests too deeply to
    look; `depth` is the depth reached so far.

    A quick look, fifty times as fast as `redact`, which decides what exactly is hidden. Raises DecodeError for an Any
    whose bytes are not of its type.
    """
    descriptor: Any = message.DESCRIPTOR
    if depth > _MAX_DEPTH or descriptor.full_name in _TYPED_STRUCTS:
        return True
    if descriptor.full_name == ANY:
        held = descriptor_of(message_name(message.type_url))
        # Of what is not known nobody says that it is no secret; `redact` hides it.
        return held is None or may_hold_secrets(class_of(held).FromString(message.value), depth + 1)
    sensitive, nested = _marks(descriptor)
    for field, value in message.ListFields():
        if field.number in sensitive:
            return True
        if field.number in nested:
            values = nested[field.number](value)
            if any(may_hold_secrets(each, depth + 1) for each in values):
                return True
    return False


def _one(value: Any) -> tuple[Message, ...]:
    return (value,)


def _list(value: Any) -> tuple[Message, ...]:
    return tuple(value)


def _map(value: Any) -> tuple[Message, ...]:
    return tuple(value.values())


@kept
def _marks(descriptor: Descriptor) -> tuple[frozenset[int], dict[int, Any]]:
    """The numbers of a message type's sensitive fields; and, for each other field that holds messages, a function that
    returns those in it.
    """
    sensitive = frozenset(field.number for field in descriptor.fields if _is_sensitive(field))
    nested: dict[int, Any] = {}
    for field in descriptor.fields:
        held = field.message_type
        if held is None or field.number in sensitive:
            continue
        if held.GetOptions().map_entry:
            if held.fields_by_name["value"].message_type is not None:
                nested[field.number] = _map
        else:
            nested[field.number] = _list if field.is_repeated else _one
    return sensitive, nested


def _is_sensitive(field: FieldDescriptor) -> bool:
    options: Any = field.GetOptions()
    return bool(options.Extensions[sensitive_pb2.sensitive])

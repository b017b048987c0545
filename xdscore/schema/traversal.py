"""Every message of a resource, with its path: through fields, lists, maps, Anys, and Structs that stand for messages.

What looks at content rather than at rules walks with this, so that nothing is overlooked because of where it is nested
(reliability threat 20). Parents come before what they hold.
"""

from collections.abc import Iterator

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor

from xdscore.findings import Finding
from xdscore.schema.codes import TYPE_UNKNOWN
from xdscore.schema.content_policy import DEFAULT_POLICY, ContentPolicy
from xdscore.schema.convert import Conversion, Depth
from xdscore.schema.positions import Path
from xdscore.schema.shapes import ANY, SPECIAL
from xdscore.schema.types_registry import class_of, descriptor_of, message_name, nearest_types
from xdscore.schema.walk import AnyMessage, children, unpack

# Messages that carry another message as a Struct: {"type_url": …, "value": {…}}.
TYPED_STRUCTS = frozenset({"xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"})
# Envoy finds what reads these by the key of the map, and fills the message it wants from a Struct (its
# `translateOpaqueConfig`). Elsewhere the type of an Any says who reads it; only plugins read a Struct, as data.
_CLUSTER = "envoy.config.cluster.v3.Cluster"
_OPTIONS = "typed_extension_protocol_options"


def everything_in(message: AnyMessage, path: Path = ()) -> Iterator[tuple[Path, AnyMessage]]:
    """`message` and every message below it, each with its path. A message inside an Any has the Any's own path, as in
    JSON.
    """
    name = message.DESCRIPTOR.full_name
    if name == ANY:
        inner = unpack(message)
        if inner is not None:
            held = inner.DESCRIPTOR.full_name
            yield from everything_in(inner, (*path, "value") if held in SPECIAL else path)
        return
    if name in SPECIAL:
        return
    yield path, message
    if name in TYPED_STRUCTS:
        inner = _message_of(message)
        if inner is not None:
            yield from everything_in(inner, (*path, "value"))
        return
    for below, child in children(message):
        yield from everything_in(child, path + below)


def unreadable_in(message: AnyMessage, path: Path, policy: ContentPolicy) -> Iterator[tuple[Path, Finding]]:
    """Findings about parts of `message` that cannot be looked into: a TypedStruct of an unknown type, or whose content
    is not of its type, and JSON of which only a key of the manifest says what it is. They read like findings about an
    Any (threat 20).
    """
    if message.DESCRIPTOR.full_name == _CLUSTER:
        yield from _untyped_options(message, path)
    if message.DESCRIPTOR.full_name not in TYPED_STRUCTS:
        return
    url, descriptor = message.type_url, _type_of(message)
    if descriptor is None:
        close = nearest_types(url) if url else ()
        hint = f"Did you mean {' or '.join(close)}?" if close else ""
        place = (*path, "type_url") if url else path
        yield place, TYPE_UNKNOWN.finding("", hint=hint, name=message_name(url))
        return
    for below, finding in _read(message, descriptor, policy)[1]:
        yield (*path, "value", *below), finding


def _untyped_options(cluster: AnyMessage, path: Path) -> Iterator[tuple[Path, Finding]]:
    for key, packed in sorted(getattr(cluster, _OPTIONS).items()):
        name = message_name(packed.type_url)
        if name in SPECIAL:
            hint = "Write the message itself, with its own '@type'."
            yield (*path, _OPTIONS, key, "@type"), TYPE_UNKNOWN.finding("", hint=hint, name=name)


def _message_of(typed_struct: AnyMessage) -> AnyMessage | None:
    """The message that the Struct of a TypedStruct stands for, without what cannot be read of it; None when its type is
    unknown.
    """
    descriptor = _type_of(typed_struct)
    return _read(typed_struct, descriptor, DEFAULT_POLICY)[0] if descriptor is not None else None


def _type_of(typed_struct: AnyMessage) -> Descriptor | None:
    """The message type that a TypedStruct names. None when it is unknown, or has a special JSON form, such as Duration,
    which a Struct cannot hold.
    """
    descriptor = descriptor_of(message_name(typed_struct.type_url))
    return None if descriptor is None or descriptor.full_name in SPECIAL else descriptor


def _read(
    typed_struct: AnyMessage, descriptor: Descriptor, policy: ContentPolicy
) -> tuple[AnyMessage, list[tuple[Path, Finding]]]:
    message = class_of(descriptor)()
    conversion = Conversion(policy=policy)
    conversion.fill(message, json_format.MessageToDict(typed_struct.value), (), Depth(), in_any=True)
    return message, conversion.findings

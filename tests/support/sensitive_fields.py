"""Every field that the API marks as sensitive, filled in, in resources of every type that can hold it.

Read off the descriptors, so that a field or a type that the API gains is covered the day it is known.
"""

import base64
import json
import urllib.parse
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from google.protobuf import text_format
from google.protobuf.any_pb2 import Any as AnyProto
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import StringValue
from udpa.annotations import sensitive_pb2

from xdscore.resource_types import RESOURCE_TYPES, TYPE_URL_PREFIX, ResourceType
from xdscore.schema.types_registry import class_of, descriptors, new_message

# Messages in messages: deeper than this no resource type hides its first Any.
_MAX_STEPS = 6


@cache
def sensitive_fields() -> tuple[FieldDescriptor, ...]:
    """Every field that the API marks as sensitive."""
    return tuple(field for each in descriptors().values() for field in each.fields if is_sensitive(field))


def is_sensitive(field: FieldDescriptor) -> bool:
    """Whether the API marks this field as sensitive."""
    options: Any = field.GetOptions()
    return bool(options.Extensions[sensitive_pb2.sensitive])


def filled(field: FieldDescriptor, secret: str) -> Message:
    """A message with nothing but this field set, and the secret in it."""
    message = class_of(field.containing_type)()
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        if value.message_type is None:
            getattr(message, field.name)["k"] = secret
        else:
            _fill(getattr(message, field.name)["k"], secret)
    elif field.message_type is None:
        setattr(message, field.name, secret)
    else:
        held = getattr(message, field.name)
        _fill(held.add() if field.is_repeated else held, secret)
    return message


def _fill(message: Any, secret: str) -> None:
    """Put the secret into a message that is sensitive as a whole."""
    match message.DESCRIPTOR.full_name:
        case "google.protobuf.Any":
            message.Pack(StringValue(value=secret))
        case "google.protobuf.Struct":
            message.update({"nested": [{"k": secret}]})
        case _:
            fields = message.DESCRIPTOR.fields_by_name
            name = next(name for name in ("inline_bytes", "inline_string", "key") if name in fields)
            in_bytes = fields[name].type == FieldDescriptor.TYPE_BYTES
            setattr(message, name, secret.encode() if in_bytes else secret)


def packed(message: Message) -> AnyProto:
    """The message as an Any, in the bytes that are stored of a resource."""
    return AnyProto(
        type_url=TYPE_URL_PREFIX + message.DESCRIPTOR.full_name, value=message.SerializeToString(deterministic=True)
    )


def holding(kind: ResourceType, inner: Message, name: str = "edge") -> Message:
    """A resource of this type with the message in its first Any; the message itself where it is of the type."""
    resource = new_message(kind.message)
    steps = way_to_any(resource.DESCRIPTOR)
    assert steps is not None, kind
    at: Any = resource
    for step in steps:
        held = getattr(at, step.name)
        in_map = step.message_type is not None and step.message_type.GetOptions().map_entry
        at = held["k"] if in_map else held.add() if step.is_repeated else held
    at.MergeFromString(packed(inner).SerializeToString())
    naming = next((each for each in ("name", "cluster_name") if each in resource.DESCRIPTOR.fields_by_name), None)
    if naming is not None:
        setattr(resource, naming, name)
    return resource


@cache
def way_to_any(descriptor: Descriptor) -> tuple[FieldDescriptor, ...] | None:
    """The fields that lead from a message to an Any that is not sensitive itself, by the shortest way."""
    ways: list[tuple[Descriptor, tuple[FieldDescriptor, ...]]] = [(descriptor, ())]
    seen = {descriptor.full_name}
    for at, way in ways:
        if at.full_name == "google.protobuf.Any":
            return way
        for field in at.fields if len(way) < _MAX_STEPS else ():
            held = field.message_type
            if held is not None and held.GetOptions().map_entry:
                held = held.fields_by_name["value"].message_type
            if held is not None and held.full_name not in seen and not is_sensitive(field):
                seen.add(held.full_name)
                ways.append((held, (*way, field)))
    return None


def kinds_with_an_any() -> tuple[ResourceType, ...]:
    """The resource types in which any message can be put."""
    return tuple(kind for kind in RESOURCE_TYPES if way_to_any(new_message(kind.message).DESCRIPTOR) is not None)


def spellings(secret: str) -> dict[str, str]:
    """The spellings in which a text may quote a secret, by what each is called."""
    raw = secret.encode()
    quoted = json.dumps(secret)[1:-1]
    every = "".join(f"\\u{ord(character):04x}" for character in secret)
    lines = [secret[at : at + 20] for at in range(0, len(secret), 20)]
    return {
        "raw": secret,
        "json": json.dumps(secret),
        "json in json": json.dumps(json.dumps({"inline_string": secret})),
        "json, slashes escaped": quoted.replace("/", "\\/"),
        "json, every character escaped": every,
        "text format": text_format.MessageToString(StringValue(value=secret)),
        "single quotes": "'" + secret.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'",
        "python": repr(raw),
        "octal": "".join(f"\\{byte:03o}" for byte in raw),
        "c, hexadecimal": "".join(f"\\x{byte:02x}" for byte in raw),
        "base64": base64.b64encode(raw).decode(),
        "base64, for URLs, without padding": base64.urlsafe_b64encode(raw).decode().rstrip("="),
        "base64, further in": base64.b64encode(b"x" + raw + b"y").decode(),
        "base64, still further in": base64.b64encode(b"xy" + raw).decode(),
        "hexadecimal": raw.hex(),
        "hexadecimal, upper case": raw.hex().upper(),
        "hexadecimal, with dashes": raw.hex("-"),
        "hexadecimal, a list": ", ".join(f"{byte:02x}" for byte in raw),
        "go, bytes": "[]byte{" + ", ".join(f"0x{byte:x}" for byte in raw) + "}",
        "decimal": str(list(raw)),
        "java, bytes": str([byte - 256 if byte > 127 else byte for byte in raw]),
        "percent": urllib.parse.quote(secret, safe=""),
        "percent, every byte": "".join(f"%{byte:02x}" for byte in raw),
        "percent, twice": urllib.parse.quote(urllib.parse.quote(secret, safe="").replace("-", "%2D")),
        "html": "".join(f"&#{byte};" for byte in raw),
        "html, hexadecimal": "".join(f"&#x{byte:x};" for byte in raw),
        "quoted-printable": "".join(f"={byte:02X}" for byte in raw),
        "continued": "\\\n".join(lines),
        "folded": "\n    ".join(lines),
        "strings after each other": " ".join(json.dumps(line) for line in lines),
        "upper case": secret.upper(),
        "cut": f"{secret[: len(secret) // 2]}...(truncated)",
        "its end": f"...{secret[len(secret) // 2 :]}",
    }


def traces(secret: str) -> Callable[[bytes], Iterator[str]]:
    """A function that finds a secret in bytes, in whatever spelling; independent of the code that takes secrets out."""
    shown = spellings(secret)
    wanted = {name: text for name, text in shown.items() if name != "upper case"}

    def found(data: bytes) -> Iterator[str]:
        for name, text in wanted.items():
            # Half of it is still the secret; a line of a folded one, too.
            for part in {text[: len(text) // 2], text[len(text) // 2 :], *text.split("\n")}:
                # What a sentence has by itself is shorter; and the armour of a key says nothing.
                if len(part) >= 12 and "PRIVATE K" not in part and "--" not in part and part.encode() in data:
                    yield f"{name}: {part}"

    return found

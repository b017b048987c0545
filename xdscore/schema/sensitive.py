"""Secrets in messages: hidden when a resource is read, kept when it comes back unchanged (decisions D18, U12).

What is secret is said by the API itself: fields with the option `udpa.annotations.sensitive`, and everything inside
them, in any message and any Any. Of the bytes of an unknown type nobody says it, so they are secret. A secret value
reads as `<kept:HASH>` in its own place, so a document keeps its shape; the hash covers the field as well as the value.
`restore_kept` puts a value back only where a field of the same kind had it in the same resource: a placeholder moved
into a readable field, or into another secret field, is refused by `parse`. Otherwise an editor could read secrets by
moving them.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyProto
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from udpa.annotations import sensitive_pb2

from xdscore.redaction import REDACTED
from xdscore.resource_types import TYPE_URL_PREFIX
from xdscore.schema.containers import WRAPPER
from xdscore.schema.content_policy import TAKES_UNKNOWN
from xdscore.schema.convert import Conversion, Depth
from xdscore.schema.manifest import Manifest
from xdscore.schema.opaque import CarryingPool, carry_unknown
from xdscore.schema.pool import Schema
from xdscore.schema.scalars import KEPT_PREFIX
from xdscore.schema.shapes import ANY, SPECIAL, MessageShape, shape_of
from xdscore.schema.text import Tree
from xdscore.schema.traversal import TYPED_STRUCTS
from xdscore.schema.types_registry import descriptor_of, kept, message_name, schema
from xdscore.snapshot import ttl_text

KeyedHash = Callable[[bytes], str]
"""A keyed hash of a secret, as text that says nothing about it without the key. The caller holds the key."""

_REDACTED_BYTES = "PHJlZGFjdGVkPg=="  # the same word, base64
_BASE64_URL = str.maketrans("-_", "+/")
_NOT_SECRET = ""
# Where a secret lies is not the secret; operators need to see it.
_PLACES = frozenset(
    f"envoy.config.core.v3.DataSource.{name}" for name in ("filename", "environment_variable", "watched_directory")
)
# What holds content in any message, also in one whose type or field is misspelt; and what every listener has, which is
# secret in one message only, below a field that says so.
_CONTENT_WORDS = frozenset(
    {"inline_string", "inlineString", "inline_bytes", "inlineBytes", "from_plugin", "fromPlugin"}
)
_COMMON_WORDS = frozenset({"config", "typed_config", "typedConfig"})
_WORD = re.compile(r"[A-Za-z_0-9]+")
# One secret leaf: (its JSON value, which field it is in, whether that is a bytes field) -> what stands there instead.
Visit = Callable[[Tree, str, bool], Tree]


def to_json(any_bytes: bytes, keyed_hash: KeyedHash, *, xds_name: str = "", ttl_ms: int = 0) -> dict[str, Tree]:
    """A stored resource as the manifest that would store it again, with `<kept:HASH>` for each secret. `keyed_hash`
    makes the hash.

    `xds_name` (where it differs from the message's own) and `ttl_ms` are written as a Resource wrapper around it. The
    order of keys is the same in every process. Raises DecodeError or TypeError when the bytes are not a resource that
    this process knows.
    """
    tree = _rewritten(any_bytes, lambda value, tag, _: _placeholder(value, tag, keyed_hash))
    return _wrapped(tree, xds_name, ttl_ms)


def to_json_with_secrets(any_bytes: bytes, *, xds_name: str = "", ttl_ms: int = 0) -> dict[str, Tree]:
    """A stored resource as the manifest that would store it again, with every secret in plain text: for backup, never
    for an answer, a log or a page. The arguments and errors are those of `to_json`.
    """
    return _wrapped(_rewritten(any_bytes, lambda value, _tag, _bytes: value), xds_name, ttl_ms)


def to_json_for_clients(any_bytes: bytes) -> dict[str, Tree]:
    """A stored resource in the JSON that clients read, secrets included: for an answer to the client that may have it,
    and for nobody else. Errors are those of `to_json`; TypeError also where bytes of an unknown type are in it, which
    no client reads from JSON.
    """
    return _dict_of(AnyProto.FromString(any_bytes), schema().pool)


def holds_secrets(any_bytes: bytes) -> bool:
    """Whether any sensitive field of a stored resource is filled in; it is then encrypted at rest, whatever its type
    (D18).
    """
    seen: list[str] = []

    def note(value: Tree, tag: str, _: bool) -> Tree:
        seen.append(tag)
        return value

    _rewritten(any_bytes, note)
    return bool(seen)


def secret_values(any_bytes: bytes) -> frozenset[bytes]:
    """Every secret in a stored resource, as bytes: to take them out of texts that quote the resource (`redaction`),
    never for an answer, a log or a page. Raises DecodeError, TypeError or ValueError when the bytes are not a resource
    that this process knows.
    """
    found: set[bytes] = set()

    def collect(value: Tree, _: str, in_bytes: bool) -> Tree:
        if in_bytes and isinstance(value, str):
            found.add(base64.b64decode(value.translate(_BASE64_URL)))
        elif isinstance(value, float) and value.is_integer():
            found.update((str(value).encode(), str(int(value)).encode()))
        else:
            found.add(str(value).encode())
        return value

    _rewritten(any_bytes, collect)
    return frozenset(found)


def may_hold_secrets(text: str) -> bool:
    """Whether a text, which need not be a valid manifest, names a field that holds secrets. True also when that is in
    doubt.
    """
    return not _secret_words(schema()).isdisjoint(_WORD.findall(text))


def names_secrets(tree: object) -> bool:
    """Whether a tree has a member, at any depth, that may hold secrets by its name."""
    words, left = _secret_words(schema()), [tree]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            if not words.isdisjoint(each):
                return True
            left += each.values()
        elif isinstance(each, list):
            left += each
    return False


@kept
def _secret_words(known: Schema) -> frozenset[str]:
    fields = {field for each in known.messages.values() for field in each.fields if _is_sensitive(field)}
    named = {field.name for field in fields} | {field.json_name for field in fields}
    return frozenset((named - _COMMON_WORDS) | _CONTENT_WORDS)


def redact(message: Message) -> Message:
    """A copy of `message` to be shown: secret texts are `<redacted>`, secret numbers are 0."""
    descriptor: Any = message.DESCRIPTOR
    rewrite = _Rewrite(_redacted)
    tree = rewrite.message(_json_of(message), descriptor, _NOT_SECRET)
    copy = type(message)()
    conversion = Conversion(policy=TAKES_UNKNOWN)
    if descriptor.full_name == ANY:
        conversion.pack(copy, _object(tree), (), Depth())
    else:
        conversion.fill(copy, _object(tree), (), Depth())
    return copy


def restore_kept(manifest: Manifest, previous: bytes, keyed_hash: KeyedHash) -> Manifest:
    """The manifest with each `<kept:HASH>` replaced by the secret with that hash which `previous`, the stored resource,
    has in such a field.

    Where `previous` has no such secret, `<kept:HASH>` stays, and `parse` refuses it. A manifest without any is returned
    as it is.
    """
    if not _mentions_kept(manifest.tree):
        return manifest
    secrets: dict[str, Tree] = {}

    def collect(value: Tree, tag: str, _: bool) -> Tree:
        secrets[str(_placeholder(value, tag, keyed_hash))] = value
        return value

    _rewritten(previous, collect)

    def put_back(value: Tree, tag: str, _: bool) -> Tree:
        # The hash in the placeholder covers its field; looking it up under any other field would let secrets move.
        found = secrets.get(value) if isinstance(value, str) else None
        return found if found is not None and _placeholder(found, tag, keyed_hash) == value else value

    rewrite = _Rewrite(put_back)
    tree = manifest.tree
    try:
        if tree.get("@type") == TYPE_URL_PREFIX + WRAPPER:
            inner = rewrite.any(tree.get("resource"), _NOT_SECRET)
            return replace(manifest, tree={**tree, "resource": inner})
        return replace(manifest, tree=_object(rewrite.any(tree, _NOT_SECRET)))
    except RecursionError:
        return manifest  # `parse` refuses it for its depth


def _placeholder(value: Tree, tag: str, keyed_hash: KeyedHash) -> Tree:
    text = json.dumps(value, ensure_ascii=True)
    return f"{KEPT_PREFIX}{keyed_hash(f'{tag} {text}'.encode())}>"


def _redacted(value: Tree, _: str, in_bytes: bool) -> Tree:
    if isinstance(value, str):
        return _REDACTED_BYTES if in_bytes else REDACTED
    return 0


def _rewritten(any_bytes: bytes, visit: Visit) -> dict[str, Tree]:
    return _object(_Rewrite(visit).any(_json_of(AnyProto.FromString(any_bytes)), _NOT_SECRET))


def _json_of(message: Message) -> dict[str, Tree]:
    """The JSON of a message in the API's spelling. An Any of an unknown type, or whose bytes are not of its type, is
    `{"@type": …, "value": "base64"}`, as `parse` reads it where the bytes of unknown types are taken.
    """
    try:
        return _dict_of(message, schema().pool)
    except TypeError:  # what json_format raises for an unknown type; looking for one beforehand would cost each reading
        carried = type(message)()
        carried.CopyFrom(message)
        carry_unknown(carried)
        return _dict_of(carried, CarryingPool())


def _dict_of(message: Message, pool: Any) -> dict[str, Tree]:
    tree: dict[str, Tree] = json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool)
    return tree


def _object(tree: Tree) -> dict[str, Tree]:
    return tree if isinstance(tree, dict) else {}


def _wrapped(tree: dict[str, Tree], xds_name: str, ttl_ms: int) -> dict[str, Tree]:
    if not xds_name and not ttl_ms:
        return tree
    wrapper: dict[str, Tree] = {"@type": TYPE_URL_PREFIX + WRAPPER}
    if xds_name:
        wrapper["name"] = xds_name
    if ttl_ms:
        wrapper["ttl"] = ttl_text(ttl_ms)
    return {**wrapper, "resource": tree}


def _mentions_kept(tree: Tree) -> bool:
    pending: list[Tree] = [tree]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if item.startswith(KEPT_PREFIX):
                return True
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """One walk over the JSON of a message, which replaces every secret value by what `visit` returns for it.

    `visit` is also given a tag: the name of the outermost sensitive field around the value, empty for a value that is
    secret without such a field. JSON that does not fit the descriptors is copied as it is. Maps come out in the order
    of their keys.
    """

    visit: Visit

    def any(self, tree: Tree, tag: str) -> Tree:
        """The JSON of an Any, with its secrets replaced."""
        url = tree.get("@type") if isinstance(tree, dict) else None
        descriptor = descriptor_of(message_name(url)) if isinstance(url, str) else None
        if not isinstance(tree, dict):
            return tree
        if descriptor is None:
            return self._opaque(tree, tag)
        if descriptor.full_name in SPECIAL:
            return {
                key: value if key == "@type" else self.message(value, descriptor, tag) for key, value in tree.items()
            }
        return {
            "@type": url,
            **_object(self.message({key: tree[key] for key in tree if key != "@type"}, descriptor, tag)),
        }

    def _opaque(self, tree: dict[str, Tree], tag: str) -> Tree:
        """The JSON of an Any of an unknown type, with its bytes replaced."""
        value = tree.get("value")
        if tree.keys() != {"@type", "value"} or not isinstance(value, str) or not value:
            return tree
        return {**tree, "value": self.visit(value, f"{tag}/{tree['@type']}", True)}

    def message(self, tree: Tree, descriptor: Descriptor, tag: str) -> Tree:
        """The JSON of a message of this type, with its secrets replaced."""
        name = descriptor.full_name
        if name == ANY:
            return self.any(tree, tag)
        if name in SPECIAL:
            return self._free(tree, f"{tag}/{name}" if tag else _NOT_SECRET)
        if not isinstance(tree, dict):
            return tree
        if name in TYPED_STRUCTS:
            return self._typed_struct(tree, tag)
        shape = marked_shape(descriptor)
        return {key: self._field(value, shape, key, tag) for key, value in tree.items()}

    def _field(self, value: Tree, marked: "_MarkedShape", key: str, tag: str) -> Tree:
        shape = marked.shape.fields.get(key)
        if shape is None or value is None:
            return value
        descriptor = marked.fields[shape.name]
        tag = tag or marked.tags.get(shape.name, _NOT_SECRET)
        if descriptor.full_name in _PLACES:
            tag = _NOT_SECRET
        if shape.is_map and shape.map_value is not None:
            if not isinstance(value, dict):
                return value
            held, leaf = shape.map_value.message, f"{tag}/{descriptor.full_name}"
            inside = {name: value[name] for name in sorted(value)}
            if held is None:
                return {name: self._leaf(item, tag, leaf, descriptor) for name, item in inside.items()}
            return {name: self.message(item, held, tag) for name, item in inside.items()}
        items = value if shape.repeated and isinstance(value, list) else [value]
        if shape.message is not None:
            done = [self.message(item, shape.message, tag) for item in items]
        else:
            done = [self._leaf(item, tag, f"{tag}/{descriptor.full_name}", descriptor) for item in items]
        return done if items is value else done[0]

    def _leaf(self, value: Tree, tag: str, leaf: str, descriptor: FieldDescriptor) -> Tree:
        """A scalar, replaced if it is secret. Booleans, enum values and empty texts are never replaced: they say
        nothing worth hiding.
        """
        if not tag or isinstance(value, bool) or value == "" or descriptor.enum_type is not None:
            return value
        return self.visit(value, leaf, descriptor.type == FieldDescriptor.TYPE_BYTES)

    def _free(self, tree: Tree, tag: str) -> Tree:
        """JSON of a type without fields (Struct, Value, Duration, wrappers and the like), with its secrets replaced."""
        if isinstance(tree, dict):
            return {key: self._free(tree[key], tag) for key in sorted(tree)}
        if isinstance(tree, list):
            return [self._free(item, tag) for item in tree]
        if not tag or tree is None or isinstance(tree, bool) or tree == "":
            return tree
        return self.visit(tree, tag, tag.endswith("google.protobuf.BytesValue"))

    def _typed_struct(self, tree: dict[str, Tree], tag: str) -> Tree:
        """The JSON of a TypedStruct, with the secrets in its Struct replaced. The Struct is read as the message that
        `type_url` names. When that type is unknown, its values are secret only inside a sensitive field.
        """
        url = tree.get("type_url", tree.get("typeUrl"))
        held = descriptor_of(message_name(url)) if isinstance(url, str) else None
        done = dict(tree)
        value = done.get("value")
        if value is not None:
            inside = self.message(value, held, tag) if held is not None else self._free(value, tag and f"{tag}/value")
            done["value"] = inside
        return done


@dataclass(frozen=True, slots=True, eq=False)
class _MarkedShape:
    """The fields of a message type, and for each sensitive field the tag that it gives to the values inside it."""

    shape: MessageShape
    fields: dict[str, FieldDescriptor]
    tags: dict[str, str]


@kept
def marked_shape(descriptor: Descriptor) -> _MarkedShape:
    """The fields of a message type, with the mark of those that are sensitive."""
    fields = {field.name: field for field in descriptor.fields}
    tags = {name: field.full_name for name, field in fields.items() if _is_sensitive(field)}
    return _MarkedShape(shape_of(descriptor), fields, tags)


def _is_sensitive(field: FieldDescriptor) -> bool:
    options: Any = field.GetOptions()
    return bool(options.Extensions[sensitive_pb2.sensitive])

"""Stored bytes back to the manifest that one may read: for the API and the pages alike. No secret is in any of it."""

from google.protobuf.any_pb2 import Any as AnyProto

from controlplane.catalog.lasting import lasting_keys
from controlplane.catalog.values import ResourceContent
from xdscore.labels import LABELS_KEY, Labels
from xdscore.names import canonical
from xdscore.resource_types import ResourceType
from xdscore.schema import ParsedResource, Tree, to_json
from xdscore.schema.walk import unpack
from xdscore.schema.yaml_lines import Lines, lines_above


def manifest_of(content: ResourceContent) -> dict[str, Tree]:
    """The manifest that stores this content again when it is applied; secrets are left out."""
    return manifest_of_bytes(content.kind, content.name, content.any_bytes, content.ttl_ms)


def exported_of(content: ResourceContent) -> dict[str, Tree]:
    """The manifest of this content as lists and files have it: with the labels of the resource, if it has any."""
    return with_labels(manifest_of(content), content.labels)


def with_labels(manifest: dict[str, Tree], labels: Labels | None) -> dict[str, Tree]:
    """The manifest, saying that its resource has these labels; as it is where there are none to speak of."""
    return {**manifest, LABELS_KEY: dict(labels)} if labels else manifest


def manifest_of_parsed(parsed: ParsedResource) -> dict[str, Tree]:
    """The manifest that a parsed resource would be read back as, were it stored; secrets are left out."""
    return manifest_of_bytes(parsed.type, parsed.name, parsed.any_bytes, parsed.ttl_ms)


def manifest_of_bytes(kind: ResourceType, name: str, any_bytes: bytes, ttl_ms: int) -> dict[str, Tree]:
    """The manifest that a resource with this serialised Any would be read back as; secrets are left out. `ttl_ms`: its
    time to live in milliseconds, 0 without one.
    """
    keyed_hash = lasting_keys().keyed_hash
    bare = to_json(any_bytes, keyed_hash, ttl_ms=ttl_ms)
    inner = bare.get("resource") if ttl_ms else bare
    own_name = inner.get(kind.name_field) if isinstance(inner, dict) else None
    if isinstance(own_name, str) and canonical(own_name) == name:
        return bare
    return to_json(any_bytes, keyed_hash, xds_name=name, ttl_ms=ttl_ms)


def manifest_lines(kind: ResourceType, name: str, any_bytes: bytes, ttl_ms: int) -> Lines | None:
    """Where the parts of this resource stand in the YAML of its manifest, as `manifest_of_bytes` makes that; None where
    the content cannot be read.
    """
    message = unpack(AnyProto.FromString(any_bytes))
    if message is None:
        return None
    named = canonical(getattr(message, kind.name_field)) != name
    return Lines(message, lines_above(named=named, ttl=bool(ttl_ms)) if named or ttl_ms else 0)

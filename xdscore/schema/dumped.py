"""Content that a data plane shows, made comparable with what is stored. Pure.

A dump holds the message that was sent, in JSON or as an Any; its bytes in canonical form are those that are stored, so
its version is that of the same revision. Envoy's endpoints are no such message: it puts them together from its hosts
(source/server/admin/config_dump_handler.cc), so of those the hosts are compared.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from hashlib import blake2b

from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyProto
from google.protobuf.message import DecodeError

from xdscore.resource_types import ENDPOINT, ResourceType
from xdscore.said import NO_HOSTS
from xdscore.schema.canonical import canonical
from xdscore.schema.sensitive import holds_secrets
from xdscore.schema.text import Tree
from xdscore.schema.types_registry import schema
from xdscore.schema.walk import AnyMessage, unpack
from xdscore.snapshot import content_hash, content_version

_DIGEST_BYTES = 8


def any_of_dump(tree: Mapping[str, Tree]) -> bytes | None:
    """The canonical bytes of a resource that stands in a data plane's dump as JSON; None when it has a part that is not
    known here (a field of a later API, an extension).
    """
    if not isinstance(tree.get("@type"), str):
        return None
    message = AnyProto()
    try:
        json_format.ParseDict(dict(tree), message, descriptor_pool=schema().pool)
        return canonical(message.SerializeToString())
    except (json_format.ParseError, DecodeError, TypeError, ValueError, RecursionError):
        return None


def name_in(kind: ResourceType, tree: Mapping[str, Tree]) -> str:
    """The name of a resource in a data plane's dump, read from its content."""
    return str(tree.get(kind.name_field, ""))


def version_of_content(any_bytes: bytes) -> str:
    """The version that Parley gives this content. Empty where it holds secrets or was redacted: versions of secrets are
    keyed, because an unkeyed hash would let somebody guess at them.
    """
    settled = canonical(any_bytes)
    return "" if holds_secrets(settled) else content_version(content_hash(settled))


def endpoints_digest(any_bytes: bytes) -> str:
    """A digest of the hosts in a ClusterLoadAssignment and their priorities; NO_HOSTS when it has none, empty for any
    other message.
    """
    packed = AnyProto.FromString(any_bytes)
    assignment = unpack(packed) if packed.type_url == ENDPOINT.url else None
    if assignment is None:
        return ""
    hosts = sorted(set(_hosts(assignment)))
    if not hosts:
        return NO_HOSTS
    return blake2b("\n".join(hosts).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _hosts(assignment: AnyMessage) -> Iterator[str]:
    for locality in assignment.endpoints:
        for each in locality.lb_endpoints:
            address = each.endpoint.address
            match address.WhichOneof("address"):
                case "socket_address":
                    place = f"{_plain(address.socket_address.address)} {address.socket_address.port_value}"
                case "pipe":
                    place = address.pipe.path
                case _:
                    place = address.envoy_internal_address.server_listener_name
            yield f"{locality.priority} {place}"


def _plain(address: str) -> str:
    """An IP address in the usual spelling; Envoy's dumps shorten IPv6 addresses in another way."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address

"""What is refused of HTTP filters although each field by itself keeps its rule. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from xdscore.schema.positions import Path
from xdscore.schema.relations.addresses import ip_of
from xdscore.schema.relations.said import Rule, Said, no_value, together
from xdscore.schema.walk import AnyMessage


def _jwt(filter_: AnyMessage) -> Iterator[Said]:
    for key in sorted(filter_.providers):
        remote = filter_.providers[key].remote_jwks
        if remote.HasField("http_uri") and not _has_host(remote.http_uri.uri):
            place: Path = ("providers", key, "remote_jwks", "http_uri", "uri")
            yield no_value(place, "must be a whole URL, such as https://example.com/keys")
    for index, each in enumerate(filter_.rules):
        if each.WhichOneof("requirement_type") == "requires":
            yield from _required(each.requires, ("rules", index, "requires"), filter_.providers)
        elif each.requirement_name and each.requirement_name not in filter_.requirement_map:
            yield together(("rules", index, "requirement_name"), "must be a key of 'requirement_map'")
    for key in sorted(filter_.requirement_map):
        yield from _required(filter_.requirement_map[key], ("requirement_map", key), filter_.providers)


def _required(requirement: AnyMessage, place: Path, providers: Mapping[str, AnyMessage]) -> Iterator[Said]:
    kind = requirement.WhichOneof("requires_type")
    if kind in ("requires_any", "requires_all"):
        for index, each in enumerate(getattr(requirement, kind).requirements):
            yield from _required(each, (*place, kind, "requirements", index), providers)
    elif kind == "provider_name" and requirement.provider_name not in providers:
        yield together((*place, kind), "must be a key of 'providers'")
    elif kind == "provider_and_audiences" and requirement.provider_and_audiences.provider_name not in providers:
        yield together((*place, kind, "provider_name"), "must be a key of 'providers'")


def _has_host(url: str) -> bool:
    scheme, colon, rest = url.partition("://")
    host = rest.partition("/")[0]
    return bool(scheme and colon and host) and not any(each.isspace() for each in host)


def _ranges(*fields: str) -> Rule:
    """The rule of these fields, each a range of addresses in a oneof."""

    def rule(message: AnyMessage) -> Iterator[Said]:
        for field in fields:
            if message.HasField(field) and ip_of(getattr(message, field).address_prefix) is None:
                yield no_value((field, "address_prefix"), "must be an IP address")

    return rule


RULES: Final[Mapping[str, Rule]] = {
    "envoy.config.rbac.v3.Permission": _ranges("destination_ip"),
    "envoy.config.rbac.v3.Principal": _ranges("source_ip", "direct_remote_ip", "remote_ip"),
    "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication": _jwt,
}
"""The rules by the full name of the message that each is about."""

"""What is refused of HTTP filters although each field by itself keeps its rule. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from xdscore.schema.positions import Path
from xdscore.schema.relations.addresses import ip_of
from xdscore.schema.relations.said import Rule, Said, no_value, together
from xdscore.schema.walk import AnyMessage

_PORTS_END: Final = 65_536
_NS_PER_MS: Final = 1_000_000
_FASTEST_NS: Final = 50 * _NS_PER_MS


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


_destination = _ranges("destination_ip")


def _permission(permission: AnyMessage) -> Iterator[Said]:
    yield from _destination(permission)
    ports = permission.destination_port_range
    if permission.HasField("destination_port_range") and not 0 <= ports.start < ports.end <= _PORTS_END:
        yield no_value(
            ("destination_port_range", "start"), f"must be at least 0 and below 'end', which is at most {_PORTS_END}"
        )


def _policy(policy: AnyMessage) -> Iterator[Said]:
    if policy.HasField("condition") and policy.condition.WhichOneof("expr_kind") is None:
        yield no_value(("condition",), "must be an expression")


def _local_rate_limit(limit: AnyMessage) -> Iterator[Said]:
    descriptors: Iterator[tuple[Path, AnyMessage]] = (
        (("descriptors", index), each) for index, each in enumerate(limit.descriptors)
    )
    for place, each in (((), limit), *descriptors):
        interval = each.token_bucket.fill_interval
        # Envoy cuts off what is below a millisecond, and takes none.
        if each.HasField("token_bucket") and not interval.seconds and _NS_PER_MS <= interval.nanos < _FASTEST_NS:
            yield no_value((*place, "token_bucket", "fill_interval"), "must be at least 0.05 s")


RULES: Final[Mapping[str, Rule]] = {
    "envoy.config.rbac.v3.Permission": _permission,
    "envoy.config.rbac.v3.Principal": _ranges("source_ip", "direct_remote_ip", "remote_ip"),
    "envoy.config.rbac.v3.Policy": _policy,
    "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit": _local_rate_limit,
    "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication": _jwt,
}
"""The rules by the full name of the message that each is about."""

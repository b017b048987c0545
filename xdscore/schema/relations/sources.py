"""What is refused of sources of resources although each field by itself keeps its rule. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from xdscore.schema.relations.said import Rule, Said, no_value, together
from xdscore.schema.walk import AnyMessage

_XDSTP: Final = "xdstp:"


def _api(source: AnyMessage) -> Iterator[Said]:
    if source.api_type in (source.GRPC, source.DELTA_GRPC):
        if source.cluster_names:
            yield together(("cluster_names",), "is not for an API over gRPC, which has 'grpc_services'")
        elif not source.grpc_services:
            yield together(("grpc_services",), "is needed by an API over gRPC")
        elif len(source.grpc_services) > 1:
            yield together(("grpc_services",), "may have one item")
    elif source.api_type == source.REST:
        yield from _rest(source)
    elif source.api_type == source.DEPRECATED_AND_UNAVAILABLE_DO_NOT_USE:
        yield together(("api_type",), "is needed; ADS is 'ads: {}' in place of 'api_config_source'")
    yield from third_version(source)


def _rest(source: AnyMessage) -> Iterator[Said]:
    if source.grpc_services:
        yield together(("grpc_services",), "is not for an API over REST, which has 'cluster_names'")
    elif len(source.cluster_names) != 1:
        yield together(("cluster_names",), "must have one item in an API over REST")
    elif not source.HasField("refresh_delay"):
        yield together(("refresh_delay",), "is needed by an API over REST")


def third_version(message: AnyMessage) -> Iterator[Said]:
    """The violation that a message with a 'transport_api_version' asks for V2, which is gone."""
    field = message.DESCRIPTOR.fields_by_name["transport_api_version"]
    if message.transport_api_version == field.enum_type.values_by_name["V2"].number:
        yield no_value(("transport_api_version",), "must be V3")


def _routes(rds: AnyMessage) -> Iterator[Said]:
    if not rds.HasField("config_source") and not rds.route_config_name.startswith(_XDSTP):
        yield together(("config_source",), "is needed, unless 'route_config_name' begins with 'xdstp:'")


def _secret(config: AnyMessage) -> Iterator[Said]:
    if config.sds_config.HasField("self"):
        yield no_value(("sds_config", "self"), "is not for secrets; write 'ads: {}'")


RULES: Final[Mapping[str, Rule]] = {
    "envoy.config.core.v3.ApiConfigSource": _api,
    "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz": third_version,
    "envoy.extensions.filters.network.http_connection_manager.v3.Rds": _routes,
    "envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig": _secret,
}
"""The rules by the full name of the message that each is about."""

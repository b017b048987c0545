"""Configuration that is code, or that reaches into the proxy's machine or its cloud (reliability threat 20).

Finds; never judges. Each danger is a note with a code of its own; `content_policy` turns the notes into what the
environment thinks of them. Names of hosts that resolve to such an address cannot be seen here.
"""

from collections.abc import Iterator

from xdscore.codes import Code
from xdscore.findings import Finding
from xdscore.schema.codes import LINK_LOCAL, LOCAL_FILE, LOCAL_PIPE, LOOPBACK, LUA, MODULE, VARIABLE
from xdscore.schema.destinations import hosts_of_target, is_link_local, is_loopback
from xdscore.schema.positions import Path
from xdscore.schema.traversal import TYPED_STRUCTS
from xdscore.schema.walk import AnyMessage

_CORE = "envoy.config.core.v3."
_GRPC = _CORE + "GrpcService.GoogleGrpc"
_CODE_PACKAGES: tuple[tuple[str, Code], ...] = (
    (".lua.", LUA),
    (".wasm.", MODULE),
    (".dynamic_modules.", MODULE),
    (".golang.", MODULE),
)
FILE_FIELDS = frozenset(
    {
        _CORE + "ConfigSource.path",
        _CORE + "DataSource.filename",
        _CORE + "HealthCheck.event_log_path",
        _CORE + "PathConfigSource.path",
        _CORE + "SocketAddress.network_namespace_filepath",
        _CORE + "WatchedDirectory.path",
        _GRPC + ".CallCredentials.StsService.actor_token_path",
        _GRPC + ".CallCredentials.StsService.subject_token_path",
        "envoy.config.tap.v3.FilePerTapSink.path_prefix",
        "envoy.config.trace.v3.DynamicOtConfig.library",
        "envoy.config.trace.v3.LightstepConfig.access_token_file",
        "envoy.extensions.access_loggers.file.v3.FileAccessLog.path",
        "envoy.extensions.filters.http.file_system_buffer.v3.FileSystemBufferFilterConfig.storage_buffer_path",
        "envoy.extensions.filters.http.grpc_json_reverse_transcoder.v3.GrpcJsonReverseTranscoder.descriptor_path",
        "envoy.extensions.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder.proto_descriptor",
        "envoy.extensions.geoip_providers.maxmind.v3.MaxMindConfig.anon_db_path",
        "envoy.extensions.geoip_providers.maxmind.v3.MaxMindConfig.asn_db_path",
        "envoy.extensions.geoip_providers.maxmind.v3.MaxMindConfig.city_db_path",
        "envoy.extensions.geoip_providers.maxmind.v3.MaxMindConfig.country_db_path",
        "envoy.extensions.geoip_providers.maxmind.v3.MaxMindConfig.isp_db_path",
        "envoy.extensions.grpc_service.call_credentials.sts_service.v3.StsServiceCredentials.actor_token_path",
        "envoy.extensions.grpc_service.call_credentials.sts_service.v3.StsServiceCredentials.subject_token_path",
        "envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink.event_log_path",
        "envoy.extensions.http.cache.file_system_http_cache.v3.FileSystemHttpCacheConfig.cache_path",
        "envoy.extensions.http.cache_v2.file_system_http_cache.v3.FileSystemHttpCacheV2Config.cache_path",
        "envoy.extensions.key_value.file_based.v3.FileBasedKeyValueStoreConfig.filename",
        "envoy.extensions.resource_monitors.injected_resource.v3.InjectedResourceConfig.filename",
        "envoy.extensions.transport_sockets.tls.v3.TlsKeyLog.path",
        "envoy.extensions.watchdog.profile_action.v3.ProfileActionConfig.profile_path",
    }
)
"""Texts that name a file or directory on the proxy's machine."""
_VARIABLE_FIELDS = frozenset(
    {_CORE + "DataSource.environment_variable", "envoy.extensions.wasm.v3.EnvironmentVariables.host_env_keys"}
)
# Addresses that the proxy listens on, sends from, or asks for names: nothing of a request arrives there.
NO_DESTINATIONS = frozenset(
    {
        "envoy.config.cluster.v3.Cluster.dns_resolvers",
        _CORE + "BindConfig.additional_source_addresses",
        _CORE + "BindConfig.source_address",
        _CORE + "DnsResolutionConfig.resolvers",
        _CORE + "ExtraSourceAddress.address",
        _CORE + "Node.listening_addresses",
        "envoy.config.listener.v3.AdditionalAddress.address",
        "envoy.config.listener.v3.Listener.address",
        "envoy.extensions.filters.udp.dns_filter.v3.DnsFilterConfig.ClientContextConfig.upstream_resolvers",
        "envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig.resolvers",
    }
)


class DangerSearch:
    """One search through a resource for dangerous content. `look` must be called for a message before the messages
    inside it.
    """

    def __init__(self) -> None:
        self._code: list[tuple[Path, Code]] = []
        self._no_destinations: list[Path] = []

    def look(self, message: AnyMessage, path: Path) -> Iterator[tuple[Path, Finding]]:
        """What is dangerous about `message` and the values of its fields, but not about the messages inside it."""
        name = message.DESCRIPTOR.full_name
        yield from self._code_in(message.type_url if name in TYPED_STRUCTS else name, path)
        for field, _ in message.ListFields():
            place = (*path, field.name)
            if field.full_name in NO_DESTINATIONS:
                self._no_destinations.append(place)
            elif field.full_name in FILE_FIELDS:
                yield place, LOCAL_FILE.finding("", field=field.name)
            elif field.full_name in _VARIABLE_FIELDS:
                yield place, VARIABLE.finding("", field=field.name)
        if name == _CORE + "Pipe":
            yield path, LOCAL_PIPE.finding("", field="pipe")
        elif name == _CORE + "SocketAddress":
            danger = _danger_of(message.address)
            if danger is not None and not self._is_no_destination(path):
                yield (*path, "address"), danger.finding("", field="address")
        elif name == _GRPC:
            yield from _target(message.target_uri, (*path, "target_uri"))

    def _code_in(self, name: str, path: Path) -> Iterator[tuple[Path, Finding]]:
        """The finding that a message of this type runs code. Given once, at the outermost such message: a Wasm filter
        holds a Wasm plugin, which holds a Wasm machine.
        """
        for package, code in _CODE_PACKAGES:
            if package in name and not any(
                known is code and path[: len(place)] == place for place, known in self._code
            ):
                self._code.append((path, code))
                yield path, code.finding("")

    def _is_no_destination(self, path: Path) -> bool:
        return any(path[: len(place)] == place for place in self._no_destinations)


def _target(uri: str, path: Path) -> Iterator[tuple[Path, Finding]]:
    hosts = hosts_of_target(uri)
    if hosts is None:
        yield path, LOCAL_PIPE.finding("", field="target_uri")
        return
    # Each danger is said once, however many of its addresses are of that kind.
    for danger in dict.fromkeys(filter(None, map(_danger_of, hosts))):
        yield path, danger.finding("", field="target_uri")


def _danger_of(host: str) -> Code | None:
    if is_loopback(host):
        return LOOPBACK
    return LINK_LOCAL if is_link_local(host) else None

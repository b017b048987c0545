"""gRPC's bootstrap as grpc-go and grpc-java read it, for which no package brings a client here: which fields must be
there and of which type, in the order in which their parsers ask.

Sources: grpc-go `internal/xds/bootstrap/bootstrap.go` @0312473, `tlscreds/bundle.go` @1b6e905, and its certificate
provider `pemfile`; grpc-java `BootstrapperImpl.java` @079a548, `GrpcBootstrapperImpl.java`, `TlsXdsCredentialsProvider`
and `FileWatcherCertificateProviderProvider`.
"""

import re
from typing import Any

Tree = dict[str, Any]
_DURATION = re.compile(r"-?\d+(\.\d{1,9})?s")
_CHANNEL_CREDENTIALS = {"google_default", "insecure", "tls"}


class UnreadableBootstrapError(Exception):
    """The client would not start with this bootstrap. The text says which field it would name."""


def read_as_go(bootstrap: Tree) -> None:
    """Raise UnreadableBootstrapError where grpc-go would refuse the file. It ignores fields that it does not know."""
    servers = _of(bootstrap, "xds_servers", list) or []
    for server in servers:
        chosen = _go_credentials(server, "channel_creds", _CHANNEL_CREDENTIALS)
        for each in _of(server, "call_creds", list) or []:
            if each.get("type") == "jwt_token_file":
                _filled(_of(each, "config", dict) or {}, "jwt_token_file")
        _strings(_of(server, "server_features", list) or [], "server_features")
        _filled(server, "server_uri")
        if chosen is None:
            raise UnreadableBootstrapError("channel_creds")
    for provider in (_of(bootstrap, "certificate_providers", dict) or {}).values():
        if _of(provider, "plugin_name", str) == "file_watcher":
            _go_files(_of(provider, "config", dict) or {})
    if not servers:
        raise UnreadableBootstrapError("xds_servers")
    for service in (_of(bootstrap, "allowed_grpc_services", dict) or {}).values():
        if _go_credentials(service, "channel_creds", _CHANNEL_CREDENTIALS) is None:
            raise UnreadableBootstrapError("allowed_grpc_services")
    _node(_of(bootstrap, "node", dict) or {})
    _templates(bootstrap)


def read_as_java(bootstrap: Tree) -> None:
    """Raise UnreadableBootstrapError where grpc-java would refuse the file."""
    for server in _present(bootstrap, "xds_servers", list):
        _present(server, "server_uri", str)
        credentials = _present(server, "channel_creds", list)
        if not any(_java_credentials(each) for each in credentials):
            raise UnreadableBootstrapError("channel_creds")
        _of(server, "server_features", list)
    _node(_of(bootstrap, "node", dict) or {})
    for provider in (_of(bootstrap, "certificate_providers", dict) or {}).values():
        plugin, config = _present(provider, "plugin_name", str), _present(provider, "config", dict)
        if plugin == "file_watcher":
            for name in ("certificate_file", "private_key_file", "ca_certificate_file"):
                _present(config, name, str)
            _duration(config)
    _templates(bootstrap)


def _go_credentials(server: Tree, field: str, known: set[str]) -> Tree | None:
    """The first credentials of a type that the client has; their configuration must be good."""
    for each in _of(server, field, list) or []:
        if _of(each, "type", str) in known:
            config = _of(each, "config", dict) or {}
            if each["type"] == "tls" and config.keys() & {
                "certificate_file",
                "private_key_file",
                "ca_certificate_file",
            }:
                _go_files(config)
            chosen: Tree = each
            return chosen
    return None


def _go_files(config: Tree) -> None:
    """`pemfile`: a key with its certificate or neither; certificate or authorities; an interval as protobuf's JSON."""
    certificate, key = _of(config, "certificate_file", str), _of(config, "private_key_file", str)
    if bool(certificate) != bool(key):
        raise UnreadableBootstrapError("private_key_file")
    if not certificate and not _of(config, "ca_certificate_file", str):
        raise UnreadableBootstrapError("ca_certificate_file")
    _duration(config)


def _java_credentials(each: Tree) -> bool:
    kind, config = _present(each, "type", str), _of(each, "config", dict) or {}
    if kind == "tls" and bool(_of(config, "certificate_file", str)) != bool(_of(config, "private_key_file", str)):
        raise UnreadableBootstrapError("private_key_file")
    return kind in _CHANNEL_CREDENTIALS


def _node(node: Tree) -> None:
    for name in ("id", "cluster"):
        _of(node, name, str)
    _of(node, "metadata", dict)
    locality = _of(node, "locality", dict) or {}
    for name in ("region", "zone", "sub_zone"):
        _of(locality, name, str)


def _templates(bootstrap: Tree) -> None:
    for name in ("server_listener_resource_name_template", "client_default_listener_resource_name_template"):
        _of(bootstrap, name, str)


def _duration(config: Tree) -> None:
    interval = _of(config, "refresh_interval", str)
    if interval is not None and not _DURATION.fullmatch(interval):
        raise UnreadableBootstrapError("refresh_interval")


def _of(tree: Any, name: str, kind: type) -> Any:
    """The value of a field, None where it is not there. Both parsers refuse one of another type."""
    if not isinstance(tree, dict) or not isinstance(tree.get(name), kind | None):
        raise UnreadableBootstrapError(name)
    return tree.get(name)


def _present(tree: Any, name: str, kind: type) -> Any:
    if _of(tree, name, kind) is None:
        raise UnreadableBootstrapError(name)
    return tree[name]


def _filled(tree: Tree, name: str) -> None:
    if not _of(tree, name, str):
        raise UnreadableBootstrapError(name)


def _strings(values: list[object], name: str) -> None:
    if not all(isinstance(value, str) for value in values):
        raise UnreadableBootstrapError(name)

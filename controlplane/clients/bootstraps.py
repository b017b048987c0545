"""Ready bootstrap files for gRPC clients and for Envoy. Pure: configuration and a node in, a tree out.

Sources: gRFC A27 and A47 (bootstrap), A29 (certificate providers), A36 (servers), A65 (mTLS credentials), A97 (call
credentials), A81, A88 and xRFC TP3 (server features), A102, a draft (side channels), Envoy's "xDS configuration API
overview".
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address

from controlplane.config.loading import Config
from controlplane.config.values import Address
from xdscore.environment_choice import ClientFacts, EnvironmentChoice, Selector, choose_environment
from xdscore.server_features import DEFAULT_FEATURES, BootstrapFeature

Tree = dict[str, object]

_MAX_PATH_CHARS = 1_024
_TOKEN = "/etc/parley/client.token"  # noqa: S105 - a path
# Envoy sends a file's content as it is: the word Bearer, a blank and the token.
_AUTHORIZATION = "/etc/parley/client.authorization"
_TOKEN_SECRET = "parley_client_token"  # noqa: S105 - the name of a secret
_TRUST_RELOAD = "600s"
_ADMIN_PORT = 9901
_CONTROL_PLANE = "parley_ads"
_POLLED = "parley_rest"
_REFRESH_DELAY = "5s"
# Envoy's own default is 1 s: a large state over a slow line takes longer.
_REQUEST_TIMEOUT = "5s"

# A36: the name of the listener that a server with this address asks for; the one that its examples have.
_SERVER_LISTENER = "grpc/server?xds.resource.listening_address=%s"
# The instance that resources name to have a workload's own certificate and authorities (A29).
_CERTIFICATE_PROVIDER = "default"

# A102: a "fully-qualified target URI". `host:443` is none, and no target that is spelled in full would ever equal it.
_TARGET_URI = re.compile(r"[a-z][a-z0-9+-]*:(?!\d+\Z)[!-~]+")
_MAX_TARGET_CHARS = 1_024

_DATA_ERROR_HANDLING = "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING"
_CALL_CREDENTIALS = "GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS"


_ENVOY_CREDENTIAL: Tree = {
    "name": "envoy.filters.http.credential_injector",
    "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.credential_injector.v3.CredentialInjector",
        "overwrite": True,
        "credential": {
            "name": "envoy.http.injected_credentials.generic",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.http.injected_credentials.generic.v3.Generic",
                "credential": {"name": _TOKEN_SECRET},
            },
        },
    },
}
# A control plane that died silently is noticed within the 25 s the server takes, too (reliability.md (e)).
_HTTP2: Tree = {"http2_protocol_options": {"connection_keepalive": {"interval": "15s", "timeout": "10s"}}}
_HTTP1: Tree = {"http_protocol_options": {}}
_ENVOY_CODEC: Tree = {
    "name": "envoy.filters.http.upstream_codec",
    "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec",
    },
}


class Variant(StrEnum):
    """The variant of xDS that Envoy speaks: state of the world (SotW) or delta."""

    SOTW = "sotw"
    DELTA = "delta"


class Transport(StrEnum):
    """How Envoy is given resources: over one gRPC stream (ADS), or by polling over REST."""

    GRPC = "grpc"
    REST = "rest"


class NotPolledError(ValueError):
    """Raised where an installation has no port on which clients poll; the text says how to give it one."""


@dataclass(frozen=True, slots=True)
class Node:
    """The xDS node: the id, cluster and metadata that a client sends of itself."""

    id: str
    cluster: str
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """The paths of a client's files on its own machine, with the paths in the documentation as defaults. The fields
    have the names that gRPC gives them (A65).

    `certificate_file`, `private_key_file`: the client's certificate and its key.
    `ca_certificate_file`: the certificate authorities (CA) that sign the server's certificate.
    """

    certificate_file: str = "/etc/parley/tls/client.crt"
    private_key_file: str = "/etc/parley/tls/client.key"
    ca_certificate_file: str = "/etc/parley/tls/ca.crt"


NAMED_FILES = ClientFiles()


class UnreachableError(ValueError):
    """No node with the wanted id would be assigned to the wanted environment; the text names the one it would be
    assigned to.
    """


def node_for(
    config: Config, node_id: str, environment: str, environments: tuple[EnvironmentChoice, ...], *, cluster: str = ""
) -> Node:
    """A node with this id that gets into the environment. Raises UnreachableError where none does.

    Where identities are verified, they choose (decisions C15), and the node may declare any `cluster` (empty: the
    environment's name). Elsewhere what it declares must lead there; a pattern with a star leaves the value open, so
    only patterns without one are filled in.
    """
    if config.ads_auth.facts.verified:
        return Node(node_id, cluster or environment)
    selectors = next((each.selectors for each in environments if each.key == environment), ())
    for selector in (Selector(), *selectors):
        metadata = {key: glob for key, glob in selector.metadata.items() if "*" not in glob}
        cluster = selector.node_cluster or ""
        node = Node(node_id, cluster if cluster and "*" not in cluster else environment, metadata)
        if _environment_of(node, environments) == environment:
            return node
    taken = _environment_of(Node(node_id, environment), environments)
    raise UnreachableError(
        f"A node with the id '{node_id}' belongs to '{taken}': no selector of '{environment}' takes it."
    )


def grpc_bootstrap(
    config: Config,
    node: Node,
    *,
    files: ClientFiles = NAMED_FILES,
    features: Collection[BootstrapFeature] = (),
    allowed_services: Collection[str] = (),
) -> Tree:
    """The content of the file that a gRPC client's variable GRPC_XDS_BOOTSTRAP names.

    `features`: server features beside DEFAULT_FEATURES; CRITERIA says when each is right. Without any, a client that
        refuses a change keeps what it had.
    `allowed_services`: target URIs of side-channel services that resources may name (A102). Each is called over TLS,
        and its certificate checked against the certificate authorities (CA) that the client's machine trusts.
    """
    server: Tree = {
        "server_uri": str(config.ads_public_address),
        "channel_creds": [_grpc_credentials(config, files)],
        **_grpc_call_credentials(config),
        "server_features": [each.value for each in BootstrapFeature if each in DEFAULT_FEATURES or each in features],
    }
    tree: Tree = {
        "xds_servers": [server],
        # grpc-js-xds refuses a node without a locality, be it empty (clients.md section 2.5).
        "node": {**_node(node), "locality": {}},
        # A36: no server starts without it. Clients do not read it.
        "server_listener_resource_name_template": _SERVER_LISTENER,
    }
    if config.ads_tls is not None and config.ads_auth.facts.certificates:
        watched = {"plugin_name": "file_watcher", "config": _watched(config, files)}
        tree["certificate_providers"] = {_CERTIFICATE_PROVIDER: watched}
    if allowed_services:
        # A102: at least one kind of channel credentials; a client stops at the first one that it supports.
        tree["allowed_grpc_services"] = {uri: {"channel_creds": [{"type": "tls"}]} for uri in allowed_services}
    return tree


def path_problem(path: str) -> str:
    """Why no file can have this path, absolute or relative, as the end of a sentence that begins with "the path"; empty
    when one can.
    """
    if not path or path.endswith("/"):
        return "names no file"
    if len(path) > _MAX_PATH_CHARS:
        return f"has {len(path)} characters; at most {_MAX_PATH_CHARS} are allowed"
    return "" if path.isprintable() else "holds a character that cannot be printed on one line"


def files_named(config: Config) -> tuple[str, ...]:
    """The names of those fields of ClientFiles whose paths a client's bootstrap contains."""
    if config.ads_tls is None:
        return ()
    own = ("certificate_file", "private_key_file") if config.ads_auth.facts.certificates else ()
    return (*own, "ca_certificate_file")


def target_problem(uri: str) -> str:
    """Why gRPC could not find a side-channel service by this URI, as the end of a sentence that begins with "the URI";
    empty when it can.
    """
    if len(uri) > _MAX_TARGET_CHARS:
        return f"has {len(uri)} characters; at most {_MAX_TARGET_CHARS} are allowed"
    return "" if _TARGET_URI.fullmatch(uri) else "is no target URI with its scheme"


def grpc_variables(config: Config) -> Mapping[str, str]:
    """The environment variables that a gRPC client must set to `true`, each with what the client does without it."""
    needed = {_DATA_ERROR_HANDLING: "reports “does not exist” after about 15 s in place of the reason"}
    if _grpc_call_credentials(config):
        needed[_CALL_CREDENTIALS] = "sends no token and is not let in"
    return needed


def envoy_bootstrap(config: Config, node: Node, variant: Variant, *, files: ClientFiles = NAMED_FILES) -> Tree:
    """An Envoy configuration that takes all resources over one ADS stream."""
    ads = {"resource_api_version": "V3", "ads": {}}
    return {
        "node": _node(node),
        "admin": {"address": _socket("127.0.0.1", _ADMIN_PORT)},
        "dynamic_resources": {
            "ads_config": {
                "api_type": "DELTA_GRPC" if variant is Variant.DELTA else "GRPC",
                "transport_api_version": "V3",
                "set_node_on_first_message_only": True,
                "grpc_services": [{"envoy_grpc": {"cluster_name": _CONTROL_PLANE}}],
            },
            "cds_config": ads,
            "lds_config": ads,
        },
        "static_resources": {
            "clusters": [_envoy_cluster(config, files, _CONTROL_PLANE, config.ads_public_address, _HTTP2)],
            **_envoy_secrets(config),
        },
    }


def envoy_rest_bootstrap(config: Config, node: Node, *, files: ClientFiles = NAMED_FILES) -> Tree:
    """An Envoy configuration that polls clusters and listeners over REST. What these refer to (endpoints, routes,
    secrets) is polled where they say so themselves. Raises NotPolledError where this installation is not polled.
    """
    address = config.rest_public_address
    if address is None:
        raise NotPolledError("Clients do not poll here: PARLEY_ADS_REST_ADDRESS says where ADS serves REST.")
    source = {
        "resource_api_version": "V3",
        "api_config_source": {
            "api_type": "REST",
            "transport_api_version": "V3",
            "cluster_names": [_POLLED],
            "refresh_delay": _REFRESH_DELAY,
            "request_timeout": _REQUEST_TIMEOUT,
        },
    }
    return {
        "node": _node(node),
        "admin": {"address": _socket("127.0.0.1", _ADMIN_PORT)},
        "dynamic_resources": {"cds_config": source, "lds_config": source},
        "static_resources": {
            "clusters": [_envoy_cluster(config, files, _POLLED, address, _HTTP1)],
            **_envoy_secrets(config),
        },
    }


def _environment_of(node: Node, environments: tuple[EnvironmentChoice, ...]) -> str:
    facts = ClientFacts(node_id=node.id, node_cluster=node.cluster, metadata=node.metadata)
    return choose_environment(facts, environments)


def _node(node: Node) -> Tree:
    tree: Tree = {"id": node.id, "cluster": node.cluster}
    return {**tree, "metadata": dict(node.metadata)} if node.metadata else tree


def _grpc_credentials(config: Config, files: ClientFiles) -> Tree:
    if config.ads_tls is None:
        return {"type": "insecure"}
    return {"type": "tls", "config": _watched(config, files)}


def _watched(config: Config, files: ClientFiles) -> Tree:
    """The files of a client, which gRPC reads again as they change."""
    return {**{name: getattr(files, name) for name in files_named(config)}, "refresh_interval": _TRUST_RELOAD}


def _grpc_call_credentials(config: Config) -> Tree:
    """The gRPC call credentials: a client token in a file, which gRPC reads as a JWT (A97) and sends over encrypted
    connections only. Empty unless clients prove their identity by token.
    """
    if not config.ads_auth.facts.tokens:
        return {}
    return {"call_creds": [{"type": "jwt_token_file", "config": {"jwt_token_file": _TOKEN}}]}


def _socket(host: str, port: int) -> Tree:
    return {"socket_address": {"address": host, "port_value": port}}


def _envoy_cluster(config: Config, files: ClientFiles, name: str, address: Address, http: Tree) -> Tree:
    host = address.host
    endpoint = {"endpoint": {"address": _socket(host, address.port)}}
    protocol: Tree = {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": http,
    }
    if config.ads_auth.facts.tokens:
        protocol["http_filters"] = [_ENVOY_CREDENTIAL, _ENVOY_CODEC]
    cluster: Tree = {
        "name": name,
        "type": "STRICT_DNS",
        # By default Envoy takes IPv6 addresses alone where a name has both, also where nobody listens there.
        "dns_lookup_family": "V4_PREFERRED",
        "connect_timeout": "5s",
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocol},
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    if config.ads_tls is not None:
        tls = _envoy_tls(config, host, files)
        cluster["transport_socket"] = {"name": "envoy.transport_sockets.tls", "typed_config": tls}
    return cluster


def _envoy_secrets(config: Config) -> Tree:
    if not config.ads_auth.facts.tokens:
        return {}
    return {"secrets": [{"name": _TOKEN_SECRET, "generic_secret": {"secret": {"filename": _AUTHORIZATION}}}]}


def _envoy_tls(config: Config, host: str, files: ClientFiles) -> Tree:
    by_address = _is_address(host)
    common: Tree = {
        "validation_context": {
            "trusted_ca": {"filename": files.ca_certificate_file},
            "match_typed_subject_alt_names": [
                {"san_type": "IP_ADDRESS" if by_address else "DNS", "matcher": {"exact": host}}
            ],
        }
    }
    if config.ads_auth.facts.certificates:
        common["tls_certificates"] = [
            {
                "certificate_chain": {"filename": files.certificate_file},
                "private_key": {"filename": files.private_key_file},
            }
        ]
    context: Tree = {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": common,
    }
    # RFC 6066, section 3: a server name is a name and no address.
    return context if by_address else {**context, "sni": host}


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True

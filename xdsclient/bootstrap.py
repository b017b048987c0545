"""The bootstrap of an xDS client, spelled as gRPC spells it (gRFC A27, A47, A65, A71, A88, A97).

    {"xds_servers": [{"server_uri": "ads.example:18000",
                      "channel_creds": [{"type": "tls", "config": {"ca_certificate_file": "/etc/xds/ca.pem"}}],
                      "call_creds": [{"type": "jwt_token_file", "config": {"jwt_token_file": "/etc/xds/token"}}],
                      "server_features": ["fail_on_data_errors"]}],
     "node": {"id": "pay-7", "cluster": "pay", "locality": {"zone": "z1"}, "metadata": {"team": "pay"}},
     "authorities": {"other.example": {"xds_servers": [...]}}}

A file holds such an object; `GRPC_XDS_BOOTSTRAP` names the file, `GRPC_XDS_BOOTSTRAP_CONFIG` holds the object itself.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from xdsclient.bootstrap_text import Reader
from xdsclient.engine.values import ServerFeature

_FILE_VARIABLE = "GRPC_XDS_BOOTSTRAP"
_TEXT_VARIABLE = "GRPC_XDS_BOOTSTRAP_CONFIG"
_GUARD_VARIABLE = "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING"

# decisions C38: A88 once spells the timer's feature this way, and no implementation reads it.
_MISSPELT = {"resource_timer_is_transient_failure": ServerFeature.RESOURCE_TIMER_IS_TRANSIENT_ERROR.value}
# Features of other gRFCs that mean nothing to this client: it speaks v3 only.
_KNOWN_ELSEWHERE = frozenset({"xds_v3"})


class BootstrapError(ValueError):
    """The bootstrap cannot be used. `problems` holds every reason, one sentence each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Insecure:
    """Channel credentials without TLS."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Channel credentials with TLS, from PEM files; with a certificate and key, mutual TLS. An empty
    `ca_certificate_file`: trust the certificate authorities (CA) of the machine. The other two empty: show no
    certificate.
    """

    ca_certificate_file: str = ""
    certificate_file: str = ""
    private_key_file: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """One xDS server of a bootstrap. The content of `token_file` is sent as a bearer token with every stream; empty
    means none.

    `notes` says which parts of the server's description were ignored, one sentence each.
    """

    uri: str
    credentials: Insecure | Tls = Insecure()
    token_file: str = ""
    features: frozenset[ServerFeature] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Locality:
    """The region, zone and sub-zone in which the client runs."""

    region: str = ""
    zone: str = ""
    sub_zone: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """The client's description of itself, which it sends to servers."""

    id: str
    cluster: str = ""
    locality: Locality = Locality()
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Authority:
    """The bootstrap's settings for one xdstp authority: the servers to ask for its names (none: those at the top of the
    bootstrap), and its template for names of listeners (empty: the standard one of gRFC A47).
    """

    servers: tuple[Server, ...] = ()
    client_listener_template: str = ""


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """Tells `Bootstrap.load` to take the bootstrap from environment variables: from the file that `GRPC_XDS_BOOTSTRAP`
    names, else from the text in `GRPC_XDS_BOOTSTRAP_CONFIG` (A27).
    """

    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The configuration with which a client starts. `servers` are tried in order (A71). `client_listener_template`
    turns a target into a listener's name by replacing its `%s` (A47). `authorities`: settings of xdstp authorities by
    name.
    """

    servers: tuple[Server, ...]
    node: Node
    authorities: Mapping[str, Authority] = field(default_factory=dict)
    client_listener_template: str = "%s"

    @classmethod
    def load(cls, source: Path | str | FromEnvironment) -> Self:
        """The bootstrap in a file (Path), a JSON text (str) or environment variables. Raises BootstrapError with every
        problem.
        """
        return cls.parse(_text(source))

    @classmethod
    def parse(cls, text: str) -> Self:
        """The bootstrap in a JSON text. Raises BootstrapError with every problem."""
        try:
            tree = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise BootstrapError((f"the bootstrap is not JSON: {error}",)) from error
        problems: list[str] = []
        top = Reader(tree, "", problems)
        node = top.member("node")
        authorities = top.member("authorities")
        bootstrap = cls(
            servers=_servers(top, required=True),
            node=_node(node),
            authorities={name: _authority(authorities.member(name), name) for name in authorities.names()},
            client_listener_template=top.text("client_default_listener_resource_name_template") or "%s",
        )
        if problems:
            raise BootstrapError(tuple(problems))
        return bootstrap

    @property
    def notes(self) -> tuple[str, ...]:
        """The parts of the bootstrap that were ignored, over all servers, one sentence each."""
        lists = (self.servers, *(authority.servers for authority in self.authorities.values()))
        return tuple(note for servers in lists for server in servers for note in server.notes)


def data_error_handling(variables: Mapping[str, str]) -> bool:
    """Whether these environment variables switch on gRFC A88: GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING is "true" (A88,
    "Temporary environment variable protection"). False when it is not set.
    """
    return variables.get(_GUARD_VARIABLE, "").strip().lower() == "true"


def _text(source: Path | str | FromEnvironment) -> str:
    if isinstance(source, FromEnvironment):
        path, text = source.variables.get(_FILE_VARIABLE, ""), source.variables.get(_TEXT_VARIABLE, "")
        if not path and not text:
            raise BootstrapError((f"neither {_FILE_VARIABLE} nor {_TEXT_VARIABLE} is set",))
        source = Path(path) if path else text
    if isinstance(source, str):
        return source
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BootstrapError((f"the bootstrap file {source} cannot be read: {error}",)) from error


def _node(node: Reader) -> Node:
    place = node.member("locality")
    return Node(
        id=node.text("id"),
        cluster=node.text("cluster"),
        locality=Locality(place.text("region"), place.text("zone"), place.text("sub_zone")),
        metadata=node.member("metadata").tree,
    )


def _authority(authority: Reader, name: str) -> Authority:
    template = authority.text("client_listener_resource_name_template")
    # A47: the template must name a resource of this authority.
    if template and not template.startswith(f"xdstp://{name}/"):
        authority.wrong("client_listener_resource_name_template", f"must start with xdstp://{name}/")
    return Authority(_servers(authority, required=False), template)


def _servers(reader: Reader, *, required: bool) -> tuple[Server, ...]:
    servers = tuple(_server(each) for each in reader.members("xds_servers"))
    if required and not servers:
        reader.wrong("xds_servers", "must name at least one server")
    return servers


def _server(server: Reader) -> Server:
    uri = server.text("server_uri")
    if not uri:
        server.wrong("server_uri", "must be given")
    notes: list[str] = []
    credentials = _credentials(server, notes)
    features = frozenset(filter(None, (_feature(word, uri, notes) for word in server.texts("server_features"))))
    return Server(uri, credentials, _token_file(server, uri, notes), features, tuple(notes))


def _credentials(server: Reader, notes: list[str]) -> Insecure | Tls:
    """The first of the server's `channel_creds` whose type is supported (A27); those before it are added to `notes`.
    Notes a problem and returns Insecure when there is none.
    """
    offered = server.members("channel_creds")
    for each in offered:
        match each.text("type"):
            case "insecure":
                return Insecure()
            case "tls":
                config = each.member("config")
                tls = Tls(
                    config.text("ca_certificate_file"),
                    config.text("certificate_file"),
                    config.text("private_key_file"),
                )
                # A65: the two go together.
                if bool(tls.certificate_file) != bool(tls.private_key_file):
                    config.wrong("certificate_file", "and private_key_file must be given together")
                return tls
            case word:
                notes.append(f"{server.text('server_uri')}: channel_creds of type '{word}' are not supported")
    server.wrong("channel_creds", "must offer 'tls' or 'insecure'")
    return Insecure()


def _token_file(server: Reader, uri: str, notes: list[str]) -> str:
    """The token file of the first `call_creds` of a supported type (A97), else an empty text; those of other types are
    added to `notes`.
    """
    for each in server.members("call_creds"):
        if each.text("type") == "jwt_token_file":
            config = each.member("config")
            path = config.text("jwt_token_file")
            if not path:
                config.wrong("jwt_token_file", "must be given")
            return path
        notes.append(f"{uri}: call_creds of type '{each.text('type')}' are not supported")
    return ""


def _feature(word: str, uri: str, notes: list[str]) -> ServerFeature | None:
    if word in {each.value for each in ServerFeature}:
        feature = ServerFeature(word)
        if feature is ServerFeature.IGNORE_RESOURCE_DELETION:
            notes.append(f"{uri}: '{word}' is deprecated by gRFC A88 and has no effect where A88 is on")
        return feature
    if word in _MISSPELT:
        notes.append(f"{uri}: '{word}' is read by no client; write '{_MISSPELT[word]}'")
    elif word not in _KNOWN_ELSEWHERE:
        notes.append(f"{uri}: the server feature '{word}' is unknown and ignored")
    return None

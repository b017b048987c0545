"""Channels to xDS servers. TLS material and tokens are read for every connection, so that they can rotate."""

from ipaddress import ip_address
from pathlib import Path

import grpc

from xdsclient.bootstrap import Insecure, Server, Tls

_OPTIONS = (
    # Every attempt is a new connection; its pace is the engine's, not that of a shared subchannel's own back-off.
    ("grpc.use_local_subchannel_pool", 1),
    # What gRPC's own xDS client uses; servers take shorter intervals for an attack.
    ("grpc.keepalive_time_ms", 300_000),
    ("grpc.primary_user_agent", "parley-xdsclient"),
)

Metadata = tuple[tuple[str, str], ...]


class CredentialsError(Exception):
    """The credentials cannot be used now; the text says why. Another attempt may find better files."""


def open_channel(server: Server) -> grpc.aio.Channel:
    """A new channel to a server. Raises CredentialsError when its TLS files cannot be used."""
    if isinstance(server.credentials, Insecure):
        return grpc.aio.insecure_channel(server.uri, options=_OPTIONS)
    return grpc.aio.secure_channel(server.uri, _tls(server.credentials), options=_OPTIONS)


def call_metadata(server: Server) -> Metadata:
    """The metadata for every stream to this server: a bearer token if it has a token file, else nothing. Raises
    CredentialsError when the file holds no token, or the token would be sent without TLS to another machine.
    """
    if not server.token_file:
        return ()
    # A token on an open wire is everybody's (interfaces.md: off loopback only over TLS).
    if isinstance(server.credentials, Insecure) and not _is_loopback(server.uri):
        raise CredentialsError(f"the token for {server.uri} is sent over TLS only")
    token = _read(server.token_file).decode("ascii", "replace").strip()
    if not token or not token.isprintable() or " " in token:
        raise CredentialsError(f"{server.token_file} holds no token")
    return (("authorization", f"Bearer {token}"),)


def _tls(tls: Tls) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=_read(tls.ca_certificate_file) if tls.ca_certificate_file else None,
        private_key=_read(tls.private_key_file) if tls.private_key_file else None,
        certificate_chain=_read(tls.certificate_file) if tls.certificate_file else None,
    )


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CredentialsError(f"{path} cannot be read: {error.strerror}") from error


def _is_loopback(uri: str) -> bool:
    if uri.startswith("unix:"):
        return True
    host = uri.rpartition("/")[2].rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False

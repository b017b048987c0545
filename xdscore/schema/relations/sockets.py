"""What is refused of transport sockets although each field by itself keeps its rule. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from xdscore.schema.relations.said import Rule, Said, together
from xdscore.schema.walk import AnyMessage

# The last two are extensions, which may have certificates of their own.
_BRING_CERTIFICATES: Final = ("tls_certificate", "custom_tls_certificate_selector", "custom_handshaker")


def _socket(socket: AnyMessage) -> Iterator[Said]:
    if not socket.typed_config.type_url:
        yield together(("typed_config",), "is needed by a transport socket; its name alone says nothing")


def _server(context: AnyMessage) -> Iterator[Said]:
    listed = {field.name for field, _ in context.common_tls_context.ListFields()}
    if not any(name.startswith(_BRING_CERTIFICATES) for name in listed):
        yield together(
            ("common_tls_context", "tls_certificates"),
            "is needed by a server, or another field with certificates",
        )
    elif {"tls_certificates", "tls_certificate_sds_secret_configs"} <= listed:
        yield together(
            ("common_tls_context", "tls_certificates"),
            "cannot be given together with 'tls_certificate_sds_secret_configs'",
        )


RULES: Final[Mapping[str, Rule]] = {
    "envoy.config.core.v3.TransportSocket": _socket,
    "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext": _server,
}
"""The rules by the full name of the message that each is about."""

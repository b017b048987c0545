"""Texts that Envoy fills in: `%COMMAND(ARGUMENT):LENGTH%` among plain text, `%%` for a percent sign. Pure.

The commands are those of Envoy 1.40 (its `source/extensions/formatter` and `source/common/formatter`). An operator's
own Envoy may know more: by `formatters` beside a format, where unknown commands are let pass.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from xdscore.schema.codes import COMMAND_UNKNOWN, FORMAT
from xdscore.schema.positions import Path
from xdscore.schema.relations.said import Rule, Said
from xdscore.schema.walk import AnyMessage

# Commands by what they take; asked of the program itself, not of its sources (tests/golden/test_relations.py).
_BARE: Final = frozenset(
    """
    ACCESS_LOG_TYPE BYTES_RECEIVED BYTES_RETRANSMITTED BYTES_SENT CONNECTION_ID CONNECTION_TERMINATION_DETAILS
    CUSTOM_FLAGS DOWNSTREAM_CX_RTT DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED
    DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT DOWNSTREAM_DETECTED_CLOSE_TYPE DOWNSTREAM_DIRECT_LOCAL_ADDRESS
    DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID DOWNSTREAM_DIRECT_LOCAL_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS
    DOWNSTREAM_DIRECT_REMOTE_PORT DOWNSTREAM_HANDSHAKE_DURATION DOWNSTREAM_HEADER_BYTES_RECEIVED
    DOWNSTREAM_HEADER_BYTES_SENT DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID
    DOWNSTREAM_LOCAL_CLOSE_REASON DOWNSTREAM_LOCAL_DNS_SAN DOWNSTREAM_LOCAL_EMAIL_SAN DOWNSTREAM_LOCAL_IP_SAN
    DOWNSTREAM_LOCAL_OTHERNAME_SAN DOWNSTREAM_LOCAL_PORT DOWNSTREAM_LOCAL_SUBJECT DOWNSTREAM_LOCAL_URI_SAN
    DOWNSTREAM_PEER_CERT DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1 DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256
    DOWNSTREAM_PEER_CHAIN_SERIALS DOWNSTREAM_PEER_DNS_SAN DOWNSTREAM_PEER_EMAIL_SAN DOWNSTREAM_PEER_FINGERPRINT_1
    DOWNSTREAM_PEER_FINGERPRINT_256 DOWNSTREAM_PEER_IP_SAN DOWNSTREAM_PEER_ISSUER
    DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256 DOWNSTREAM_PEER_ISSUER_SERIAL DOWNSTREAM_PEER_OTHERNAME_SAN
    DOWNSTREAM_PEER_SERIAL DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_REMOTE_ADDRESS
    DOWNSTREAM_REMOTE_PORT DOWNSTREAM_TLS_CIPHER DOWNSTREAM_TLS_GROUP DOWNSTREAM_TLS_SESSION_ID
    DOWNSTREAM_TLS_VERSION DOWNSTREAM_TRANSPORT_FAILURE_REASON DOWNSTREAM_WIRE_BYTES_RECEIVED
    DOWNSTREAM_WIRE_BYTES_SENT DURATION FILTER_CHAIN_NAME GRPC_STATUS_NUMBER HOSTNAME LISTENER_NAME LOCAL_REPLY_BODY
    PACKETS_RETRANSMITTED PROTOCOL REQUEST_DURATION REQUEST_HEADERS_BYTES REQUEST_TX_DURATION RESPONSE_CODE
    RESPONSE_DURATION RESPONSE_FLAGS RESPONSE_FLAGS_LONG RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES
    RESPONSE_TX_DURATION ROUNDTRIP_DURATION ROUTE_NAME ROUTE_RESOLUTION_COUNT ROUTE_RESOLUTION_TIME_US SPAN_ID
    STREAM_ID TLS_JA3_FINGERPRINT TLS_JA4_FINGERPRINT TRACE_ID UNIQUE_ID UPSTREAM_CLUSTER UPSTREAM_CLUSTER_RAW
    UPSTREAM_CONNECTION_ID UPSTREAM_CONNECTION_IDS_ATTEMPTED UPSTREAM_CONNECTION_POOL_READY_DURATION
    UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT UPSTREAM_DETECTED_CLOSE_TYPE
    UPSTREAM_HEADER_BYTES_RECEIVED UPSTREAM_HEADER_BYTES_SENT UPSTREAM_HOST UPSTREAM_HOSTS_ATTEMPTED
    UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT UPSTREAM_HOST_NAME UPSTREAM_HOST_NAMES_ATTEMPTED
    UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_LOCAL_ADDRESS
    UPSTREAM_LOCAL_CLOSE_REASON UPSTREAM_LOCAL_DNS_SAN UPSTREAM_LOCAL_IP_SAN UPSTREAM_LOCAL_PORT
    UPSTREAM_LOCAL_URI_SAN UPSTREAM_PEER_CERT UPSTREAM_PEER_DNS_SAN UPSTREAM_PEER_IP_SAN UPSTREAM_PEER_ISSUER
    UPSTREAM_PEER_SUBJECT UPSTREAM_PEER_URI_SAN UPSTREAM_PROTOCOL UPSTREAM_REMOTE_ADDRESS
    UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID UPSTREAM_REMOTE_PORT UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_SERVER_NAME
    UPSTREAM_TLS_CIPHER UPSTREAM_TLS_GROUP UPSTREAM_TLS_SESSION_ID UPSTREAM_TLS_VERSION
    UPSTREAM_TRANSPORT_FAILURE_REASON UPSTREAM_WIRE_BYTES_RECEIVED UPSTREAM_WIRE_BYTES_SENT VIRTUAL_CLUSTER_NAME
    """.split()  # noqa: SIM905 - as a list of texts it would be four times as long
)
_MAY_HAVE_ARGUMENT: Final = frozenset(
    """
    DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT
    DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_PEER_CERT_V_END DOWNSTREAM_PEER_CERT_V_START
    DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT EMIT_TIME EMIT_TIME_LOCAL GRPC_STATUS PATH QUERY_PARAMS
    REQUESTED_SERVER_NAME RESPONSE_CODE_DETAILS START_TIME START_TIME_LOCAL UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT
    UPSTREAM_PEER_CERT_V_END UPSTREAM_PEER_CERT_V_START UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT
    """.split()  # noqa: SIM905 - as a list of texts it would be four times as long
)
_NEED_ARGUMENT: Final = frozenset(
    """
    CEL CLUSTER_METADATA COALESCE COMMON_DURATION DYNAMIC_METADATA ENVIRONMENT FILTER_STATE METADATA
    PER_REQUEST_STATE QUERY_PARAM REQ REQUEST_HEADER RESP RESPONSE_HEADER RESPONSE_TRAILER STREAM_INFO_REQ TRAILER
    UPSTREAM_FILTER_STATE UPSTREAM_METADATA XFCC_VALUE
    """.split()  # noqa: SIM905 - as a list of texts it would be four times as long
)
_MAY_HAVE_LENGTH: Final = frozenset(
    """
    CEL COALESCE DYNAMIC_METADATA ENVIRONMENT FILTER_STATE METADATA PATH PER_REQUEST_STATE QUERY_PARAM QUERY_PARAMS
    REQ REQUEST_HEADER RESP RESPONSE_HEADER RESPONSE_TRAILER STREAM_INFO_REQ TRAILER UPSTREAM_FILTER_STATE
    XFCC_VALUE
    """.split()  # noqa: SIM905 - as a list of texts it would be four times as long
)
COMMANDS: Final = _BARE | _MAY_HAVE_ARGUMENT | _NEED_ARGUMENT
"""The names of all commands."""
# The commands whose argument is the name of a header, or two with a question mark between them.
_OF_HEADERS: Final = frozenset(
    ["REQ", "RESP", "TRAILER", "REQUEST_HEADER", "RESPONSE_HEADER", "RESPONSE_TRAILER", "STREAM_INFO_REQ"]
)
_HEADER_NAME: Final = re.compile(r":?[!#$%&'*+.^_|~0-9A-Za-z`-]*")
_COMMAND: Final = re.compile(r"(?s)%([A-Z0-9_]+)(?:\((.*?)\))?(?::([0-9]{1,19}))?%")
_MAX_NAME: Final = 60  # no command is longer; difflib is quadratic


def judged(text: str, place: Path, *, others: bool = False) -> Iterator[Said]:
    """What is wrong with the format at `place`, at most one thing. `others`: commands that are not known here are let
    pass.
    """
    at = text.find("%")
    while at >= 0:
        if text.startswith("%%", at):
            after = at + 2
        else:
            found = _COMMAND.match(text, at)
            if found is None:
                yield Said(place, FORMAT, {"problem": f"has a '%' at character {at + 1:,} that begins no command"})
                return
            if found[1] not in COMMANDS:
                if not others:
                    yield Said(place, COMMAND_UNKNOWN, {"character": f"{at + 1:,}", "meant": _meant(found[1])})
                    return
            elif problem := _command_problem(found[1], found[2] or "", length=found[3] is not None):
                yield Said(place, FORMAT, {"problem": f"has a command at character {at + 1:,} that {problem}"})
                return
            after = found.end()
        at = text.find("%", after)


def _command_problem(name: str, argument: str, *, length: bool) -> str:
    problem = ""
    if argument and name in _BARE:
        problem = "takes no argument"
    elif not argument and name in _NEED_ARGUMENT:
        problem = "needs an argument"
    elif length and name not in _MAY_HAVE_LENGTH:
        problem = "takes no length"
    elif name in _OF_HEADERS and not _names_headers(argument):
        problem = "needs the name of a header, or two with a '?' between them"
    return f"{problem}, {name}" if problem else ""


def _meant(name: str) -> str:
    close = get_close_matches(name[:_MAX_NAME], sorted(COMMANDS), 1)
    return f"; it knows {close[0]}" if close else ""


def _names_headers(argument: str) -> bool:
    headers = argument.split("?")
    return len(headers) <= 2 and all(map(_HEADER_NAME.fullmatch, headers))


def _text(field: str, *, formatters: str = "") -> Rule:
    """The rule of a field that is a format, or a list of them. `formatters`: the field of more commands."""

    def rule(message: AnyMessage) -> Iterator[Said]:
        others = bool(formatters and getattr(message, formatters))
        yield from judged(getattr(message, field), (field,), others=others)

    return rule


def _struct(field: str, *, formatters: str = "") -> Rule:
    """The rule of a field that is a google.protobuf.Struct whose texts are formats."""

    def rule(message: AnyMessage) -> Iterator[Said]:
        others = bool(formatters and getattr(message, formatters))
        yield from _in_struct(getattr(message, field), (field,), others=others)

    return rule


def _in_struct(struct: AnyMessage, place: Path, *, others: bool) -> Iterator[Said]:
    for key in sorted(struct.fields):
        yield from _in_value(struct.fields[key], (*place, key), others=others)


def _in_value(value: AnyMessage, place: Path, *, others: bool) -> Iterator[Said]:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        yield from judged(value.string_value, place, others=others)
    elif kind == "struct_value":
        yield from _in_struct(value.struct_value, place, others=others)
    elif kind == "list_value":
        for index, each in enumerate(value.list_value.values):
            yield from _in_value(each, (*place, index), others=others)


def _substitution(format_string: AnyMessage) -> Iterator[Said]:
    others = bool(format_string.formatters)
    source = format_string.text_format_source
    yield from judged(format_string.text_format, ("text_format",), others=others)
    yield from judged(source.inline_string, ("text_format_source", "inline_string"), others=others)
    inline = source.inline_bytes.decode("utf-8", "replace")
    yield from judged(inline, ("text_format_source", "inline_bytes"), others=others)
    yield from _in_struct(format_string.json_format, ("json_format",), others=others)


def _rules(*rules: Rule) -> Rule:
    def every(message: AnyMessage) -> Iterator[Said]:
        for rule in rules:
            yield from rule(message)

    return every


_ACCESS_LOG: Final = "envoy.extensions.access_loggers."
_ROUTE: Final = "envoy.config.route.v3."
_MANAGER: Final = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
RULES: Final[Mapping[str, Rule]] = {
    _ACCESS_LOG + "file.v3.FileAccessLog": _rules(
        _text("format"), _struct("json_format"), _struct("typed_json_format")
    ),
    _ACCESS_LOG + "fluentd.v3.FluentdAccessLogConfig": _struct("record", formatters="formatters"),
    "envoy.config.core.v3.SubstitutionFormatString": _substitution,
    _MANAGER + ".Tracing": _rules(_text("operation"), _text("upstream_operation")),
    "envoy.extensions.filters.http.oauth2.v3.OAuth2Config": _text("redirect_uri"),
    "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.TunnelingConfig": _text("hostname"),
    _ROUTE + "RouteAction": _rules(_text("host_rewrite"), _text("path_rewrite")),
    _ROUTE + "Tracing": _rules(_text("operation"), _text("upstream_operation")),
    "envoy.type.tracing.v3.CustomTag": _text("value"),
}
"""The rules by the full name of the message that each is about."""

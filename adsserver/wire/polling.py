"""Discovery requests and responses in JSON, as clients that poll over REST speak it. Called by `rest`.

A resource is put into JSON once, whoever it is for, and its text is shared by all answers that hold it (performance.md
law 1). It takes protobuf's Python ten times as long as to parse it: so the texts of an answer are made one by one, with
room for others in between.
"""

import importlib
import json
from collections.abc import Sequence
from hashlib import blake2b
from json.decoder import JSONDecodeError
from typing import Any, Final

from envoy.service.discovery.v3 import discovery_pb2
from google.api import annotations_pb2
from google.protobuf import json_format
from google.protobuf.message import DecodeError

from adsserver.engine.events import SotwRequest, Variant
from adsserver.engine.poll import Answer
from adsserver.ports import Contents
from adsserver.wire.discovery import ERROR_DOMAIN, Incoming, MalformedRequestError, incoming_of
from adsserver.wire.recent import Recent
from xdscore.codes import shown
from xdscore.errors import ResourceError
from xdscore.limits import Limits
from xdscore.resource_types import RESOURCE_TYPES, ResourceType
from xdscore.schema import to_json_for_clients
from xdscore.snapshot import Content

# About three full states of the largest allowed size: JSON takes some three times the bytes.
_MAX_TEXT_BYTES: Final = 32 * 1024 * 1024
# Polls that were read: of some 10,000 subscriptions.
_MAX_POLL_BYTES: Final = 32 * 1024 * 1024
_ENTRY_BYTES: Final = 1_000
# Larger ones take more than a slice of the loop (some 20 ms).
_LARGE_BYTES: Final = 16 * 1024
_SHOWN_CHARS: Final = 200
_ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
# What is read of a poll, by both spellings that JSON has of a field. All else that Envoy says of itself (the names of
# its extensions, some 40 KiB) decides nothing here, and newer clients say more than anybody knows.
_READ: Final = {
    "version_info": "version_info",
    "versionInfo": "version_info",
    "node": "node",
    "resource_names": "resource_names",
    "resourceNames": "resource_names",
    "resource_locators": "resource_locators",
    "resourceLocators": "resource_locators",
    "type_url": "type_url",
    "typeUrl": "type_url",
    "response_nonce": "response_nonce",
    "responseNonce": "response_nonce",
    "error_detail": "error_detail",
    "errorDetail": "error_detail",
}
_READ_OF: Final = {
    "node": frozenset(
        {
            "id",
            "cluster",
            "metadata",
            "user_agent_name",
            "userAgentName",
            "user_agent_version",
            "userAgentVersion",
            "user_agent_build_version",
            "userAgentBuildVersion",
        }
    ),
    # Its details may be of types that nobody here knows.
    "error_detail": frozenset({"code", "message"}),
}
# A build version's metadata are of no use and may be large.
_VERSION_ONLY: Final = frozenset({"version"})


def _paths() -> dict[str, ResourceType]:
    """By its path over REST, each type that has one: the API says it with the Fetch method of the type's service."""
    found = {}
    for kind in RESOURCE_TYPES:
        if not kind.service:
            continue
        module, _, name = kind.service.partition(":")
        for method in importlib.import_module(module).DESCRIPTOR.services_by_name[name].methods:
            path = method.GetOptions().Extensions[annotations_pb2.http].post
            if path and not method.client_streaming:
                found[path] = kind
    return found


PATHS: Final = _paths()
"""The paths that are polled, `/v3/discovery:clusters` and so on, and the type that each serves."""


def read_poll(body: bytes, kind: ResourceType, limits: Limits) -> Incoming:
    """The DiscoveryRequest in a JSON body, for a path that serves one type. Raises MalformedRequestError and
    OversizedRequestError as `wire.discovery.decode` does.
    """
    tree = _object(body)
    message = discovery_pb2.DiscoveryRequest()
    try:
        json_format.ParseDict(_of_interest(tree), message, ignore_unknown_fields=True)
    except (json_format.ParseError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = shown(" ".join(str(error).split()), _SHOWN_CHARS)
        raise MalformedRequestError(f"The body is not a DiscoveryRequest in JSON: {reason}") from error
    return incoming_of(message, Variant.SOTW, kind, limits)


class PollReader:
    """Reads polls on the event loop; one with the same bytes as one before is read once. A client that has what there
    is sends the same again and again, with all that its Envoy says of itself: to read it takes a millisecond.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: Recent[tuple[bytes, ResourceType], Incoming] = Recent(_MAX_POLL_BYTES, _kept_bytes)

    def read(self, body: bytes, kind: ResourceType) -> Incoming:
        """The poll in this body, as the function `read_poll` reads it."""
        key = blake2b(body, digest_size=16).digest(), kind
        known = self._known.get(key)
        if known is not None:
            return known
        return self._known.put(key, read_poll(body, kind, self._limits))


def _kept_bytes(incoming: Incoming) -> int:
    names = incoming.request.names if isinstance(incoming.request, SotwRequest) else ()
    return _ENTRY_BYTES + sum(map(str.__sizeof__, names)) + (incoming.node.kept_bytes if incoming.node else 0)


def _object(body: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise MalformedRequestError(f"The body is not JSON: {error.msg} at {where}.") from error
    except UnicodeDecodeError as error:
        raise MalformedRequestError(f"The body is not UTF-8: byte {error.start} is none.") from error
    except RecursionError as error:
        raise MalformedRequestError("The body nests too deeply.") from error
    except ValueError as error:
        raise MalformedRequestError(f"The body cannot be read: {shown(str(error), _SHOWN_CHARS)}.") from error
    if not isinstance(tree, dict):
        raise MalformedRequestError("The body is not a JSON object; send a DiscoveryRequest in JSON.")
    return tree


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Of two values none is chosen (reliability threat 4).
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return tree


def _no_constant(word: str) -> object:
    raise ValueError(f"{word} is no JSON")


def _of_interest(tree: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        field = _READ.get(key)
        if field is None:
            continue
        if field in found:
            raise MalformedRequestError(f"The body has '{field}' in both of its spellings; send one.")
        wanted = _READ_OF.get(field)
        if wanted is not None and isinstance(value, dict):
            value = {name: _only(name, each) for name, each in value.items() if name in wanted}  # noqa: PLW2901
        found[field] = value
    return found


def _only(name: str, value: Any) -> Any:
    if name in {"user_agent_build_version", "userAgentBuildVersion"} and isinstance(value, dict):
        return {key: each for key, each in value.items() if key in _VERSION_ONLY}
    return value


class JsonTexts:
    """The texts of resources in JSON, each made once and kept as long as there is room. `text` may be called on any
    thread, everything else on the event loop.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._known: Recent[bytes, bytes] = Recent(_MAX_TEXT_BYTES, len)

    def known(self, content: Content) -> bytes | None:
        """The text of this content, if it is kept."""
        return self._known.get(content.blob)

    def is_large(self, content: Content) -> bool:
        """Whether the text of this content takes too long to make on the event loop."""
        return content.size >= _LARGE_BYTES

    def any_bytes(self, content: Content) -> bytes:
        """The bytes that `text` makes a text of. Raises as `ports.Contents.any_bytes` does."""
        return self._contents.any_bytes(content)

    @staticmethod
    def text(data: bytes) -> bytes:
        """The JSON of a serialised Any. Raises TypeError, ValueError or DecodeError where JSON cannot say it: it holds
        a message of a type that nobody here knows.
        """
        return _dumped(to_json_for_clients(data))

    def keep(self, kind: ResourceType, content: Content, text: bytes) -> None:
        """Keep a text for the next answer; not that of a secret, which is decrypted anew each time (decisions A8)."""
        if not kind.secret and self._known.get(content.blob) is None:
            self._known.put(content.blob, text)


UNSPEAKABLE: Final = (TypeError, ValueError, DecodeError, RecursionError)
"""What is raised for content that JSON cannot say."""


class JsonEncoder:
    """Turns answers into JSON. `identifier`: as that of `wire.discovery.Encoder`."""

    def __init__(self, identifier: str) -> None:
        self._control_plane = _dumped({"identifier": identifier})

    def encode(self, answer: Answer, texts: Sequence[bytes], untold: Sequence[ResourceError]) -> bytes:
        """The bytes of a DiscoveryResponse in JSON. `texts`: those of the answer's resources; `untold`: why those that
        JSON cannot say are missing.
        """
        fields = [
            b'"version_info":' + _dumped(answer.version),
            b'"resources":[' + b",".join(texts) + b"]",
            b'"type_url":' + _dumped(answer.kind.url),
            b'"nonce":' + _dumped(answer.nonce),
            b'"control_plane":' + self._control_plane,
        ]
        errors = (*answer.errors, *untold)
        if errors:
            fields.append(b'"resource_errors":[' + b",".join(map(_error, errors)) + b"]")
        return b"{" + b",".join(fields) + b"}\n"


def _error(error: ResourceError) -> bytes:
    details = [{"@type": _ERROR_INFO, "reason": error.xds_code, "domain": ERROR_DOMAIN}]
    status = {"code": int(error.code), "message": error.text, "details": details}
    return _dumped({"resource_name": {"name": error.name}, "error_detail": status})


def _dumped(tree: object) -> bytes:
    return json.dumps(tree, separators=(",", ":")).encode()

"""What a client knows, as the Client Status Discovery Service says it (gRFC A40, with the states of A88)."""

import asyncio
import time
from typing import Any

import grpc
from envoy.service.status.v3 import csds_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from xdsclient.client import XdsClient
from xdsclient.engine.entry import INVALID
from xdsclient.engine.values import CacheEntry, Resource
from xdsclient.wire import node_message
from xdscore.redaction import secrets_of, without_secrets
from xdscore.resource_types import ResourceType
from xdscore.schema import redact, secret_values

_SERVICE = "envoy.service.status.v3.ClientStatusDiscoveryService"

# In place of words of which nobody can say that they quote no secret.
_NOT_SHOWN = (
    "what is wrong is not shown, for the content cannot be read, or its secrets cannot be taken out of the error"
)

# Generated messages; their fields are known by descriptor only.
ClientConfig = Any
GenericXdsConfig = Any
Context = Any


class UnsupportedMatcherError(ValueError):
    """The CSDS request has matchers that choose among nodes, but a client can answer only for itself."""


def client_config(client: XdsClient, *, contents: bool = True) -> ClientConfig:
    """The part of a CSDS answer that is about this client: every resource it knows at this moment, with secrets
    redacted; without `contents`, only names, states and errors. Call it on the client's event loop.
    """
    config = csds_pb2.ClientConfig(client_scope=client.target)
    config.node.CopyFrom(node_message(client.bootstrap.node))
    # Entries keep the loop's time, which does not know what day it is.
    clock_offset_s = time.time() - asyncio.get_running_loop().time()
    for entry in client.cache():
        config.generic_xds_configs.append(_generic(entry, clock_offset_s, contents=contents))
    return config


def client_status(request: bytes, *clients: XdsClient) -> bytes:
    """The bytes of the answer to a serialised ClientStatusRequest. Raises UnsupportedMatcherError, and DecodeError when
    it cannot be parsed.
    """
    asked = csds_pb2.ClientStatusRequest.FromString(request)
    if asked.node_matchers:
        # A40: "node_matchers: unsupported, the request fails".
        raise UnsupportedMatcherError("a client answers for itself only: node_matchers must be empty")
    contents = not asked.exclude_resource_contents
    answer = csds_pb2.ClientStatusResponse(config=[client_config(each, contents=contents) for each in clients])
    data: bytes = answer.SerializeToString()
    return data


def add_client_status_service(server: grpc.aio.Server, *clients: XdsClient) -> None:
    """Register CSDS with a grpc.aio server that runs on the event loop of these clients."""

    async def answer(request: bytes, context: Context) -> bytes:
        try:
            return client_status(request, *clients)
        except (UnsupportedMatcherError, DecodeError) as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise

    async def stream(_: object, context: Context) -> None:
        while isinstance(request := await context.read(), bytes):
            await context.write(await answer(request, context))

    unary: Any = grpc.unary_unary_rpc_method_handler
    streaming: Any = grpc.stream_stream_rpc_method_handler
    handlers = {"FetchClientStatus": unary(answer), "StreamClientStatus": streaming(stream)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))


def _generic(entry: CacheEntry, clock_offset_s: float, *, contents: bool) -> GenericXdsConfig:
    """One cache entry as CSDS shows it: its state, its resource, if any, and its most recent error, if any (A88).
    `clock_offset_s` is added to the client's clock to make Unix time; without `contents` no content is shown.
    """
    kind = entry.key.kind
    config = csds_pb2.ClientConfig.GenericXdsConfig(type_url=kind.url, name=entry.key.name)
    config.client_status = entry.state.value
    config.last_updated.FromMilliseconds(round((entry.updated_s + clock_offset_s) * 1000))
    if isinstance(entry.resource, Resource):
        config.version_info = entry.resource.version
        if contents:
            config.xds_config.CopyFrom(_shown(kind, entry.resource.raw))
    if not entry.error.ok:
        # CSDS has no place for the code, and gRPC writes the message alone.
        config.error_state.details = _details(entry)
        config.error_state.version_info = entry.error_version
        config.error_state.last_update_attempt.CopyFrom(config.last_updated)
        if contents and entry.rejected:
            config.error_state.failed_configuration.CopyFrom(_shown(kind, entry.rejected))
    return config


def _details(entry: CacheEntry) -> str:
    """The text of the entry's error without the secrets of the accepted and of the refused content, which it may quote.
    When these cannot be read, a text that says that the error is not shown.
    """
    url = entry.key.kind.url
    raws = [entry.rejected, entry.resource.raw if isinstance(entry.resource, Resource) else b""]
    anys = (AnyMessage(type_url=url, value=raw).SerializeToString() for raw in raws if raw)
    try:
        secrets = secrets_of(value for each in anys for value in secret_values(each))
    except (DecodeError, TypeError, ValueError, RecursionError):
        secrets = None
    if secrets is not None:
        return without_secrets(entry.error.message, secrets, names=(entry.key.name,))
    return f"{INVALID}: {_NOT_SHOWN}" if entry.rejected else _NOT_SHOWN


def _shown(kind: ResourceType, raw: bytes) -> AnyMessage:
    """The content `raw` with its secrets redacted; without any content when it cannot be read, since then its secrets
    cannot be found.
    """
    try:
        shown: Any = redact(AnyMessage(type_url=kind.url, value=raw))
    except (DecodeError, TypeError, ValueError, RecursionError):
        return AnyMessage(type_url=kind.url)
    packed: AnyMessage = shown
    return packed

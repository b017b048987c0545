"""An ADS server that says what a test tells it to, stream by stream, over real gRPC."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import grpc
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from xdscore.resource_types import TYPE_URL_PREFIX, ResourceType

SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
_WAIT_S = 10.0

# Generated messages; their fields are known by descriptor only.
Request = Any
Resource = Message | AnyMessage


@dataclass(eq=False)
class ScriptedStream:
    """A stream from the server's side; `node` is that of its first request."""

    delta: bool
    metadata: dict[str, str]
    node: Any = None
    requests: list[Request] = field(default_factory=list)
    unread: asyncio.Queue[Request] = field(default_factory=asyncio.Queue)
    to_send: asyncio.Queue[bytes | grpc.StatusCode] = field(default_factory=asyncio.Queue)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    end_text: str = ""
    nonce: int = 0

    async def request(self, kind: ResourceType) -> Request:
        """Wait for the next request of a type."""
        async with asyncio.timeout(_WAIT_S):
            while True:
                request = await self.unread.get()
                if request.type_url == kind.url:
                    return request

    def send(
        self,
        kind: ResourceType,
        *resources: Resource,
        errors: Iterable[tuple[str, int, str]] = (),
        removed: Iterable[str] = (),
        version: str = "",
    ) -> str:
        """Send a response; its nonce. In delta, resources get the response's version."""
        self.nonce += 1
        nonce, version = f"n{self.nonce}", version or f"v{self.nonce}"
        if self.delta:
            message: Any = discovery_pb2.DeltaDiscoveryResponse(
                system_version_info=version,
                resources=[_wrapped(each, kind, version) for each in resources],
                removed_resources=removed,
            )
        else:
            packed = [_packed(each) for each in resources]
            message = discovery_pb2.DiscoveryResponse(version_info=version, resources=packed)
        message.type_url, message.nonce = kind.url, nonce
        for name, code, text in errors:
            entry = message.resource_errors.add()
            entry.resource_name.name = name
            entry.error_detail.code, entry.error_detail.message = code, text
        self.to_send.put_nowait(message.SerializeToString())
        return nonce

    async def answered(self, kind: ResourceType, nonce: str) -> Request:
        """Wait for the request that answers the response with this nonce."""
        while (request := await self.request(kind)).response_nonce != nonce:
            pass
        return request

    def send_raw(self, data: bytes) -> None:
        self.to_send.put_nowait(data)

    async def end(self, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE, text: str = "the script ends it") -> None:
        self.end_text = text
        self.to_send.put_nowait(code)
        async with asyncio.timeout(_WAIT_S):
            await self.ended.wait()


class ScriptedAds:
    """A server on which streams wait, by node id, until the test takes them."""

    def __init__(self) -> None:
        self.address = ""
        self._waiting: dict[str, asyncio.Queue[ScriptedStream]] = {}
        # Streams that are ended before anything is read, and how.
        self.refuse_with: grpc.StatusCode | None = None

    async def stream(self, key: str) -> ScriptedStream:
        """Wait for the next stream of a node, or of what `key_of` says."""
        async with asyncio.timeout(_WAIT_S):
            return await self._queue(key).get()

    def key_of(self, request: Request) -> str:
        """The key under which the stream that begins with this request waits."""
        return str(request.node.id)

    def _queue(self, key: str) -> asyncio.Queue[ScriptedStream]:
        return self._waiting.setdefault(key, asyncio.Queue())

    async def serve(self, context: Any, *, delta: bool) -> None:
        if self.refuse_with is not None:
            await context.abort(self.refuse_with, "the script refuses streams")
        metadata = {str(key): str(value) for key, value in context.invocation_metadata() or ()}
        stream = ScriptedStream(delta, metadata)
        reading = asyncio.create_task(self._read(stream, context))
        try:
            while isinstance(item := await stream.to_send.get(), bytes):
                await context.write(item)
        finally:
            reading.cancel()
            stream.ended.set()
        await context.abort(item, stream.end_text)

    async def _read(self, stream: ScriptedStream, context: Any) -> None:
        kind = discovery_pb2.DeltaDiscoveryRequest if stream.delta else discovery_pb2.DiscoveryRequest
        while isinstance(data := await context.read(), bytes):
            request = kind.FromString(data)
            stream.requests.append(request)
            stream.unread.put_nowait(request)
            if stream.node is None:
                stream.node = request.node
                self._queue(self.key_of(request)).put_nowait(stream)
        stream.to_send.put_nowait(grpc.StatusCode.OK)


@asynccontextmanager
async def scripted_ads(
    credentials: grpc.ServerCredentials | None = None,
    address: str = "127.0.0.1:0",
    serve: ScriptedAds | None = None,
) -> AsyncIterator[ScriptedAds]:
    """Run a scripted server until the block ends."""
    scripted = serve or ScriptedAds()

    async def sotw(_: object, context: Any) -> None:
        await scripted.serve(context, delta=False)

    async def delta(_: object, context: Any) -> None:
        await scripted.serve(context, delta=True)

    make: Any = grpc.stream_stream_rpc_method_handler
    methods = {"StreamAggregatedResources": make(sotw), "DeltaAggregatedResources": make(delta)}
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    port = server.add_insecure_port(address) if credentials is None else server.add_secure_port(address, credentials)
    scripted.address = f"{address.rpartition(':')[0]}:{port}"
    await server.start()
    try:
        yield scripted
    finally:
        with suppress(asyncio.CancelledError):
            await server.stop(0)


def named(message: Resource, name: str, version: str = "") -> AnyMessage:
    """The resource in a `Resource` wrapper, under another name than its own."""
    wrapper = discovery_pb2.Resource(name=name, version=version)
    wrapper.resource.CopyFrom(_packed(message))
    return _packed(wrapper)


def broken(kind: ResourceType) -> AnyMessage:
    """An Any of this type whose bytes are no message."""
    return AnyMessage(type_url=kind.url, value=b"\xff\xff")


def _packed(resource: Resource) -> AnyMessage:
    if isinstance(resource, AnyMessage):
        return resource
    packed = AnyMessage()
    packed.Pack(resource, type_url_prefix=TYPE_URL_PREFIX.rstrip("/"))
    return packed


def _wrapped(resource: Resource, kind: ResourceType, version: str) -> Any:
    packed = _packed(resource)
    if packed.type_url.endswith("discovery.v3.Resource"):
        wrapper = discovery_pb2.Resource.FromString(packed.value)
        wrapper.version = wrapper.version or version
        return wrapper
    name = getattr(resource, kind.name_field, "")
    return discovery_pb2.Resource(name=name, version=version, resource=packed)

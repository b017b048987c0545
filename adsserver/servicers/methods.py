"""Every method this server has, in one table; whatever is not in it does not exist (reliability S1).

Each behaviour is called with the verified identity of its caller and never without: the check wraps all of them here,
so that no shape of call can go past it (reliability threat 1). In the same way each call counts for its caller and has
a time for its first request (threat 10): all of them are served as streams of requests, which on the wire is the same,
for gRPC itself would wait for the one request of a unary call for ever.
"""

import asyncio
import importlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeAlias

import grpc
from envoy.service.status.v3 import csds_pb2
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc

from adsserver.engine.events import Variant
from adsserver.identity.callers import Callers
from adsserver.identity.identification import Caller, Identify, Peer, UnauthenticatedError, UndecidedError
from adsserver.limits.budgets import OPENING_S, Budget, Budgets, RefusedStreamError
from adsserver.servicers.csds import StatusServicer
from adsserver.servicers.ends import End, StreamEndError, no_request
from adsserver.servicers.polls import Polls
from adsserver.servicers.reflection import V1, V1ALPHA, describer
from adsserver.servicers.shared import Context, Shared
from adsserver.servicers.stream import Stream
from xdscore.callers import caller_key
from xdscore.limits import Limits
from xdscore.resource_types import RESOURCE_TYPES, ResourceType

# Spelled as the services of single types are in the table of types.
_AGGREGATED = "envoy.service.discovery.v3.ads_pb2:AggregatedDiscoveryService"

_VARIANTS = {
    "envoy.service.discovery.v3.DiscoveryRequest": Variant.SOTW,
    "envoy.service.discovery.v3.DeltaDiscoveryRequest": Variant.DELTA,
}

NO_REQUEST = End(grpc.StatusCode.INVALID_ARGUMENT, "The call ended without a request.")

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Behaviour = Callable[[Any, Context, Caller], Awaitable[object]]


class MethodTable(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in grpc-stubs only
    """The server's methods by their full path, `/package.Service/Method`; `unknown` is the handler of every other
    path.
    """

    def __init__(self, methods: Mapping[str, Handler], unknown: Handler) -> None:
        self.methods = methods
        self._unknown = unknown

    @property
    def services(self) -> tuple[str, ...]:
        """The full names of the gRPC services that the server has."""
        return tuple(dict.fromkeys(path.split("/")[1] for path in self.methods))

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler:
        """The handler of a call, found by its path."""
        return self.methods.get(handler_call_details.method, self._unknown)


def method_table(
    shared: Shared,
    polls: Polls,
    identify: Identify,
    servicer: health_pb2_grpc.HealthServicer,
    status: StatusServicer,
    identify_reader: Identify,
) -> MethodTable:
    """All methods of the server. `identify_reader` identifies callers of the client status service (CSDS), who show an
    operator's API token; `identify` those of all others.
    """
    methods: dict[str, Handler] = {}
    names: list[str] = []
    for service, kind in _discovery_services():
        names.append(service.full_name)
        for method in service.methods:
            methods[f"/{service.full_name}/{method.name}"] = _discovery(shared, polls, identify, method, kind)
    service = csds_pb2.DESCRIPTOR.services_by_name["ClientStatusDiscoveryService"]
    names.append(service.full_name)
    for method in service.methods:
        methods[f"/{service.full_name}/{method.name}"] = _status(shared, status, identify_reader, method)
    collected = _Collector()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, collected)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(describer([*names, health.SERVICE_NAME]), collected)
    for path in [path for path in collected.methods if path.startswith(f"/{V1ALPHA}/")]:
        collected.methods[path.replace(V1ALPHA, V1)] = collected.methods[path]
    # The asyncio servicer registers this one but does not have it: each call would raise, and fill the log.
    del collected.methods[f"/{health.SERVICE_NAME}/List"]
    methods |= {path: _guarded(shared, identify, handler) for path, handler in collected.methods.items()}
    return MethodTable(methods, grpc.stream_stream_rpc_method_handler(_unknown(shared.budgets)))


def _discovery_services() -> Iterator[tuple[ServiceDescriptor, ResourceType | None]]:
    """Every discovery service with the type it serves; None: all types, aggregated (protocol.md A1)."""
    yield _service(_AGGREGATED), None
    for kind in RESOURCE_TYPES:
        if kind.service:
            yield _service(kind.service), kind


def _service(where: str) -> ServiceDescriptor:
    """The service that is spelled `generated module:name`."""
    module, _, name = where.partition(":")
    found: ServiceDescriptor = importlib.import_module(module).DESCRIPTOR.services_by_name[name]
    return found


def _discovery(
    shared: Shared, polls: Polls, identify: Identify, method: MethodDescriptor, kind: ResourceType | None
) -> Handler:
    # Bytes in, bytes out: without serialisers nothing of grpc touches the messages (performance.md law 1).
    if method.client_streaming:
        serve = _streaming(shared, _VARIANTS[method.input_type.full_name], kind)
        return grpc.stream_stream_rpc_method_handler(_checked(shared.budgets, identify, serve))
    if kind is None:
        raise ValueError(f"{method.full_name} serves no one type")
    return grpc.stream_stream_rpc_method_handler(_checked(shared.budgets, identify, _fetch(shared, polls, kind)))


def _streaming(shared: Shared, variant: Variant, kind: ResourceType | None) -> Behaviour:
    async def serve(_: object, context: Context, caller: Caller) -> None:
        await Stream(shared, context, variant, kind, caller).run()

    return serve


def _status(shared: Shared, status: StatusServicer, identify: Identify, method: MethodDescriptor) -> Handler:
    # Bytes here, too: what is large is parsed and serialised by the servicer's thread, not by the event loop.
    # As streams of requests, which on the wire is the same: gRPC itself would wait for the one of a unary call for
    # ever.
    serve = status.stream if method.client_streaming else status.fetch

    async def identify_both(context: Peer) -> Caller:
        caller = await identify(context)
        status.check(context)
        return caller

    return grpc.stream_stream_rpc_method_handler(_checked(shared.budgets, identify_both, serve))


def _fetch(shared: Shared, polls: Polls, kind: ResourceType) -> Behaviour:
    """The unary method of a service of one type: a poll (protocol.md D10), which is answered with all that is asked
    for, changed or not.
    """

    async def fetch(_: object, context: Context, caller: Caller) -> None:
        key = caller_key(caller.identity, context.peer())
        try:
            budget = await shared.budgets.admit_beside(key)
        except RefusedStreamError as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        try:
            async for data in _requests(context, budget, shared.limits):
                assert isinstance(data, bytes)  # noqa: S101 - there is no deserialiser
                given = await polls.answer_bytes(data, kind, caller, context.peer(), budget)
                await context.write(shared.encoder.encode(Variant.SOTW, given.answer.as_response()))
                return
            await context.abort(NO_REQUEST.code, NO_REQUEST.text)
        except StreamEndError as error:
            await context.abort(error.end.code, error.end.text)
        finally:
            shared.budgets.leave_beside(budget)

    return fetch


def _checked(budgets: Budgets, identify: Identify, serve: Behaviour) -> Callable[[object, Context], Awaitable[object]]:
    async def checked(request: object, context: Context) -> object:
        try:
            caller = await identify(context)
        except UnauthenticatedError as error:
            end = End(grpc.StatusCode.UNAUTHENTICATED, str(error))
        except UndecidedError as error:
            end = End(grpc.StatusCode.UNAVAILABLE, str(error))
        else:
            return await serve(request, context, caller)
        await _turn_away(budgets, context, end)
        return None

    return checked


def _unknown(budgets: Budgets) -> Callable[[object, Context], Awaitable[object]]:
    # gRPC would answer the same, and as often as anybody asks.
    async def unknown(_: object, context: Context) -> None:
        await _turn_away(budgets, context, End(grpc.StatusCode.UNIMPLEMENTED, "This server has no such method."))

    return unknown


async def _turn_away(budgets: Budgets, context: Context, end: End) -> None:
    """End a call whose caller proved no identity, or whose path is no method. It counts against the caller's address,
    so that a caller who tries again and again has to wait.
    """
    try:
        budget = await budgets.admit_beside(caller_key("", context.peer()))
    except RefusedStreamError as error:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
    try:
        budget.opened()
        if not budgets.short_of_memory():
            await budget.refusal_turn()
        await context.abort(end.code, end.text)
    finally:
        budgets.leave_beside(budget)


class _Collector:
    """Stands in for a gRPC server while generated code registers its handlers, so that they can be wrapped."""

    def __init__(self) -> None:
        self.methods: dict[str, Handler] = {}

    def add_generic_rpc_handlers(self, _: object) -> None:
        """Ignore the handlers given here: generated code registers the same ones by name, too."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Keep the handlers of a service under their full paths."""
        self.methods |= {f"/{service}/{name}": handler for name, handler in handlers.items()}


def _guarded(shared: Shared, identify: Identify, handler: Handler) -> Handler:
    """The handler behind a check of the caller's identity, and cut off when the caller's credential ends. A call that
    streams responses counts as a stream of the server (reliability S6); one with a single response does not, because a
    load balancer's health check must be answered by a full server.
    """
    inner: Any = handler.unary_unary or handler.unary_stream or handler.stream_stream
    plain = _plain(inner) if handler.request_streaming else _with_one_request(_plain(inner))
    serve = _while_valid(shared.callers, plain)
    placed = _admitted if handler.response_streaming else _counted
    return grpc.stream_stream_rpc_method_handler(
        _checked(shared.budgets, identify, placed(shared, serve)),
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )


def _admitted(shared: Shared, serve: Behaviour) -> Behaviour:
    """`serve` for calls that count as streams of the server: they wait to be let in, and are refused when the server is
    full (reliability F15).
    """

    async def admitted(_: object, context: Context, caller: Caller) -> object:
        try:
            budget = await shared.admission.enter(caller_key(caller.identity, context.peer()))
        except RefusedStreamError as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        try:
            return await _ended_well(context, serve(_requests(context, budget, shared.limits), context, caller))
        finally:
            shared.admission.leave(budget)

    return admitted


def _counted(shared: Shared, serve: Behaviour) -> Behaviour:
    """`serve` for calls that count against their caller but not as streams of the server (threat 10). They are served
    also while memory is short: a load balancer whose health check is not answered would send all streams of this server
    elsewhere.
    """

    async def counted(_: object, context: Context, caller: Caller) -> object:
        try:
            budget = await shared.budgets.admit_beside(caller_key(caller.identity, context.peer()))
        except RefusedStreamError as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        try:
            return await _ended_well(context, serve(_requests(context, budget, shared.limits), context, caller))
        finally:
            shared.budgets.leave_beside(budget)

    return counted


async def _ended_well(context: Context, work: Awaitable[object]) -> object:
    try:
        return await work
    except StreamEndError as error:
        return await context.abort(error.end.code, error.end.text)


async def _requests(context: Context, budget: Budget, limits: Limits) -> AsyncIterator[object]:
    """The requests of a call, each read when its caller's budget allows. Raises StreamEndError when the first does not
    come in time.
    """
    longest_s: float | None = limits.first_request_ms / 1000
    while True:
        budget.spend(OPENING_S)
        await budget.turn()
        try:
            async with asyncio.timeout(longest_s):
                request = await context.read()
        except TimeoutError:
            raise StreamEndError(no_request(limits.first_request_ms)) from None
        if request is grpc.aio.EOF:  # type: ignore[attr-defined]  # grpc-stubs do not know it
            return
        longest_s = None
        yield request


def _with_one_request(serve: Behaviour) -> Behaviour:
    """Make `serve`, which takes one request, take a call: read the call's only request, and write the response, if
    there is one.
    """

    async def one(requests: AsyncIterator[object], context: Context, caller: Caller) -> None:
        async for request in requests:
            answer: Any = await serve(request, context, caller)
            if answer is not None:
                await context.write(answer)
            return
        raise StreamEndError(NO_REQUEST)

    return one


def _while_valid(callers: Callers, serve: Behaviour) -> Behaviour:
    """`serve`, cut off with UNAUTHENTICATED when its caller's credential ends (reliability S2)."""

    async def bounded(request: object, context: Context, caller: Caller) -> object:
        writer = _Writer(context)
        work = asyncio.ensure_future(serve(request, writer, caller))  # type: ignore[arg-type]  # it is one in all but name
        reasons: list[str] = []

        def cut(reason: str) -> None:
            reasons.append(reason)
            writer.between_writes(work.cancel)

        release = callers.hold(caller, cut)
        try:
            return await work
        except asyncio.CancelledError:
            work.cancel()
            if not reasons:
                raise
        finally:
            release()
        return await context.abort(grpc.StatusCode.UNAUTHENTICATED, reasons[0])

    return bounded


class _Writer:
    """The context of a call, which also tells when no write is in progress. A status that is sent during a write is
    lost, and the client would wait for ever.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._writing = False
        self._then: Callable[[], object] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def between_writes(self, then: Callable[[], object]) -> None:
        """Call `then` as soon as nothing is being written."""
        self._then = then
        if not self._writing:
            then()

    async def write(self, message: bytes) -> None:
        """Write a message, and then call the function that `between_writes` was given meanwhile, if any."""
        self._writing = True
        try:
            await self._context.write(message)
        finally:
            self._writing = False
            if self._then is not None:
                self._then()


def _plain(inner: Callable[..., Any]) -> Behaviour:
    """A method that does not need to know its caller, in the form of those that do. What it yields as an asynchronous
    generator is written to the call.
    """
    if inspect.isasyncgenfunction(inner):

        async def write_out(request: object, context: Context, _: Caller) -> None:
            async for reply in inner(request, context):
                await context.write(reply)

        return write_out

    async def call(request: object, context: Context, _: Caller) -> object:
        answer: object = await inner(request, context)
        return answer

    return call

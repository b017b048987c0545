"""Runs scenarios against two clients at once: ours and gRPC C-core 1.85, on one scripted server, side by side.

Every scenario has a target of its own, and with it streams and caches of its own on both sides, so all of them run at
the same time. What is compared is what both say of themselves by CSDS.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from envoy.admin.v3 import config_dump_shared_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from tests.support.grpc_oracle import Oracle, grpc_oracle
from tests.support.scripted_ads import ScriptedAds, ScriptedStream, broken, named, scripted_ads
from tests.support.xds_resources import api_listener, assignment, eds_cluster, route
from xdsclient import Bootstrap, DataErrorHandling, XdsClient
from xdsclient.csds import client_config
from xdsclient.dependencies import DependencyManager
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType, by_url

CHAIN = (LISTENER, ROUTE, CLUSTER, ENDPOINT)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client says of one resource. `text` is its error's."""

    state: str
    version: str = ""
    text: str = ""


# By the short word of the type: each scenario has one resource of each.
Picture = dict[str, Seen]


class Hand:
    """Plays a scenario to both clients: every step is done when both have answered it."""

    def __init__(self, number: int, server: ScriptedAds) -> None:
        self.suffix = f".s{number}"
        self.service = self.name("svc")
        self._server = server
        self.streams: tuple[ScriptedStream, ...] = ()
        self._responses = 0

    def name(self, stem: str) -> str:
        return stem + self.suffix

    def names_of(self, kind: ResourceType) -> str:
        return self.name({LISTENER: "svc", ROUTE: "r", CLUSTER: "c", ENDPOINT: "c"}[kind])

    async def meet(self) -> None:
        """The next stream of each client."""
        self.streams = tuple(
            await asyncio.gather(*(self._server.stream(who + self.suffix) for who in ("ours", "core")))
        )

    def resource(self, kind: ResourceType, edition: int = 1) -> Any:
        """The scenario's resource of a type; editions differ and lead to the same resources."""
        name = self.names_of(kind)
        if kind is LISTENER:
            return api_listener(name, self.name("r"), stat_prefix=f"http{edition}")
        if kind is ROUTE:
            made = route(name, self.name("c"))
            made.virtual_hosts[0].name = f"edition{edition}"
            return made
        return eds_cluster(name, f"{edition}s") if kind is CLUSTER else assignment(name, edition)

    def bad(self, kind: ResourceType) -> AnyMessage:
        """The same with content that no client can read, under its name."""
        return named(broken(kind), self.names_of(kind))

    @staticmethod
    def nameless(kind: ResourceType) -> AnyMessage:
        """Content that no client can read, and that says no name."""
        return broken(kind)

    async def send(
        self,
        kind: ResourceType,
        *resources: Message,
        errors: Iterable[tuple[str, int, str]] = (),
        version: str = "",
    ) -> None:
        errors = list(errors)
        self._responses += 1
        version = version or f"v{self._responses}"
        await asyncio.gather(*(self._send(stream, kind, resources, errors, version) for stream in self.streams))

    @staticmethod
    async def _send(stream: ScriptedStream, kind: ResourceType, resources: Any, errors: Any, version: str) -> None:
        # A client's first answer to a parent may still be on its way: nothing is sent before it was asked for.
        if not any(request.type_url == kind.url for request in stream.requests):
            await stream.request(kind)
        await stream.answered(kind, stream.send(kind, *resources, errors=errors, version=version))

    async def load(self, upto: ResourceType) -> None:
        """Everything above a type, and the type itself."""
        for kind in CHAIN[: CHAIN.index(upto) + 1]:
            await self.send(kind, self.resource(kind))

    async def load_above(self, kind: ResourceType) -> None:
        for above in CHAIN[: CHAIN.index(kind)]:
            await self.send(above, self.resource(above))
        await asyncio.gather(*(self._asked(stream, kind) for stream in self.streams))

    @staticmethod
    async def _asked(stream: ScriptedStream, kind: ResourceType) -> None:
        if not any(request.type_url == kind.url for request in stream.requests):
            await stream.request(kind)

    async def error(self, kind: ResourceType, code: int, text: str = "because") -> None:
        await self.send(kind, errors=[(self.names_of(kind), code, text)])

    async def reconnect(self) -> None:
        """Both streams end, and both come back."""
        await asyncio.gather(*(stream.end() for stream in self.streams))
        await self.meet()


Play = Callable[[Hand], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """`features` and `guard` say with which bootstrap; `play` is what the server does."""

    name: str
    play: Play
    features: tuple[str, ...] = ()
    guard: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What each of the two said at the end."""

    ours: Picture
    core: Picture


class _ByScenario(ScriptedAds):
    """Streams by client and scenario: C-core has one node id for all its targets, but each names its own resources."""

    def key_of(self, request: Any) -> str:
        return f"{request.node.id}.{request.resource_names[0].rpartition('.')[2]}"


async def run_all(scenarios: list[Scenario]) -> dict[str, Outcome]:
    """Every scenario, all at once; the outcome of each by name."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(scripted_ads(serve=_ByScenario()))
        oracles: dict[tuple[tuple[str, ...], bool], Oracle] = {}
        for each in scenarios:
            if (each.features, each.guard) not in oracles:
                bootstrap = _bootstrap(server, each.features, "core")
                oracle = grpc_oracle(bootstrap, guard=each.guard)
                oracles[each.features, each.guard] = await stack.enter_async_context(oracle)
        outcomes = await asyncio.gather(
            *(_run(number, each, server, oracles[each.features, each.guard]) for number, each in enumerate(scenarios))
        )
    return {scenario.name: outcome for scenario, outcome in zip(scenarios, outcomes, strict=True)}


def _bootstrap(server: ScriptedAds, features: tuple[str, ...], node_id: str) -> dict[str, object]:
    described = {
        "server_uri": server.address,
        "channel_creds": [{"type": "insecure"}],
        "server_features": ["xds_v3", *features],
    }
    return {"xds_servers": [described], "node": {"id": node_id}}


async def _run(number: int, scenario: Scenario, server: ScriptedAds, oracle: Oracle) -> Outcome:
    hand = Hand(number, server)
    bootstrap = Bootstrap.parse(json.dumps(_bootstrap(server, scenario.features, "ours")))
    handling = DataErrorHandling.ON if scenario.guard else DataErrorHandling.OFF
    target = f"xds:///{hand.service}"
    async with XdsClient(bootstrap, target=target, data_errors=handling) as client:
        manager = DependencyManager(client, target, lambda _: None)
        await oracle.open(target)
        await hand.meet()
        await scenario.play(hand)
        # What hangs on the last answer (an unsubscription, say) takes a moment on both sides.
        await asyncio.sleep(0.2)
        outcome = Outcome(_picture(client_config(client)), _picture(await oracle.config(target)))
        manager.close()
    return outcome


def _picture(config: Any) -> Picture:
    picture: Picture = {}
    for entry in config.generic_xds_configs:
        state = config_dump_shared_pb2.ClientResourceStatus.Name(entry.client_status)
        if entry.HasField("xds_config") and state != "ACKED":
            state += "+resource"
        picture[by_url[entry.type_url].short] = Seen(state, entry.version_info, entry.error_state.details)
    return picture

"""What gRPC's own xDS clients do with what they had after they refused an update of it, for every type, and what it
does to them to be sent that again (docs/reference/after-a-nack.md; A88).

Every type has a target of its own that is called all the time; all clients live through everything at once.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest

from tests.support.backends import grpc_backend
from tests.support.grpc_client import simple_bootstrap
from tests.support.node_client import node_modules, why_no_node
from tests.support.puppet_ads import PuppetAds, puppet_ads
from tests.support.refusals import KINDS, Service
from tests.support.steady import Call, Steady, steady, steady_node
from tests.support.waiting import eventually
from xdscore.after_nack import AfterNack, after_nack
from xdscore.client_kinds import ClientFamily, family_of
from xdscore.resource_types import ResourceType

pytestmark = [pytest.mark.xdist_group("after-nack-grpc")]

RATE_PER_S: Final = 20.0
REFUSED_S: Final = 0.5
HEALED_S: Final = 2.0
FEATURE: Final = "fail_on_data_errors"


@dataclass(frozen=True, slots=True)
class Client:
    """How a process is set up; `drops`: it is told to fail on data errors, and understands that."""

    name: str
    family: ClientFamily
    feature: bool
    drops: bool = False
    tp3: bool = True

    def started(self, ads: PuppetAds) -> AbstractContextManager[Steady]:
        bootstrap: dict[str, Any] = simple_bootstrap(
            ads_port=ads.port, node_id=self.name, features=[FEATURE] if self.feature else []
        )
        if self.family is ClientFamily.GRPC_NODE:
            bootstrap["node"]["locality"] = {}
            return steady_node(node_modules(), TARGETS, rate_per_s=RATE_PER_S, bootstrap=bootstrap)
        return steady(TARGETS, rate_per_s=RATE_PER_S, bootstrap=bootstrap, tp3=self.tp3)


TARGETS: Final = [Service(kind.word, 0).target for kind in KINDS]
CORE, NODE = ClientFamily.GRPC_CORE, ClientFamily.GRPC_NODE
CLIENTS: Final = [
    Client("core", CORE, feature=False),
    Client("core-told-to-drop", CORE, feature=True, drops=True),
    # A88's behaviour has the same switch as TP3's.
    Client("core-without-tp3", CORE, feature=False, tp3=False),
    Client("core-without-tp3-told-to-drop", CORE, feature=True, tp3=False),
    Client("node-told-to-drop", NODE, feature=True),
]


@dataclass(frozen=True, slots=True)
class Row:
    """What a client did about a type: the texts of its two answers, empty for an ACK; how many calls failed before the
    update was refused, and after that; whether the last one before healing did; and for how long calls failed then.
    """

    to_refused: str
    to_healed: str
    failed_before: int
    failed: int
    failed_to_the_end: bool
    unhealed_s: float


Story = Mapping[tuple[Client, ResourceType], Row]


@pytest.fixture(scope="module")
def story() -> Story:
    """Everything is in use, then of each type one thing is refused, then what was acknowledged is sent again."""
    return asyncio.run(play([client for client in CLIENTS if client.family is not NODE or not why_no_node()]))


async def play(clients: list[Client]) -> Story:
    async with puppet_ads() as ads:
        with grpc_backend("parley") as port, ExitStack() as stack:
            services = {kind: Service(kind.word, port) for kind in KINDS}
            for kind in KINDS:
                ads.serve(kind, *(service.sound(kind) for service in services.values()))
            loads = {client: stack.enter_context(client.started(ads)) for client in clients}
            for load in loads.values():
                await asyncio.to_thread(load.flowing)

            refused_at = time.time()
            refused = {kind: await ads.tell(kind, service.refused(kind)) for kind, service in services.items()}
            await asyncio.sleep(REFUSED_S)
            healed_at = time.time()
            healed = {kind: await ads.tell(kind, service.sound(kind)) for kind, service in services.items()}
            for load in loads.values():
                await asyncio.to_thread(eventually, partial(serves, load), within_s=HEALED_S)

        for client in clients:
            assert {family_of(stream.node.user_agent_name) for stream in ads.streams(client.name)} == {client.family}
    return {
        (client, kind): row(
            load.of(service.target), refused[kind][client.name], healed[kind][client.name], refused_at, healed_at
        )
        for client, load in loads.items()
        for kind, service in services.items()
    }


def row(calls: Sequence[Call], to_refused: str, to_healed: str, refused_at: float, healed_at: float) -> Row:
    failed = [call for call in calls if call.code != "OK"]
    last = [call for call in calls if call.ended_at < healed_at][-1]
    return Row(
        to_refused=to_refused,
        to_healed=to_healed,
        failed_before=sum(call.ended_at < refused_at for call in failed),
        failed=len(failed),
        failed_to_the_end=last.code != "OK",
        unhealed_s=max((call.ended_at - healed_at for call in failed), default=0.0),
    )


def serves(load: Steady) -> bool:
    """Whether the last call to each target succeeded."""
    return all(load.of(target)[-1].code == "OK" for target in TARGETS)


@pytest.mark.shows("gRPC for Python (C-core)", "healed after a NACK", "SotW")
@pytest.mark.shows("gRPC for Node", "goes on with what it had after a NACK", "SotW")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.short)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_grpc__refuses_an_update__goes_on_with_what_it_had_or_drops_it_until_it_is_healed(
    story: Story, client: Client, kind: ResourceType
) -> None:
    if client.family is NODE and why_no_node():
        pytest.skip(why_no_node())

    row = story[client, kind]

    assert row.to_refused.startswith("xDS response validation errors: ")
    assert row.failed_before == 0
    assert (row.failed > 0) == row.failed_to_the_end == client.drops
    # What it had is acknowledged, and at once in use again.
    assert row.to_healed == ""
    assert row.unhealed_s < HEALED_S
    # What Parley says of such a client; what it cannot see is whether TP3 is switched on.
    unknown = AfterNack.MAY_DROP if client.family is CORE else AfterNack.KEEPS
    assert after_nack(client.family, kind, drops=None) is unknown
    assert after_nack(client.family, kind, drops=client.drops) is (unknown if client.drops else AfterNack.KEEPS)

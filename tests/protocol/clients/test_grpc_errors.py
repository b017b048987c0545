"""What gRPC's own xDS client makes of each error we can send: for every type, with and without a copy of the resource,
with and without `fail_on_data_errors`, with TP3 switched on and off (clients.md section 2).

Every case is a target of its own; four processes play all of them at once. The client's CSDS says what it believes.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Final

import pytest
from google.protobuf.message import Message

from tests.protocol.engine.world import name_rules
from tests.support.ads_thread import AdsThread, serving_ads
from tests.support.backends import grpc_backend
from tests.support.grpc_client import Believed, GrpcClient, Outcome, grpc_client, simple_bootstrap
from tests.support.waiting import eventually
from tests.support.xds_resources import api_listener, assignment, eds_cluster, route
from xdscore.access import Effect
from xdscore.errors import StatusCode
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceType

pytestmark = [pytest.mark.xdist_group("grpc-errors"), pytest.mark.timeout(120)]

ENVIRONMENT = "matrix"
# C-core's timer for a resource nobody says anything about; 15 s also where A88 wants 30 s (clients.md 2.1).
DOES_NOT_EXIST_S: Final = 15.0
RECOVERED_S = 5.0
DATA_ERRORS = {StatusCode.NOT_FOUND, StatusCode.PERMISSION_DENIED}


@dataclass(frozen=True, slots=True)
class Case:
    """One resource that a client cannot have, and everything above it."""

    kind: ResourceType
    code: StatusCode
    cached: bool

    @property
    def name(self) -> str:
        return f"{self.kind.word}-{self.code.name.lower()}-{'cached' if self.cached else 'new'}"

    @property
    def is_kept(self) -> bool:
        """Whether it stays in the full state: what is withheld is not taken from who acknowledged it (F18a)."""
        return self.cached and self.kind.full_state and self.code is StatusCode.INTERNAL

    @property
    def target(self) -> str:
        return f"xds:///{self.name}"


@dataclass(frozen=True, slots=True)
class Client:
    """How a process is set up."""

    tp3: bool
    fails: bool

    @property
    def name(self) -> str:
        return f"{'tp3' if self.tp3 else 'old'}-{'fails' if self.fails else 'keeps'}"


@dataclass(frozen=True, slots=True)
class Seen:
    """A call, and what the client believed of the resource at that time."""

    call: Outcome
    believed: Believed | None


CASES = [Case(*each) for each in product((LISTENER, ROUTE, CLUSTER, ENDPOINT), StatusCode, (True, False))]
CLIENTS = [Client(*each) for each in product((True, False), repeat=2)]
PLAYED = [(client, case) for client in CLIENTS for case in CASES]

every_case = pytest.mark.parametrize(
    ("client", "case"), PLAYED, ids=[f"{client.name}-{case.name}" for client, case in PLAYED]
)
Story = Mapping[tuple[Client, Case], Mapping[str, Seen]]


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """Everything that happened: at the `start`, in the `error`, after the `recovery`."""
    with serving_ads() as ads, grpc_backend("parley") as port, ExitStack() as stack:
        clients = {each: stack.enter_context(started(ads, each)) for each in CLIENTS}
        yield Play(ads, clients, port).run()


def started(ads: AdsThread, client: Client) -> AbstractContextManager[GrpcClient]:
    features = ["fail_on_data_errors"] if client.fails else []
    bootstrap = simple_bootstrap(ads_port=ads.port, node_id=client.name, cluster=ENVIRONMENT, features=features)
    return grpc_client(bootstrap, tp3=client.tp3)


class Play:
    """Plays every case with every client, chapter by chapter."""

    def __init__(self, ads: AdsThread, clients: Mapping[Client, GrpcClient], port: int) -> None:
        self.ads = ads
        self.clients = clients
        self.port = port
        self.seen: dict[tuple[Client, Case], dict[str, Seen]] = {played: {} for played in PLAYED}

    def run(self) -> Story:
        cached, new = [case for case in CASES if case.cached], [case for case in CASES if not case.cached]
        publish(self.ads, self.port, in_error=new)
        self.begin(CASES)
        for client in CLIENTS:
            self.note("start", client, CASES if client.tp3 else cached)

        publish(self.ads, self.port, in_error=CASES)
        for client, process in self.clients.items():
            eventually(partial(heard_of_errors, client, process, cached), within_s=10)
        self.begin(cached)
        for client in CLIENTS:
            self.note("error", client, cached)
        # These had to wait for the client's timer.
        for client in CLIENTS:
            self.note("start", client, [] if client.tp3 else new)

        publish(self.ads, self.port, in_error=[])
        eventually(self.recovered, within_s=RECOVERED_S)
        return MappingProxyType(self.seen)

    def begin(self, cases: Sequence[Case]) -> None:
        for process in self.clients.values():
            process.begin([case.target for case in cases], timeout_s=25)

    def note(self, chapter: str, client: Client, cases: Sequence[Case]) -> None:
        outcomes = self.clients[client].finish(case.target for case in cases)
        believed = self.clients[client].status()
        for case in cases:
            self.seen[client, case][chapter] = Seen(outcomes[case.target], believed.get((case.kind.url, case.name)))

    def recovered(self) -> bool:
        """Whether calls to all targets succeed again. A channel learns of it some moments after its xDS client."""
        self.begin(CASES)
        for client in CLIENTS:
            self.note("recovery", client, CASES)
        return all(chapters["recovery"].call.code == "OK" for chapters in self.seen.values())


def publish(ads: AdsThread, port: int, in_error: list[Case]) -> None:
    """Everything, but for the resources in error: these are not there, forbidden, withheld or cannot be read."""
    resources: list[Message] = []
    for case in CASES:
        name = case.name
        made = {
            LISTENER: api_listener(name, name),
            ROUTE: route(name, name),
            CLUSTER: eds_cluster(name),
            ENDPOINT: assignment(name, port),
        }
        resources += [message for kind, message in made.items() if case not in in_error or kind is not case.kind]
    denied = {
        (case.kind.word, case.name): Effect.DENY for case in in_error if case.code is StatusCode.PERMISSION_DENIED
    }
    withheld, unreadable = (
        {(case.kind, case.name): "it is being repaired" for case in in_error if case.code is code}
        for code in (StatusCode.INTERNAL, StatusCode.UNAVAILABLE)
    )
    ads.publish(ENVIRONMENT, *resources, withheld=withheld, unreadable=unreadable, access=name_rules(denied))


def heard_of_errors(client: Client, process: GrpcClient, cases: Sequence[Case]) -> bool:
    """Whether the client has heard of all that it can hear of."""
    believed = process.status()
    state = "RECEIVED_ERROR" if client.tp3 else "DOES_NOT_EXIST"
    audible = [case for case in cases if (client.tp3 or case.kind.full_state) and not case.is_kept]
    return all(believed[case.kind.url, case.name].state == state for case in audible)


@pytest.mark.shows("gRPC for Python (C-core)", "hears the reason of what it cannot have (xRFC TP3)", "SotW")
@every_case
def test_grpc__resource_in_error_from_the_start__fails_with_the_reason_or_after_15_s_without(
    story: Story, client: Client, case: Case
) -> None:
    start = story[client, case]["start"]

    assert start.believed is not None
    if case.cached:
        assert (start.call.code, start.believed.state) == ("OK", "ACKED")
    elif client.tp3:
        assert start.call.code == "UNAVAILABLE"
        # Had its timer fired first, it would say "does not exist".
        assert f"{case.code.name} [XDS" in start.call.text
        assert (start.believed.state, start.believed.in_use) == ("RECEIVED_ERROR", "")
        assert start.believed.details in start.call.text
    else:
        assert start.call.code == "UNAVAILABLE"
        assert "does not exist" in start.call.text
        assert start.call.seconds > DOES_NOT_EXIST_S - 0.5
        assert (start.believed.state, start.believed.in_use) == ("DOES_NOT_EXIST", "")


@pytest.mark.parametrize(
    ("client", "case"),
    [played for played in PLAYED if played[1].cached],
    ids=[f"{client.name}-{case.name}" for client, case in PLAYED if case.cached],
)
def test_grpc__resource_in_use_gets_an_error__is_kept_or_dropped_by_the_client_s_own_choice(
    story: Story, client: Client, case: Case
) -> None:
    then = story[client, case]["error"]

    assert then.believed is not None
    if case.is_kept:
        assert (then.believed.state, then.call.code) == ("ACKED", "OK")
        assert then.believed.in_use
    elif client.tp3:
        dropped = client.fails and case.code in DATA_ERRORS
        assert then.believed.state == "RECEIVED_ERROR"
        assert then.believed.details.startswith(f"{case.code.name} [XDS")
        assert dropped == (then.believed.in_use == "")
        assert then.call.code == ("UNAVAILABLE" if dropped else "OK")
        assert not dropped or then.believed.details in then.call.text
    elif case.kind.full_state:
        # To a client that does not read errors, leaving out is deleting (F6, F13).
        assert (then.believed.state, then.believed.in_use) == ("DOES_NOT_EXIST", "")
        assert then.call.code == "UNAVAILABLE"
        assert "does not exist" in then.call.text
    else:
        assert then.believed.state == "ACKED"
        assert then.believed.in_use
        assert then.call.code == "OK"


@every_case
def test_grpc__resource_comes_back__is_used_again(story: Story, client: Client, case: Case) -> None:
    end = story[client, case]["recovery"]

    assert end.call.code == "OK", end.call.text
    assert end.believed is not None
    assert (end.believed.state, end.believed.details) == ("ACKED", "")

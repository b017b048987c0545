"""gRPC's own xDS client refuses something, or forgets an error: what it is sent, and what goes on (B7, F9, F10; N3)."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial

import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message

from adsserver.engine.events import Acknowledged
from tests.support.ads import config, name_of
from tests.support.ads_thread import AdsThread, serving_ads
from tests.support.backends import grpc_backend
from tests.support.grpc_client import GrpcClient, grpc_client, simple_bootstrap
from tests.support.waiting import eventually
from tests.support.xds_resources import api_listener, assignment, eds_cluster, route
from xdscore.resource_types import CLUSTER

pytestmark = [pytest.mark.xdist_group("grpc-rejections")]

SOON_S = 2.0
RECONNECTED_S = 10.0
NAMES = [f"c{number:02}" for number in range(20)]
BAD = NAMES[3]


@pytest.fixture(scope="module")
def backend() -> Iterator[int]:
    with grpc_backend("parley") as port:
        yield port


@pytest.fixture(scope="module")
def ads() -> Iterator[AdsThread]:
    with serving_ads() as serving:
        yield serving


def client_of(ads: AdsThread, environment: str, features: Sequence[str] = ()) -> AbstractContextManager[GrpcClient]:
    bootstrap = simple_bootstrap(ads_port=ads.port, node_id=environment, cluster=environment, features=features)
    return grpc_client(bootstrap)


def web(clusters: Sequence[Message], port: int) -> list[Message]:
    """A target `web` that may go to any of these clusters."""
    names = [name_of(cluster)[1] for cluster in clusters]
    made = route("web", "unused")
    weighted = made.virtual_hosts[0].routes[0].route.weighted_clusters.clusters
    for name in names:
        weighted.add(name=name).weight.value = 1
    return [api_listener("web", "web"), made, *clusters, *(assignment(name, port) for name in names)]


def refused(name: str) -> cluster_pb2.Cluster:
    """A cluster of a load balancing policy that C-core does not have."""
    cluster = eds_cluster(name)
    cluster.lb_policy = cluster_pb2.Cluster.MAGLEV
    return cluster


def undecodable(name: str) -> discovery_pb2.Resource:
    """A cluster whose bytes end in the middle of a field."""
    cluster = Any(type_url=CLUSTER.url, value=eds_cluster(name).SerializeToString()[:-1])
    return discovery_pb2.Resource(name=name, resource=cluster)


# C-core knows the name of either, uses the rest of the response, and refuses this one.
HOW: Mapping[str, Callable[[str], Message]] = {"decode": undecodable, "apply": refused}
every_way = pytest.mark.parametrize("how", HOW)


def versions(client: GrpcClient) -> dict[str, str]:
    """The version of the response that each cluster in use came with."""
    return {name: each.in_use for (url, name), each in client.status().items() if url == CLUSTER.url}


def states(client: GrpcClient) -> dict[str, str]:
    return {name: each.state for (url, name), each in client.status().items() if url == CLUSTER.url}


def test_rejected__cluster__is_sent_once_in_5_s_and_the_fix_at_once(ads: AdsThread, backend: int) -> None:
    for how in HOW:
        ads.publish(how, *web([eds_cluster("a")], backend))
    with ExitStack() as stack:
        clients = {how: stack.enter_context(client_of(ads, how)) for how in HOW}
        assert {how: client.call("xds:///web").code for how, client in clients.items()} == dict.fromkeys(HOW, "OK")

        for how in clients:
            ads.publish(how, *web([HOW[how]("a")], backend))
            eventually(partial(ads.rejections, how), within_s=SOON_S)
        time.sleep(5)
        # It was given again what it had (F17a), so that it remembers nothing of what it refused.
        before = {how: versions(client) for how, client in clients.items()}
        sent = {how: times_sent(ads, how) for how in HOW}
        still = {how: client.call("xds:///web").code for how, client in clients.items()}

        for how, client in clients.items():
            ads.publish(how, *web([eds_cluster("a", "9s")], backend))
            eventually(partial(versions, client), lambda got, how=how: got != before[how], within_s=SOON_S)  # type: ignore[misc]

    assert sent == dict.fromkeys(HOW, 1)
    # Without fail_on_data_errors a client goes on with what it has.
    assert still == dict.fromkeys(HOW, "OK")


def times_sent(ads: AdsThread, environment: str) -> int:
    """How many responses held what was rejected."""
    (rejection,) = ads.rejections(environment)
    (suspect,) = rejection.suspects
    return sum(suspect in response.resources for _, response in ads.responses(environment))


def test_rejected__cluster_of_a_client_that_drops_what_it_refuses__is_used_again_before_anything_is_taken_back(
    ads: AdsThread, backend: int
) -> None:
    ads.publish("back", *web([eds_cluster("a")], backend))
    with client_of(ads, "back", features=["fail_on_data_errors"]) as client:
        assert client.call("xds:///web").code == "OK"
        before = versions(client)

        ads.publish("back", *web([refused("a")], backend))
        # It had dropped the cluster, and was given again what it had acknowledged (F17a).
        eventually(partial(healed, ads, "back"), within_s=SOON_S)
        eventually(lambda: client.call("xds:///web").code, lambda code: code == "OK", within_s=SOON_S)

        ads.publish("back", *web([eds_cluster("a", "9s")], backend))
        eventually(partial(versions, client), lambda got: got != before, within_s=SOON_S)
        eventually(lambda: client.call("xds:///web").code, lambda code: code == "OK", within_s=SOON_S)


def healed(ads: AdsThread, environment: str) -> list[Acknowledged]:
    """Every ACK of what was sent again in place of what was refused."""
    return [fact for fact in ads.facts(environment) if isinstance(fact, Acknowledged) and fact.heal]


@every_way
def test_rejected__one_of_20_clusters__the_other_19_go_on_also_on_a_new_stream(
    ads: AdsThread, backend: int, how: str
) -> None:
    environment = f"twenty-{how}"

    def publish(seconds: int, bad: Message, proven: Sequence[Message] = ()) -> None:
        clusters = [bad if name == BAD else eds_cluster(name, f"{seconds}s") for name in NAMES]
        ads.publish(environment, *web(clusters, backend), proven=proven)

    def all_but_bad_are(client: GrpcClient, state: str, before: dict[str, str]) -> bool:
        good = {name for name in NAMES if name != BAD}
        found = states(client)
        return all(found[name] == state and versions(client)[name] != before[name] for name in good)

    publish(1, eds_cluster(BAD))
    with client_of(ads, environment) as client:
        assert client.call("xds:///web").code == "OK"
        for seconds in (2, 3):
            before = versions(client)
            publish(seconds, HOW[how](BAD))
            eventually(partial(all_but_bad_are, client, "ACKED", before), within_s=SOON_S)

        publish(3, HOW[how](BAD), proven=[eds_cluster(BAD)])
        ads.restart()
        eventually(lambda: len(ads.streams(environment)), lambda count: count > 1, within_s=RECONNECTED_S)
        before = versions(client)
        publish(4, HOW[how](BAD), proven=[eds_cluster(BAD)])
        eventually(partial(all_but_bad_are, client, "ACKED", before), within_s=SOON_S)

        assert client.call("xds:///web").code == "OK"
        assert "DOES_NOT_EXIST" not in states(client).values()


@pytest.mark.parametrize(("repeat_errors", "state"), [(True, "RECEIVED_ERROR"), (False, "DOES_NOT_EXIST")])
def test_error__neighbour_changes__is_forgotten_unless_it_is_repeated(
    backend: int, repeat_errors: bool, state: str
) -> None:
    # A fact about C-core, and why PARLEY_REPEAT_ERRORS is what it is (F9): should this fail, a new version remembers.
    with serving_ads(config(repeat_errors=repeat_errors)) as ads:
        ads.publish("repeat", *web([eds_cluster("a"), eds_cluster("b")], backend))
        parents = web([eds_cluster("a"), eds_cluster("b")], backend)[:2]
        with client_of(ads, "repeat") as client:
            assert client.call("xds:///web").code == "OK"
            ads.publish("repeat", *parents, eds_cluster("b"), assignment("b", backend))
            eventually(lambda: states(client)["a"], lambda got: got == "RECEIVED_ERROR", within_s=SOON_S)
            before = versions(client)["b"]

            ads.publish("repeat", *parents, eds_cluster("b", "2s"), assignment("b", backend))
            eventually(lambda: versions(client)["b"], lambda version: version != before, within_s=SOON_S)

            assert states(client)["a"] == state


def test_error__new_stream__is_told_again(ads: AdsThread, backend: int) -> None:
    ads.publish("again", *web([eds_cluster("a")], backend)[:2])
    with client_of(ads, "again") as client:
        first = client.call("xds:///web")
        heard = len(ads.responses("again"))

        ads.restart()
        eventually(lambda: len(ads.streams("again")), lambda count: count > 1, within_s=RECONNECTED_S)
        eventually(lambda: any(r.errors for _, r in ads.responses("again")[heard:]), within_s=SOON_S)

        # F10: without it a client that has no copy would forget the reason after 15 s.
        assert states(client) == {"a": "RECEIVED_ERROR"}
        assert client.call("xds:///web").text == first.text
